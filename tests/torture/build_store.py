"""Fill a store with a bit of everything, by the code of whatever version is checked out.

``python tests/torture/build_store.py PATH``; ``tests/data/stores/README.md`` says how the files there were made. Only
what every version since the first schema has is called.
"""

from __future__ import annotations

import lzma
import sqlite3
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from coherence import Fleet, Monitor
from coherence.guard import Guard
from coherence.lessons import LessonStore
from coherence.providers import HashingEmbedder

CALLS = 6
"""Calls of the guarded agent, of which each third one fails."""


def run(path: Path, session: str) -> None:
    """Record a run whose agent meets an error, fixes it and is labelled good."""
    with Monitor(store=path, agent="a", session=session, goal="make the tests pass", embedder=HashingEmbedder(16)) as m:
        m.message("user", "make the tests pass, please")
        for _ in range(3):
            call = m.tool_call("Bash", {"command": "pytest -q"})
            m.tool_result("ModuleNotFoundError: No module named 'yaml'", error=True, call=call)
        m.decide()
        call = m.tool_call("Bash", {"command": "pip install pyyaml"})
        m.tool_result("Successfully installed pyyaml", call=call)
        call = m.tool_call("Bash", {"command": "pytest -q"})
        m.tool_result("3 passed", call=call)
        m.outcome(success=True)
        m.label_run("good")


def build(path: Path) -> None:
    """Write two runs, a lesson, trust among agents and the trail of a guard."""
    for session in ("s1", "s2"):
        run(path, session)
    with LessonStore(path, embedder=HashingEmbedder(16)) as lessons:
        lessons.record(
            pattern="missing module",
            error_text="ModuleNotFoundError: No module named 'numpy'",
            fix_text="uv add numpy",
            tool="Bash",
        )
    with Fleet(store=path, embedder=HashingEmbedder(16)) as fleet:
        fleet.agent("planner")
        fleet.agent("sub")
        fleet.add_edge("sub", "planner", 0.4)
        fleet.set_trust("sub", "planner", 0.25)
    with Guard(store=path) as guard:
        for number in range(CALLS):
            with suppress(ValueError):
                guard.run(partial(act, number), agent="g", task=f"task {number}")


def act(number: int) -> int:
    """Fail each third time."""
    if number % 3 == 2:
        raise ValueError(f"no {number}")
    return number


if __name__ == "__main__":
    target = Path(sys.argv[1])
    build(target)
    connection = sqlite3.connect(target, isolation_level=None)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.close()
    Path(f"{target}.xz").write_bytes(lzma.compress(target.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
