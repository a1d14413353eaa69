"""The lessons of SOMA-Core (``soma-ai``, see requirements-soma.txt): one JSON object a line in, one a line out.

Runs inside the peer's own virtual environment, in a folder of its own. Operations: ``record`` and ``query``.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STORES: list[Any] = []
"""The store that was made, if any."""


def record(lessons: list[tuple[str, str, str, str]]) -> dict[str, Any]:
    """Record lessons (pattern, error, fix, tool), 100 of which the peer keeps by default; return the milliseconds."""
    if not STORES:
        STORES.append(importlib.import_module("soma.lessons").LessonStore(Path("lessons.json").absolute()))
    took = []
    for pattern, error, fix, tool in lessons:
        started = time.perf_counter_ns()
        STORES[0].record(pattern, error, fix, tool)
        took.append((time.perf_counter_ns() - started) / 1e6)
    return {"took_ms": took}


def query(questions: list[tuple[str, str]]) -> dict[str, Any]:
    """Ask with (error, tool); return the milliseconds, and the fix of the first answer, ``None`` if there was none."""
    took, fixes = [], []
    for text, tool in questions:
        started = time.perf_counter_ns()
        found = STORES[0].query(text, tool)
        took.append((time.perf_counter_ns() - started) / 1e6)
        fixes.append(found[0]["fix"] if found else None)
    return {"took_ms": took, "fixes": fixes}


OPERATIONS: dict[str, Callable[..., dict[str, Any]]] = {each.__name__: each for each in (record, query)}


def main() -> None:
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]  # soma.py there is not the package
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = OPERATIONS[request.pop("op")](**request)
        except Exception as error:  # whatever the peer raises is an answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
