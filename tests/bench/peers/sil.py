"""self-improving-loop (see requirements-sil.txt) over stdin and stdout: one JSON object a line each way.

Runs inside the peer's own virtual environment. Folders are made by who asks; traces are JSON lines, the peer's default.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Host:
    """Owns a configuration for each agent, proposes a patch where it is asked to, and is told of nothing."""

    def __init__(self, patch: dict[str, Any] | None = None) -> None:
        self.patch = patch
        self.applied = 0
        self.fails = False
        """True if reporting to it fails."""

    def get_config(self, agent_id: str) -> dict[str, Any]:
        return {"level": 1}

    def apply_config(self, agent_id: str, config_patch: dict[str, Any]) -> bool:
        self.applied += 1
        return True

    def rollback_config(self, agent_id: str, backup_config: dict[str, Any]) -> None:
        pass

    def analyze(self, agent_id: str, traces: Any, before_metrics: Any) -> dict[str, Any] | None:
        return self.patch

    def send(self, message: str, priority: str = "normal") -> None:
        if self.fails:
            raise ConnectionError("the chat cannot be reached")


def make(folder: str, host: Host | None = None) -> Any:
    """Return a loop on a folder."""
    api = importlib.import_module("self_improving_loop")
    notifier = api.TelegramNotifier()
    notifier._send_message = (host or Host()).send
    return api.SelfImprovingLoop(data_dir=folder, notifier=notifier, strategy=host, config_adapter=host)


def fine() -> str:
    return "done"


def fail() -> None:
    raise ValueError("no")


def fill(folder: str, stored: int) -> dict[str, Any]:
    """Write so many traces as the peer does, the newest five of them failures."""
    Path(folder).mkdir(exist_ok=True)
    begin = datetime.now() - timedelta(hours=10)
    with Path(folder, "traces.jsonl").open("w") as file:
        for at in range(stored):
            success = at < stored - 5
            trace = {
                "agent_id": "a",
                "task": "answer",
                "success": success,
                "duration_sec": 0.001,
                "error": None if success else "no",
                "context": {},
                "timestamp": (begin + timedelta(milliseconds=at)).isoformat(),
            }
            file.write(json.dumps(trace) + "\n")
    return {}


def timed(loop: Any, fn: Callable[[], object], calls: int) -> list[float]:
    took = []
    for _ in range(calls):
        begin = time.perf_counter()
        loop.track("a", "answer", fn)
        took.append((time.perf_counter() - begin) * 1e6)
    return took


def cost(folder: str, many: int, few: int) -> dict[str, Any]:
    """Microseconds of calls: the first with the start, then some that succeed, that fail, and with a patch open."""
    begin = time.perf_counter()
    loop = make(folder)
    loop.track("a", "answer", fine)
    started = (time.perf_counter() - begin) * 1e6
    succeeds, fails = timed(loop, fine, many), timed(loop, fail, few)
    host = Host({"level": 2})
    loop = make(folder, host)
    while not host.applied:
        loop.track("a", "answer", fail)
    return {"start": [started], "succeeds": succeeds, "fails": fails, "open": timed(loop, fine, few)}


def lives(folder: str, calls: Sequence[Sequence[tuple[bool, float]]], before: int) -> dict[str, Any]:
    """Live through the (success, seconds) of each life, with a patch after so many; return the calls to each rollback.

    ``None`` = it was not rolled back. The peer is told how long calls take.
    """
    clock = SimpleNamespace(now_s=0.0)
    core: Any = importlib.import_module("self_improving_loop.core")
    core.time = SimpleNamespace(time=lambda: clock.now_s)
    found = []
    try:
        for number, life in enumerate(calls):
            host = Host()
            loop = make(f"{folder}/{number}", host)

            def call(success: bool, took_s: float, loop: Any = loop) -> Any:
                def agent() -> str:
                    clock.now_s += took_s
                    if not success:
                        fail()
                    return fine()

                return loop.track("a", "answer", agent)

            for at in range(before):
                call(*life[at])
            host.patch = {"level": 2}
            while not host.applied:
                call(False, 1.0)
            found.append(
                next((at for at, each in enumerate(life[before:], 1) if call(*each)["rollback_executed"]), None)
            )
    finally:
        core.time = time
    return {"calls": found}


def results(folder: str) -> dict[str, Any]:
    """Return the result of a successful call if the notifier, the text of the task, or the store makes trouble."""

    def call(loop: Any, task: str = "answer") -> bool:
        try:
            return bool(loop.track("a", task, fine)["result"] == "done")
        except Exception:
            return False

    def judged(name: str, fails: bool) -> bool:
        """Call a tenth time after a patch, which is the first call after which the peer rolls back and tells it."""
        host = Host({"level": 2})
        loop = make(f"{folder}/{name}", host)
        for _ in range(20):
            loop.track("a", "answer", fine)
        while not host.applied:
            loop.track("a", "answer", fail)
        for _ in range(9):
            loop.track("a", "answer", fail)
        host.fails = fails
        return call(loop)

    surrogate = call(make(f"{folder}/text"), "broken \ud800 text")
    loop = make(f"{folder}/store")
    Path(folder, "store", "traces.jsonl").mkdir()
    return {
        "nothing": judged("nothing", fails=False),
        "notifier": judged("notifier", fails=True),
        "text": surrogate,
        "store": call(loop),
    }


def write(folder: str, agents: Sequence[str], size: int) -> dict[str, Any]:
    """Let agents fail until each has a patch of so many characters; a file ``begun`` tells the first one."""
    host = Host({"text": "x" * size})
    loop = make(folder, host)
    for number, agent in enumerate(agents):
        while host.applied <= number:
            loop.track(agent, "answer", fail)
        Path(folder, "begun").touch()
    return {"applied": host.applied}


def version() -> dict[str, Any]:
    return {"version": importlib.import_module("importlib.metadata").version("self-improving-loop")}


OPERATIONS: dict[str, Callable[..., dict[str, Any]]] = {
    each.__name__: each for each in (fill, cost, lives, results, write, version)
}


def main() -> None:
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = OPERATIONS[request.pop("op")](**request)
            except Exception as error:  # whatever the peer raises is an answer
                answer = {"error": f"{type(error).__name__}: {error}"}
            with suppress(BrokenPipeError):
                answers.write(f"{json.dumps(answer)}\n")
                answers.flush()


if __name__ == "__main__":
    main()
