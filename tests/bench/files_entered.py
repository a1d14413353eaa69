"""Count of the package's files that one event passes through, from a monitor's method to disk and decision.

A profiler notes every function that is called in the recording thread and in the package's own thread, after a first
event of each kind has loaded and opened what is needed once. Run by ``make bench``; it asserts nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from showing import row

import coherence
from coherence import Monitor
from coherence.providers import HashingEmbedder

PACKAGE = Path(coherence.__file__).parent
FOLDERS = (PACKAGE, PACKAGE.parent / "metrics", PACKAGE.parent / "providers")
RECORD_TARGET, DECIDE_TARGET = 40, 10


def files_entered(action: Callable[[], object]) -> set[str]:
    """Return the package's files in which a function was called during an action, on any thread."""
    names: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            names.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {
        str(path.relative_to(PACKAGE.parent))
        for name in names
        if any((path := Path(name)).is_relative_to(folder) for folder in FOLDERS)
    }


def main(shown: bool = False) -> None:
    """Print how many files each kind of event enters; with ``shown``, their names."""
    sys.stdout.write("\nfiles of the package that one event enters, a store behind it\n")
    events: dict[str, Callable[[Monitor], Any]] = {
        "a tool's result": lambda m: m.tool_result("2 passed"),
        "a failed result": lambda m: m.tool_result("ModuleNotFoundError: No module named 'yaml'", error=True),
        "a tool call": lambda m: m.tool_call("Bash", {"command": "pytest -q tests"}),
        "a message": lambda m: m.message("assistant", "The tests in tests/test_app.py pass now."),
    }
    with TemporaryDirectory() as folder:
        for at, (name, record) in enumerate(events.items()):
            for tick in ("manual", "step"):
                recorded, decided = one_event(Path(folder) / f"{tick}{at}.db", record, tick)
                when = "" if tick == "manual" else ", measured ahead where the tick policy says so"
                row(f"{name}, on the disk{when}", len(recorded), RECORD_TARGET, " files")
                row("  decided on, files more", len(decided), DECIDE_TARGET, " files")
                if shown:
                    sys.stdout.write(
                        f"  recorded: {' '.join(sorted(recorded))}\n  decided: {' '.join(sorted(decided))}\n"
                    )


def one_event(store: Path, record: Callable[[Monitor], Any], tick: str) -> tuple[set[str], set[str]]:
    """Return the files that recording one event enters, and what deciding after it adds."""
    goal, config = "mend the tests", {"tick": tick}
    with Monitor(store=store, embedder=HashingEmbedder(), goal=goal, config=config) as m:

        def to_disk() -> None:
            record(m)
            m.flush()

        for _ in range(3):
            m.tool_call("Bash", {"command": "pytest -q"})
            m.decide()
            m.flush()
            recorded = files_entered(to_disk)
            decided = files_entered(m.decide) - recorded
            m.flush()
    return recorded, decided


if __name__ == "__main__":
    main("-v" in sys.argv[1:])
