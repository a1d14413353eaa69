"""SOMA-Core (``soma-ai``, see requirements-soma.txt) over stdin and stdout: one JSON object a line in, one a line out.

Runs inside the peer's own virtual environment, with an empty home of its own and without a network. A request names an
operation, ``{"op": "record", "chars": 120}``; the other fields are the keyword arguments of the function of that name.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")  # no API key: with one, SOMA calls a model
NETWORK = ("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
TOOLS = ("Read", "Grep", "Edit", "Bash")
PROSE = "the agent reads a file and runs the 12 tests again because one failed with an import error in module config"


def outputs(chars: int, seed: int = 0) -> Iterator[str]:
    """Ordinary text, ``chars`` long, another one each time."""
    rng, words = random.Random(seed), PROSE.split()
    while True:
        text = ""
        while len(text) < chars:
            text += f"{rng.choice(words)} "
        yield text[:chars]


def run_of_one(soma: Any, texts: Iterator[str], n: int) -> list[Any]:
    """``n`` good actions with the tools in turn."""
    return [
        soma.Action(TOOLS[i % 4], text, token_count=len(text) // 4, cost=0.001, duration_sec=0.1 + i % 7 / 10)
        for i, text in enumerate(islice(texts, n))
    ]


def run_of_three(soma: Any, n: int) -> list[tuple[str, Any]]:
    """``n`` actions of three agents: 15 % fail, 5 % are retries."""
    rng, texts = random.Random(3), outputs(120, seed=3)
    return [
        (
            rng.choice(("planner", "coder", "tester")),
            soma.Action(
                rng.choice(TOOLS),
                next(texts),
                token_count=rng.randrange(50, 400),
                cost=rng.randrange(1, 9) / 1000,
                error=rng.random() < 0.15,
                retried=rng.random() < 0.05,
                duration_sec=rng.randrange(1, 30) / 10,
            ),
        )
        for _ in range(n)
    ]


def engine_for(soma: Any, *agents: str, **options: Any) -> Any:
    engine = soma.SOMAEngine(**{"audit_enabled": False, **options})
    for agent in agents:
        engine.register_agent(agent)
    return engine


def record(
    soma: Any, *, chars: int = 120, n: int = 200, warm: int = 50, audit: bool = False, texts: list[str] | None = None
) -> dict[str, Any]:
    """Time of one ``record_action``; ``texts``, used in turns, or texts of ``chars`` characters."""
    actions = run_of_one(soma, cycle(texts) if texts else outputs(chars), warm + n)
    engine = engine_for(soma, "a", audit_enabled=audit)
    for action in actions[:warm]:
        engine.record_action("a", action)
    took = []
    cpu = time.process_time()
    for action in actions[warm:]:
        started = time.perf_counter_ns()
        engine.record_action("a", action)
        took.append((time.perf_counter_ns() - started) / 1e3)
    cpu = time.process_time() - cpu
    return {
        "median_us": statistics.median(took),
        "p99_us": sorted(took)[math.ceil(0.99 * n) - 1],
        "mean_us": statistics.fmean(took),
        "cpu_us": cpu / n * 1e6,
    }


def detect(soma: Any, *, good: int = 30, bad: int = 40) -> dict[str, Any]:
    """Every pressure and mode; ``first``: which failing action is the first to reach a mode, from 1, or never."""
    engine = engine_for(soma, "a")
    actions = [soma.Action("Bash", "hello world output")] * good + [soma.Action("Bash", "err", error=True)] * bad
    results = [engine.record_action("a", action) for action in actions]
    failing = results[good:]
    return {
        "pressures": [result.pressure for result in results],
        "modes": [result.mode.name for result in results],
        "first": {
            mode.name: next((i for i, result in enumerate(failing, 1) if result.mode >= mode), None)
            for mode in soma.ResponseMode
            if mode is not soma.ResponseMode.OBSERVE
        },
    }


def spike(
    soma: Any,
    *,
    good: int = 50,
    factor: float = 100,
    spiked: int = 10,
    tokens: int = 10,
    cost: float = 0.01,
    budget: dict[str, float] | None = None,
) -> dict[str, Any]:
    """Pressures of ``spiked`` actions with ``factor`` times the tokens and cost; ``before``: of the last good one.

    The budget is the peer's default limits; a good action takes a ten-thousandth of each.
    """
    engine = engine_for(soma, "a", budget=budget or {"tokens": 100_000, "cost_usd": 100.0})

    def pressure(times: float) -> float:
        action = soma.Action("Bash", "hello world output", token_count=int(tokens * times), cost=cost * times)
        return float(engine.record_action("a", action).pressure)

    before = [pressure(1) for _ in range(good)]
    return {"before": before[-1], "pressures": [pressure(factor) for _ in range(spiked)]}


def replay(soma: Any, *, n: int = 500) -> dict[str, Any]:
    """Replay from the recording file alone; ``equal_by_hand``: with budget and edges, which the file lacks, passed."""
    budget, edges = {"tokens": 1_000_000, "cost_usd": 50.0}, [("tester", "coder", 0.8), ("coder", "planner", 0.6)]
    run = run_of_three(soma, n)
    engine = engine_for(soma, *dict.fromkeys(agent for agent, _ in run), budget=budget)
    for edge in edges:
        engine.add_edge(*edge)
    recorder, live = soma.SessionRecorder(), []
    for agent, action in run:
        recorder.record(agent, action)
        live.append(engine.record_action(agent, action).pressure)
    path = Path.home() / "recording.json"
    recorder.export(path)

    def equal(results: list[Any]) -> int:
        return sum(result.pressure == pressure for result, pressure in zip(results, live, strict=True))

    started = time.perf_counter()
    results = soma.replay_session(soma.SessionRecorder.load(path))
    took = time.perf_counter() - started
    by_hand = soma.replay_session(soma.SessionRecorder.load(path), budget=budget, edges=edges)
    return {"equal": equal(results), "of": n, "events_per_s": n / took, "equal_by_hand": equal(by_hand)}


def restart(soma: Any, *, n: int = 100, error: bool = True) -> dict[str, Any]:
    """Pressure of the action after ``n``, failing if ``error``: by the engine that saw them, and by a loaded one."""
    actions = [soma.Action("Bash", text, error=i % 10 == 9) for i, text in enumerate(islice(outputs(120), n + 1))]
    following = soma.Action("Bash", "err" if error else "hello world output", error=error)
    engine, path = engine_for(soma, "a"), str(Path.home() / "engine_state.json")
    for action in actions[:n]:
        engine.record_action("a", action)
    soma.save_engine_state(engine, path)
    took = []
    for _ in range(9):
        started = time.perf_counter()
        loaded = soma.load_engine_state(path)
        took.append(time.perf_counter() - started)
    before, after = (each.record_action("a", following).pressure for each in (engine, loaded))
    return {"before": before, "after": after, "load_ms": statistics.median(took) * 1e3}


def version(soma: Any) -> dict[str, Any]:
    return {"version": soma.__version__}


OPERATIONS: dict[str, Callable[..., dict[str, Any]]] = {
    each.__name__: each for each in (record, detect, spike, replay, restart, version)
}


def refuse_network(event: str, _: tuple[object, ...]) -> None:
    if event in NETWORK:
        raise PermissionError(f"{event}: the peer runs without a network")


def serve(soma: Any, answers: Any) -> None:
    for line in sys.stdin:
        try:
            request = json.loads(line)
            op = request.pop("op")
            if op == "quit":
                return
            if op not in OPERATIONS:
                raise ValueError(f"no operation {op!r}; there are {', '.join(OPERATIONS)} and quit")
            answer = json.dumps(OPERATIONS[op](soma, **request), allow_nan=False)
        except Exception as error:  # whatever the peer raises is an answer, and the next operation may work
            answer = json.dumps({"error": f"{type(error).__name__}: {error}"})
        answers.write(f"{answer}\n")
        answers.flush()


def main() -> None:
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers, TemporaryDirectory(prefix="soma-") as home:
        os.dup2(2, 1)  # what the peer prints, from C too, goes to stderr
        here = Path(__file__).resolve().parent
        sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]  # this file is no package soma
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        os.environ.clear()
        os.environ.update(kept, HOME=home)
        os.chdir(home)  # soma.toml is read from the working directory
        sys.addaudithook(refuse_network)
        serve(importlib.import_module("soma"), answers)


if __name__ == "__main__":
    main()
