"""The classic regulator ``noos`` (see requirements-noos.txt) over stdin and stdout: one JSON object a line each way.

Its API is that of ``coherence.compat``, so that the same functions here drive either one: ``api`` is the module.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def turns(api: Any, *, texts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Microseconds of whole turns: user message, assistant message, usage, decision."""
    regulator = api.Regulator.for_user("user")
    took, cpu = [], []
    for asked, answered in texts:
        started, began = time.perf_counter_ns(), time.thread_time_ns()
        regulator.on_event(api.LLMEvent.turn_start(asked))
        regulator.on_event(api.LLMEvent.turn_complete(answered))
        regulator.on_event(api.LLMEvent.cost(100, 20, 500))
        regulator.decide()
        cpu.append((time.thread_time_ns() - began) / 1e3)
        took.append((time.perf_counter_ns() - started) / 1e3)
    return _summary(took, cpu)


def topics(api: Any, *, known: int, n: int = 50) -> dict[str, Any]:
    """Microseconds of the start of a turn after so many turns on new topics, each with feedback and a correction."""
    regulator = api.Regulator.for_user("user")
    for at in range(known):
        regulator.on_event(api.LLMEvent.turn_start(f"please look into subject{at} and matter{at}"))
        regulator.on_event(api.LLMEvent.turn_complete(f"subject{at} and matter{at} are fine"))
        regulator.on_event(api.LLMEvent.quality_feedback(0.9))
        if at % 10 == 0:
            regulator.on_event(api.LLMEvent.user_correction(f"mind matter{at} next time", True))
    took, cpu = [], []
    for at in range(n):
        started, began = time.perf_counter_ns(), time.thread_time_ns()
        regulator.on_event(api.LLMEvent.turn_start(f"please look into thing{at} and affair{at}"))
        cpu.append((time.thread_time_ns() - began) / 1e3)
        took.append((time.perf_counter_ns() - started) / 1e3)
    return _summary(took, cpu)


def growth(api: Any, *, early: int = 20_000, late: int = 100_000) -> dict[str, Any]:
    """Megabytes of memory that events ``early`` to ``late`` add to the peak."""
    regulator, peaks = api.Regulator.for_user("user"), []
    for at in range(late):
        if at == early:
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        kind = at % 5
        if kind == 0:
            regulator.on_event(api.LLMEvent.turn_start(f"look into subject{at}"))
        elif kind == 1:
            regulator.on_event(api.LLMEvent.tool_call("search", json.dumps({"query": f"subject{at}"})))
        elif kind == 2:
            failed = at % 7 == 0
            regulator.on_event(api.LLMEvent.tool_result("search", not failed, 20, f"error {at}" if failed else None))
        elif kind == 3:
            regulator.on_event(api.LLMEvent.turn_complete(f"subject{at} is fine"))
        else:
            regulator.on_event(api.LLMEvent.user_correction(f"mind matter{at}", True))
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return {"mb": (peaks[1] - peaks[0]) / 1024}


def drifts(api: Any, *, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The drift scores of answers against tasks; 0 where none is told."""
    scores = []
    for task, answer in pairs:
        regulator = api.Regulator.for_user("user")
        regulator.on_event(api.LLMEvent.turn_start(task))
        regulator.on_event(api.LLMEvent.turn_complete(answer))
        scores.append(regulator.decide().drift_score or 0.0)
    return {"scores": scores}


def _summary(took: list[float], cpu: list[float]) -> dict[str, Any]:
    kept, used = sorted(took[len(took) // 5 :]), sorted(cpu[len(cpu) // 5 :])  # the first ones warm up
    return {"median_us": statistics.median(kept), "best_us": kept[len(kept) // 20], "cpu_us": used[len(used) // 20]}


def version(api: Any) -> dict[str, Any]:
    return {"version": api.__version__}


OPERATIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "turns": turns,
    "topics": topics,
    "growth": growth,
    "drifts": drifts,
    "version": version,
}


def main() -> None:
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]  # this file is not the package
    api = importlib.import_module("noos")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = json.dumps(OPERATIONS[request.pop("op")](api, **request))
            except Exception as error:
                answer = json.dumps({"error": f"{type(error).__name__}: {error}"})
            answers.write(f"{answer}\n")
            answers.flush()


if __name__ == "__main__":
    main()
