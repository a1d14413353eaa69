"""The graph of SOMA-Core (``soma-ai``, see requirements-soma.txt): one JSON object a line in, one a line out.

Runs inside the peer's own virtual environment. The one operation is ``propagate``.
"""

from __future__ import annotations

import importlib
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any


def propagate(edges: list[tuple[str, str, float]], *, times: int, vectors: bool) -> dict[str, float]:
    """Time of one propagation, with new pressures each time; ``vectors``: with one per signal, as its engine has."""
    made = importlib.import_module("soma.graph").PressureGraph()
    vector: Any = importlib.import_module("soma.types").PressureVector
    for source, target, weight in edges:
        made.add_edge(source, target, weight)
    names, rng, took = sorted(made.agents), random.Random(2), []
    for _ in range(times):
        for name in names:
            pressure = rng.random()
            made.set_internal_pressure(name, pressure)
            if vectors:
                made.set_internal_pressure_vector(name, vector(pressure, pressure, pressure, pressure))
        started = time.perf_counter_ns()
        made.propagate()
        took.append((time.perf_counter_ns() - started) / 1e6)
    return {"median_ms": statistics.median(took), "p99_ms": sorted(took)[int(0.99 * times)]}


def main() -> None:
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]  # soma.py there is not the package
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request.pop("op") != "propagate":
                raise ValueError("the only operation is propagate")
            answer: dict[str, Any] = dict(propagate(**request))
        except Exception as error:  # whatever the peer raises is an answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
