"""Adapters that say what is not so, and configurations that others edit meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Bound, Bounds, Guard, Notice
from coherence.guard.memory import digest_of
from guard.helpers import BOUNDS, Both, Clock, Memory, Proposes, call, first, kinds, until
from guard.trails import verified


class Odd(Memory):
    """Applies a patch as it is told to; ``config`` keeps what really is in force."""

    def __init__(self, applies: Callable[[Odd, dict[str, Any]], object], config: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.applies = applies
        self.unreadable = False
        self.config = {"level": 1, "model": "a"} if config is None else config

    def get_config(self, *, agent_id: str) -> Mapping[str, Any]:
        if self.unreadable:
            raise OSError("no route")
        return dict(self.config)

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
        self.applied.append(config_patch)
        return self.applies(self, config_patch)


def says(answer: object, *, writes: bool, lost: bool = False, unreadable: bool = False) -> Callable[[Odd, Any], object]:
    def applies(odd: Odd, patch: dict[str, Any]) -> object:
        if writes:
            odd.config |= patch
        if lost:
            odd.config.pop("model")
        odd.unreadable = unreadable
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return applies


def live(path: Path, adapter: Any, patch: Any = None, **given: Any) -> Guard:
    usual: dict[str, Any] = {"bounds": BOUNDS, "clock": Clock(1.0), "strategy": Proposes(patch or {"level": 2})}
    return Guard(store=path / "guard.db", config_adapter=adapter, **(usual | given))


@pytest.mark.parametrize(
    ("applies", "why"),
    [
        (
            says(None, writes=True),
            "could not be applied: the adapter returned None, and level has changed all the same",
        ),
        (says(OSError("late"), writes=True), "the adapter failed: OSError, and level has changed all the same"),
        (says(True, writes=False), "apply_config returned True, and the configuration does not show level"),
        (says(True, writes=True, lost=True), "apply_config has removed model"),
        (says(False, writes=True, lost=True), "and level has changed all the same"),
    ],
    ids=["None", "raises", "lies", "removes", "half"],
)
def test_patches_what_the_adapter_says_is_checked_and_restored(
    tmp_path: Path, applies: Callable[[Odd, Any], object], why: str
) -> None:
    adapter, told = Odd(applies), list[Notice]()
    with live(tmp_path, adapter, notifier=told.append) as guard:
        call(guard, 3, fails=True)
        assert adapter.config == {"level": 1, "model": "a"}
        assert kinds(guard.history("a")) == ["asked", "accepted", "ending", "restored"]
        assert why in first(guard.history("a"), "ending").why
        assert guard.status("a").phase == "idle"
        assert [notice.kind for notice in told] == ["accepted", "ending", "restored"]
        account = guard._runner.view("a").account
        assert [given_up.digest for given_up in account.patching.memory.patches] == [digest_of({"level": 2})]
        assert guard.store is not None
        found = verified(guard.store)
        assert (found.faults, found.unknown) == ([], 0)
        assert [each.derived for each in found.rollbacks] == ["yes"]


@pytest.mark.parametrize("answer", [None, False, 0, OSError("no")])
def test_history_what_was_not_applied_and_changed_nothing_is_not_restored(tmp_path: Path, answer: object) -> None:
    adapter = Odd(says(answer, writes=False))
    with live(tmp_path, adapter) as guard:
        call(guard, 3, fails=True)
        assert kinds(guard.history("a")) == ["asked", "accepted", "not_applied"]
        assert adapter.restored == []


@pytest.mark.parametrize(("answer", "kind"), [(True, "serving"), (None, "ending")])
def test_history_where_the_configuration_cannot_be_read_the_adapters_word_counts(
    tmp_path: Path, answer: object, kind: str
) -> None:
    adapter = Odd(says(answer, writes=True, unreadable=True))
    with live(tmp_path, adapter) as guard:
        call(guard, 2, fails=True)
        assert kinds(guard.history("a"))[2] == kind
        assert guard.errors["adapter: OSError"] >= 1
        if kind == "ending":  # the backup as it is, for want of a better one
            assert adapter.restored == [{"level": 1, "model": "a"}]


def test_history_an_adapter_that_serves_both_is_checked_once_the_patch_is_confirmed(tmp_path: Path) -> None:
    class Lies(Both):
        def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
            self.applied.append(config_patch)
            return True

    adapter = Lies()
    with live(tmp_path, adapter, canary_share=1.0) as guard:
        call(guard, 20, fails=False)
        call(guard, 5, fails=True)
        assert kinds(guard.history("a"))[:2] == ["asked", "accepted"]
        assert adapter.applied == []
        for _ in range(400):
            call(guard, 1, fails=False)
            if adapter.applied:
                break
        assert kinds(guard.history("a"))[-2:] == ["ending", "restored"]
        assert guard.status("a").patch is None


def test_rollback_a_restore_keeps_what_others_have_edited(tmp_path: Path) -> None:
    bounds = Bounds({"level": Bound(least=0, most=9), "retry.limit": Bound(least=0, most=9)})
    patch = {"level": 2, "retry": {"limit": 3}}

    def applies(odd: Odd, patch: dict[str, Any]) -> object:
        odd.config = {**odd.config, "level": 2, "retry": {**odd.config["retry"], "limit": 3}}
        return True

    adapter = Odd(applies, {"retry": {"limit": 1, "wait_s": 5}, "model": "a", "old": 1})
    with live(tmp_path, adapter, patch, bounds=bounds, canary_share=1.0) as guard:
        call(guard, 2, fails=True)
        assert guard.status("a").phase == "serving"
        adapter.config["retry"]["wait_s"] = 60
        adapter.config |= {"model": "b", "new": 1}
        del adapter.config["old"]
        assert guard.rollback("a")
        # level was not set before the patch
        assert adapter.config == {"retry": {"limit": 1, "wait_s": 60}, "model": "b", "new": 1}


def test_rollback_a_restore_that_did_nothing_is_tried_again_and_told_once(tmp_path: Path) -> None:
    lies = [1] * 3

    class Lies(Odd):
        def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> object:
            return bool(lies.pop()) if lies else super().rollback_config(agent_id=agent_id, backup_config=backup_config)

    adapter, told, clock = Lies(says(True, writes=True)), list[Notice](), Clock(1.0)
    with live(tmp_path, adapter, notifier=told.append, clock=clock, canary_share=1.0) as guard:
        call(guard, 2, fails=True)
        assert guard.rollback("a") is False
        why = first(guard.history("a"), "restore_failed").why
        assert why == "the adapter has restored, it says, and the configuration still shows the patch: level"
        until(lambda: guard.status("a").phase == "idle")
        assert adapter.config["level"] == 1
        assert [notice.kind for notice in told][-3:] == ["ending", "restore_failed", "restored"]


class Later(Memory):
    async def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
        return True


class Calls:
    async def __call__(self, *_: object, **__: object) -> None: ...


async def later(*_: object, **__: object) -> None: ...


async def stream(*_: object) -> Any:
    yield 1


class Thinks:
    analyze = staticmethod(later)


class Told:
    notify = staticmethod(later)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"config_adapter": Later()}, "config_adapter.apply_config"),
        ({"strategy": Thinks()}, "strategy.analyze"),
        ({"notifier": Told()}, "notifier.notify"),
        ({"notifier": later}, "notifier"),
        ({"notifier": Calls()}, "notifier"),
        ({"is_success": partial(later, 1)}, "is_success"),
        ({"cost_of": later}, "cost_of"),
        ({"cost_of": stream}, "cost_of"),
        ({"measures": Calls()}, "measures"),
    ],
)
def test_guard_async_collaborators_are_refused(tmp_path: Path, given: dict[str, Any], name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name} must not be async.*run_coroutine_threadsafe"):
        Guard(store=tmp_path / "guard.db", **given)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("owner", "method", "stage", "kind"),
    [
        (Memory, "get_config", "adapter", "declined"),
        (Memory, "apply_config", "adapter", "not_applied"),
        (Memory, "rollback_config", "adapter", "restore_failed"),
        (Proposes, "analyze", "strategy", "declined"),
        (None, "notifier", "notifier", ""),
        (None, "is_success", "is_success", ""),
        (None, "cost_of", "cost_of", ""),
        (None, "measures", "strategy", "declined"),
    ],
)
def test_what_returns_a_coroutine_all_the_same_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, stage: str, kind: str
) -> None:
    def awaits(*_: object, **__: object) -> Any:
        return later()

    if owner is not None:
        monkeypatch.setattr(owner, method, awaits)
    with live(tmp_path, Memory(), canary_share=1.0, **({} if owner is not None else {method: awaits})) as guard:
        call(guard, 1, fails=False)
        assert guard.status("a").failures == 0  # whatever fails in is_success
        call(guard, 3, fails=True)
        if kind == "restore_failed":
            assert not guard.rollback("a")
        assert "returned a coroutine: it must not be async" in guard.newest_errors[stage]
        assert not kind or kind in kinds(guard.history("a"))


@pytest.mark.parametrize(
    ("adapter", "patch", "why"),
    [
        (Memory(), {"level": 99}, "level = 99 is refused by range: must be in [0, 9]"),
        (None, {"level": 99}, "level = 99 is refused by range: must be in [0, 9]"),
        (Memory(), {"level": 1}, "the patch changes nothing"),
    ],
)
def test_newest_errors_count_a_refused_proposal(tmp_path: Path, adapter: Any, patch: dict[str, Any], why: str) -> None:
    with live(tmp_path, adapter, patch) as guard:
        call(guard, 2, fails=True)
        assert guard.errors == {"strategy: a proposal was refused": 1}
        assert guard.newest_errors == {"strategy": why}
        assert first(guard.history("a"), "declined").why == why
