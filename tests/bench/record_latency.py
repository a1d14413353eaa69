"""Latency of the hot path: recording and deciding, alone and in every kind of trouble.

Every row is measured in a process of its own: p50, p99.9 and the largest of 2,000 recordings (400 with full
durability), and of 20 decisions.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from showing import say

from coherence import Monitor
from coherence.monitor.monitor import Durability

LONG = 200_000
CASES = ("alone", "backlog", "store locked", "four busy threads")


def texts(count: int) -> list[str]:
    """Return long results, of which no two are equal."""
    words = Path(__file__).read_text().split()
    body = " ".join(words * (LONG // sum(len(word) + 1 for word in words) + 1))[: LONG - 10]
    return [f"{number:9} {body}" for number in range(count)]


def measure(case: str, durability: Durability, folder: Path) -> dict[str, list[float]]:
    """Record and decide; return the seconds that each call took."""
    path = folder / "s.db"
    m = Monitor(store=path, durability=durability, goal="make the tests pass")
    m.tool_result("warm")
    m.decide()
    stop = threading.Event()
    if case == "four busy threads":
        for _ in range(4):
            threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(stop.is_set, True)], daemon=True).start()
    if case == "backlog":
        for text in texts(110):
            m.tool_result(text)
    other = sqlite3.connect(path, isolation_level=None)
    if case == "store locked":
        m.flush()
        other.execute("BEGIN IMMEDIATE")
        m.tool_result("the one that waits")
    recorded, decided = [], []
    for number in range(400 if durability == "full" else 2_000):
        began = time.perf_counter()
        m.tool_call("Bash", {"command": f"pytest -q tests/test_{number}.py"}) if number % 2 else m.tool_result(
            "3 passed"
        )
        recorded.append(time.perf_counter() - began)
        if number % 100 == 99:
            time.sleep(0.01)
    for number in range(20):
        m.message("assistant", f"Now I look at file {number}.")
        began = time.perf_counter()
        m.decide()
        decided.append(time.perf_counter() - began)
    stop.set()
    if case == "store locked":
        other.execute("ROLLBACK")
    other.close()
    m.close()
    return {"record": recorded, "decide": decided}


def fsync_s(folder: Path) -> float:
    """Return the median seconds of an fsync of a small write here."""
    took = []
    with (folder / "probe").open("wb", buffering=0) as file:
        for _ in range(50):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return sorted(took)[25]


def shown(seconds: list[float]) -> str:
    """Return p50, p99.9 and the largest in milliseconds."""
    ordered = sorted(seconds)
    far = ordered[min(int(len(ordered) * 0.999), len(ordered) - 1)]
    return f"{ordered[len(ordered) // 2] * 1e3:.3f}, {far * 1e3:.2f}, {ordered[-1] * 1e3:.1f} ms"


def main() -> None:
    """Print a row for every case."""
    with tempfile.TemporaryDirectory() as name:
        say("an fsync of 4 kB here", f"{fsync_s(Path(name)) * 1e3:.2f} ms", "")
    for durability, target in (("batched", "p99.9 <= 5, max <= 50 ms"), ("full", "its fsync more")):
        for case in CASES:
            with tempfile.TemporaryDirectory() as name:
                command = [sys.executable, __file__, case, durability, name]
                found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            say(f"record, {durability}, {case}: p50, p99.9, max", shown(found["record"]), target)
            say(f"  decide, {durability}, {case}", shown(found["decide"]), "timeout_s is 2 s")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        kind: Durability = "full" if sys.argv[2] == "full" else "batched"
        print(json.dumps(measure(sys.argv[1], kind, Path(sys.argv[3]))))
    else:
        main()
