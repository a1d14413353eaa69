"""Habits of the classic loop: a strategy that applies patches itself, and a call that returns its failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard, Override
from guard.helpers import Boom, Memory, kinds, patched


class Applies:
    """The classic strategy: it proposes, and owns the configuration or a part of it."""

    def __init__(self, config: Memory, returns: object = True) -> None:
        self.config, self.returns, self.applied = config, returns, list[dict[str, Any]]()

    def analyze(self, **about: Any) -> dict[str, Any]:
        return {"level": 5}

    def apply(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
        self.applied.append(config_patch)
        if self.returns is True:
            self.config.config.update(config_patch)
        return self.returns


class Owns(Applies):
    """The classic strategy without an adapter."""

    def current_config(self, *, agent_id: str) -> dict[str, Any]:
        return dict(self.config.config)

    def rollback(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
        self.config.rollback_config(agent_id=agent_id, backup_config=backup_config)


@contextmanager
def guarded(folder: Path, strategy: Applies, adapter: Memory | None) -> Iterator[Guard]:
    with patched(
        folder / "guard.db",
        adapter,
        strategy=strategy,
        policy="classic",
        thresholds={"a": Override(failures=2, cooldown_h=0)},
    ) as guard:
        yield guard


def boom() -> str:
    raise Boom("no")


def fail(guard: Guard, times: int) -> list[bool]:
    return [guard.run(boom, agent="a", raises=False).patch_applied for _ in range(times)]


def test_strategy_apply_is_called_instead_of_the_adapters_and_the_adapter_restores(tmp_path: Path) -> None:
    config = Memory()
    strategy = Applies(config)
    with guarded(tmp_path, strategy, config) as guard:
        assert fail(guard, 2) == [False, True]  # applied at failure 2
        assert strategy.applied == [{"level": 5}]
        assert config.applied == []
        assert config.config == {"level": 5}
        outs = [guard.run(boom, agent="a", raises=False) for _ in range(10)]  # failures in a row roll back at the tenth
        assert [out.rolled_back for out in outs] == [False] * 9 + [True]
    assert config.config == {"level": 1}
    assert config.restored == [{"level": 1}]


def test_a_strategy_with_current_config_apply_and_rollback_needs_no_adapter(tmp_path: Path) -> None:
    config = Memory()
    with guarded(tmp_path, Owns(config), None) as guard:
        assert fail(guard, 2) == [False, True]
        fail(guard, 10)
        assert [kind for kind in kinds(guard.history("a")) if kind in ("serving", "restored")] == [
            "serving",
            "restored",
        ]
    assert config.config == {"level": 1}


def test_a_strategy_without_a_restore_hook_owns_no_configuration(tmp_path: Path) -> None:
    strategy = Applies(Memory())
    with guarded(tmp_path, strategy, None) as guard:
        assert fail(guard, 3) == [False] * 3
        assert guard.history("a")[-1].why == "there is no adapter"  # it waits for a person
    assert strategy.applied == []


def test_a_strategys_apply_must_not_be_async(tmp_path: Path) -> None:
    class Asks(Applies):
        async def apply(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
            return True

    with pytest.raises(TypeError, match=r"strategy\.apply must not be async"):
        Guard(store=tmp_path / "guard.db", strategy=Asks(Memory()), config_adapter=Memory())


def test_run_returns_a_failure_if_it_is_not_to_raise(tmp_path: Path) -> None:
    async def aboom() -> str:
        raise Boom("no")

    with Guard(store=tmp_path / "guard.db") as guard:
        for out in (
            guard.run(boom, agent="a", raises=False),
            asyncio.run(guard.arun(aboom, agent="a", raises=False)),
        ):
            assert (out.result, out.success, out.patch_applied, out.rolled_back) == (None, False, False, False)
            assert isinstance(out.error, Boom)
        good = guard.run(lambda: 7, agent="a", raises=False)
        assert (good.result, good.success, good.error) == (7, True, None)
        assert [trace.error for trace in guard.traces("a")] == ["Boom: no", "Boom: no", None]


def test_run_raises_what_ends_the_process_in_any_case(tmp_path: Path) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with Guard(store=tmp_path / "guard.db") as guard:
        with pytest.raises(KeyboardInterrupt):
            guard.run(interrupted, agent="a", raises=False)
        with pytest.raises(TypeError, match="raises"):
            guard.run(boom, agent="a", raises="no")  # type: ignore[call-overload]
