"""Reads and exports of a guard, whatever the agent is called."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard
from coherence.guard.export import export_trail
from coherence.guard.traces import guarded_agents
from guard.helpers import (
    Boom,
    Clock,
    Memory,
    failing,
    kinds,
    patched,
    request_approval,
    request_decline,
    request_rollback,
)
from guard.trails import Varies

NAMES = ["n" * 10_000, "lone\udcff", "nul\x00name", " padded ", "a\x1b[31m\u202eb\nc"]


def lived(folder: Path, rate: Callable[[int], float] = lambda level: 0.7, calls: int = 150) -> Guard:
    memory = Memory()
    guard = patched(folder / "guard.db", memory, strategy=Varies(), clock=Clock(), canary_share=0.5, canary_slice=5)
    agent = failing(rate, memory)
    for _ in range(calls):
        with suppress(Boom):
            guard.run(agent, agent="a")
    return guard


@pytest.mark.parametrize("name", NAMES, ids=["long", "surrogate", "nul", "spaces", "controls"])
def test_export_an_agent_is_found_by_the_name_it_is_called_by(tmp_path: Path, name: str) -> None:
    with Guard(store=tmp_path / "guard.db", strategy=Varies()) as guard:
        agent = failing(lambda level: 0.5, Memory())
        for _ in range(120):
            with suppress(Boom):
                guard.run(agent, agent=name)
        assert (guard.status(name).calls, len(guard.traces(name, 200))) == (120, 120)
        assert kinds(guard.history(name))[:2] == ["asked", "proposed"]
        file = io.BytesIO()
        assert guard.export(name, file) == len(file.getvalue().splitlines()) > 120
        assert guard.store is not None
        assert request_approval(guard.store, name, "yes") and request_decline(guard.store, name, "no")
        assert not guard.rollback(name) and not request_rollback(guard.store, name, "")
        (stored,) = guarded_agents(guard.store)
        assert guard.status(stored).calls == 120 and guard.history(stored) == guard.history(name)


def test_decline_asking_for_an_agent_that_is_not_there_makes_none(tmp_path: Path) -> None:
    with Guard(store=tmp_path / "guard.db", config_adapter=Memory()) as guard:
        assert (guard.history("tpyo"), guard.traces("tpyo")) == ([], [])
        assert guard.status("tpyo").calls == guard.export("tpyo", io.BytesIO()) == 0
        assert not (guard.rollback("tpyo") or guard.approve("tpyo") or guard.decline("tpyo"))
        guard.flush()
        assert guard.store is not None and guarded_agents(guard.store) == []
        for bad, error in ((" ", ValueError), (5, TypeError)):
            given: Any = bad
            for method in (guard.status, guard.history, guard.traces, guard.rollback, guard.approve):
                with pytest.raises(error, match="agent"):
                    method(given)


def test_slices_are_left_out_of_the_history_unless_asked_for(tmp_path: Path) -> None:
    with lived(tmp_path) as guard:
        whole, told = guard.history("a", 1000, slices=True), guard.history("a", 1000)
        assert kinds(whole)[:6] == ["asked", "accepted", "serving", "ending", "restored", "resuming"]
        assert kinds(told)[:3] == ["asked", "accepted", "serving"] and "resuming" not in kinds(told)
        assert [past for past in whole if past in told] == told
        assert guard.history("a", 2) == told[-2:] and guard.history("a", 0) == []
        with pytest.raises(TypeError, match="slices"):
            guard.history("a", slices=1)  # type: ignore[arg-type]


def test_export_a_trail_is_exported_to_a_new_file_or_an_open_one(tmp_path: Path) -> None:
    path = tmp_path / "trail.jsonl"
    with lived(tmp_path, lambda level: 0.9 if level == 1 else 0.0) as guard:
        count = guard.export("a", path)  # nothing was flushed before
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        assert sum(row["kind"] == "call" for row in rows) == 150 and len(rows) == count
        with pytest.raises(FileExistsError, match="exists already"):
            guard.export("a", str(path))
        assert len(path.read_bytes().splitlines()) == count
        with pytest.raises(FileNotFoundError):
            guard.export("a", tmp_path / "no folder" / "trail.jsonl")
        with pytest.raises(TypeError, match="file must be a path or a binary file, not 5"):
            guard.export("a", 5)  # type: ignore[arg-type]
        assert guard.store is not None
        with pytest.raises(TypeError), (tmp_path / "text.jsonl").open("w") as text:
            export_trail(guard.store, "a", text)  # type: ignore[arg-type]
    assert [file.name for file in tmp_path.glob(".*")] == []
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "nowhere")
    with Guard(store=tmp_path / "guard.db") as guard, pytest.raises(FileExistsError):
        guard.export("a", tmp_path / "link.jsonl")
