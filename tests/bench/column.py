"""Cost of recording, deciding, replaying and resuming, beside the peer ``soma-ai`` in its own environment.

The peer's part needs ``.venv-soma`` (``make bench`` makes it); without it the rows about the peer are left out.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from peers.client import Peer
from showing import resident_mb, row, say

from coherence import EmbeddingCache, Monitor, Store
from coherence.monitor.replay import Replay, Report
from coherence.providers import HashingEmbedder, MiniLMEmbedder
from coherence.providers.readers import read_transcripts
from coherence.report.score import score_transcript
from coherence.store.rows import EventRow

ROOT = Path(__file__).resolve().parents[2]
SOMA = ROOT / ".venv-soma" / "bin" / "python"
WORDS = "the agent reads a file and runs tests again because one failed with an import error in line parser".split()
MANUAL = {"tick": "manual"}
RUNS = 1
"""Shipped runs of each file that are replayed."""


def text(length: int, seed: int) -> str:
    rng = random.Random(seed)
    found: list[str] = []
    while sum(map(len, found)) + len(found) < length:
        found.append(rng.choice(WORDS))
    return f"{seed} {' '.join(found)}"[:length]


def words(seed: int) -> str:
    """Return a text of about 100 tokens of the shipped model."""
    return f"{seed}: " + " ".join(random.Random(seed).choices(WORDS, k=93))


class Recorded:
    """Times of recording events one after the other, in microseconds."""

    def __init__(self, times: Sequence[float], cpu_us: float) -> None:
        tenth = max(len(times) // 10, 1)
        self.median = statistics.median(times)
        self.p99 = sorted(times)[int(len(times) * 0.99)]
        self.first, self.last = statistics.median(times[:tenth]), statistics.median(times[-tenth:])
        self.cpu_us = cpu_us


def record(store: Path | None, events: int, length: int, pause_s: float = 0.0) -> Recorded:
    """Record tool results without a tick; with a pause the background thread is idle and must be woken each time."""
    texts = [text(length, seed) for seed in range(100)]
    times = []
    with Monitor(store=store, goal="fix the parser", embedder=HashingEmbedder(), config=MANUAL) as monitor:
        cpu = time.process_time()
        for at in range(events):
            started = time.perf_counter_ns()
            monitor.tool_result(texts[at % 100])
            times.append((time.perf_counter_ns() - started) / 1e3)
            if pause_s:
                time.sleep(pause_s)
        monitor.flush()
        cpu = time.process_time() - cpu
    return Recorded(times, cpu / events * 1e6)


def recording(folder: Path) -> None:
    for length, limit, cpu_limit, count in ((120, 40, 80, 3_000), (6_000, 200, 900, 1_500)):
        name = f"record an event of {length:,} characters, SQLite"
        spaced = record(folder / f"spaced{length}.db", 300, length, pause_s=0.005)
        burst = record(folder / f"burst{length}.db", count, length)
        row(f"{name}, one every 5 ms: median", spaced.median, limit, " us")
        row(f"{name}, as fast as it goes: median", burst.median, limit, " us")
        row(f"{name}, as fast as it goes: 99 %", burst.p99 / 1e3, 5, " ms")
        row(f"{name}: CPU of all threads", burst.cpu_us, cpu_limit, " us")
    row("record an event of 120 characters, in memory: median", record(None, 5_000, 120).median, 10, " us")


def growing(folder: Path) -> None:
    long = record(folder / "long.db", 100_000, 120)
    row("record, SQLite: last tenth of 100,000 events over the first", long.last / long.first, 1.5, "x")
    row("memory growth from event 200,000 to 1,000,000", in_a_fresh_process(), 1, " MB")


def ticking() -> None:
    """A tick with one new message of 100 tokens against embedding that message alone, in turns."""
    embedder = MiniLMEmbedder()
    texts = [words(seed) for seed in range(50)]
    ours, alone = [], []
    with Monitor(goal="fix the parser", embedder=embedder, config=MANUAL) as monitor:
        for at, said in enumerate(texts):
            started = time.perf_counter()
            monitor.message("assistant", said)
            monitor.decide()
            middle = time.perf_counter()
            embedder.embed(f"again {said}")
            if at >= 10:
                ours.append(middle - started)
                alone.append(time.perf_counter() - middle)
    share = statistics.median(ours) / statistics.median(alone)
    row(f"a tick with a new message over embedding it ({statistics.median(alone) * 1e3:.1f} ms)", share, 1.1, "x")


def deciding() -> None:
    texts = [text(200, seed) for seed in range(400)]
    cache = EmbeddingCache(HashingEmbedder())
    cache.make(texts, time.monotonic() + 60, [])
    times: dict[str, list[float]] = {"message": [], "usage": [], "unchanged": [], "measured already": []}
    with Monitor(goal="fix the parser", embedder=cache, config=MANUAL) as monitor:
        for said in texts:
            for what in ("message", "usage", "unchanged"):
                if what == "message":
                    monitor.message("assistant", said)
                elif what == "usage":
                    monitor.usage(tokens_in=900, tokens_out=100)
                started = time.perf_counter_ns()
                monitor.decide()
                times[what].append((time.perf_counter_ns() - started) / 1e3)
    row("decide() on an unchanged state", statistics.median(times["unchanged"]), 20, " us")
    row("decide() after usage", statistics.median(times["usage"]), 120, " us")
    row("decide() after a message whose vector is there", statistics.median(times["message"]), 300, " us")
    with Monitor(goal="fix the parser", embedder=cache) as monitor:
        for said in texts[:100]:
            monitor.message("assistant", said)
            time.sleep(0.02)
            started = time.perf_counter_ns()
            monitor.decide()
            times["measured already"].append((time.perf_counter_ns() - started) / 1e3)
    row(
        "decide() 20 ms after a message, with the default tick policy",
        statistics.median(times["measured already"]),
        60,
        " us",
    )


def session(path: Path, embedder: HashingEmbedder | MiniLMEmbedder, events: int) -> float:
    """Record a varied session with a tick after each step; return the seconds it took."""
    rng = random.Random(7)
    started = time.perf_counter()
    with Monitor(agent="bench", goal="fix the parser", store=path, embedder=embedder, budget={"tokens": 10**9}) as m:
        made = 0
        while made < events:
            m.tool_call("Bash", {"command": text(30, rng.randrange(10**6))})
            m.tool_result(text(300, rng.randrange(10**6)), error=rng.random() < 0.1)
            m.message("assistant", text(200, rng.randrange(10**6)))
            m.usage(tokens_in=rng.randrange(500, 2_000), tokens_out=100, cost_usd=0.003)
            made += 4
    return time.perf_counter() - started


def replaying(folder: Path) -> None:
    path = folder / "replay.db"
    session(path, HashingEmbedder(), 1_500)
    with Store(path) as store:
        report, took = replayed(store)
    row(f"replay, ticks equal bit for bit, of {report.ticks}", report.equal, report.ticks, "", least=True)
    row(f"replay, events a second (of {report.events:,}, ticks included)", report.events / took, 6_000, "", least=True)
    embedder = MiniLMEmbedder()
    embedder.embed("load the model")
    with Store(folder / "shipped.db") as store:
        started = time.perf_counter()
        for file in sorted((ROOT / "examples" / "data").glob("*.jsonl.gz")):
            for transcript in read_transcripts(file)[:RUNS]:
                score_transcript(transcript, embedder=EmbeddingCache(embedder), store=store)
        live = time.perf_counter() - started
        report, took = replayed(store)
    row(
        f"shipped runs, {RUNS} of each file, ticks equal, of {report.ticks}", report.equal, report.ticks, "", least=True
    )
    row(f"replay of them against live with embedding ({live:.1f} s)", live / took, 25, "x", least=True)


def replayed(store: Store) -> tuple[Report, float]:
    """Replay all sessions of a store; return the sums and the seconds."""
    total = Report(agent="all", session="all")
    started = time.perf_counter()
    for found in store.sessions():
        report = Replay(store, found).report()
        total.events += report.events
        total.ticks += report.ticks
        total.equal += report.equal
    return total, time.perf_counter() - started


RESUME = """
import sys, time
from coherence.providers import HashingEmbedder
from coherence.monitor.monitor import Monitor
import coherence.monitor.session, coherence.store.store, numpy
started = time.perf_counter()
m = Monitor(agent="a", store=sys.argv[1], embedder=HashingEmbedder(), config={"tick": "manual"}, resume=True)
took = time.perf_counter() - started
m.tool_result("boom", error=True)
m.decide()
print(took * 1e3, repr(m.pressure))
"""

FILL = """
import os, signal, sys
from coherence.providers import HashingEmbedder
from coherence.monitor.monitor import Monitor
m = Monitor(agent="a", store=sys.argv[1], embedder=HashingEmbedder(), config={"tick": "manual"}, goal="fix it")
for at in range(int(sys.argv[2]) // 2):
    m.tool_result(f"result {at} of the call", error=at % 7 == 0)
    m.usage(tokens_in=900 + at % 100, tokens_out=100)
    if at % 10 == 0:
        m.decide()
m.flush()
if sys.argv[3] == "stay":
    m.tool_result("boom", error=True)
    m.decide()
    print(repr(m.pressure))
    sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def others(path: Path, count: int) -> None:
    """Write the events of another agent to a store."""
    with Store(path) as store, store.transaction() as transaction:
        session = transaction.add_session(
            session="1", agent="other", parent=None, source="api", started=1.8e9, config="{}"
        )
        result = {"type": "tool_result", "content": "", "error": False}
        for first in range(1, count + 1, 1_000):
            rows = [
                EventRow(
                    seq, 1.8e9 + seq, "tool_result", json.dumps({**result, "content": f"result {seq} of the call"})
                )
                for seq in range(first, min(first + 1_000, count + 1))
            ]
            transaction.add_events(session, rows)


def resuming(folder: Path, *, compared: bool = False) -> None:
    """Kill a process that has just written, and resume in a new one, in a store in which most events are another's."""
    events = 95_236 if compared else 1_902  # with a tick every 20 events 99,999 and 1,999 rows: the longest tail
    path = folder / "resume.db"
    if not compared:
        others(path, 98_000)
    subprocess.run([sys.executable, "-c", FILL, path, str(events), "go"], check=False)
    with Store(path) as store:
        rows = store.count_events()
    with closing(sqlite3.connect(path)) as base:
        ((tail,),) = base.execute("SELECT (SELECT max(seq) FROM events WHERE agent = 'a') - max(seq) FROM snapshots")
    out = subprocess.run([sys.executable, "-c", RESUME, path], check=True, capture_output=True, text=True).stdout
    took, pressure = out.split()
    row(f"resume an agent in a store of {rows:,} events, {tail} after a snapshot", float(took), 40, " ms")
    if not compared:
        return
    other = subprocess.run(
        [sys.executable, "-c", FILL, folder / "stay.db", str(events), "stay"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert other.returncode == -signal.SIGKILL, other.stderr
    same = "the same" if other.stdout.strip() == pressure else f"{other.stdout.strip()} and {pressure}"
    say("  pressure after the same next action, with and without the kill", same, "the same")


def growth_mb() -> float:
    """Resident memory after a million events over that after 200,000."""
    measured = []
    with Monitor(goal="fix the parser", embedder=HashingEmbedder(), config=MANUAL) as monitor:
        for at in range(1, 1_000_001):
            monitor.tool_result(f"result {at}")
            if at % 1_000 == 0:
                monitor.flush()  # or most of them would be dropped
            if at in (200_000, 1_000_000):
                measured.append(resident_mb())
    return measured[1] - measured[0]


def errors_until(mode: str, good: int) -> int | None:
    with Monitor(goal="fix the parser", embedder=HashingEmbedder()) as monitor:
        for at in range(good):
            monitor.tool_call("Bash", {"command": f"step {at}"})
            monitor.tool_result(text(120, at))
        for bad in range(1, 41):
            monitor.tool_call("Bash", {"command": f"fails {bad}"})
            monitor.tool_result(f"Error: boom {bad}", error=True)
            monitor.decide()
            if monitor.mode in ((mode, "block") if mode == "warn" else (mode,)):
                return bad
    return None


def against_soma(folder: Path) -> None:
    if not SOMA.exists():
        say("soma-ai 2026.4.30, side by side", "make bench", "", "not installed")
        return
    with Peer(SOMA, Path(__file__).parent / "peers" / "soma.py") as peer:
        say("beside soma-ai " + str(peer.ask(op="version")["version"]), "ours", "theirs")
        for length, events in ((120, 100), (6_000, 8)):
            texts = [text(length, seed) for seed in range(100)]
            theirs = peer.ask(op="record", n=events, warm=5, texts=texts, audit=True)["median_us"]
            ours = record(folder / f"soma{length}.db", events, length, pause_s=0.002).median
            say(
                f"record an event of {length:,} characters",
                f"{ours:.0f} us",
                f"{theirs:,.0f} us",
                f"{theirs / ours:.0f}x",
            )


def verdicts_beside_soma(folder: Path) -> None:
    """Print what ours and the peer make of the same runs."""
    if not SOMA.exists():
        return
    with Peer(SOMA, Path(__file__).parent / "peers" / "soma.py") as peer:
        for good in (0, 30, 200):
            first = peer.ask(op="detect", good=good, bad=40)["first"]
            ours_first = f"{errors_until('warn', good)}, {errors_until('block', good)}"
            say(
                f"errors until warn, block, after {good} good actions", ours_first, f"{first['WARN']}, {first['BLOCK']}"
            )
        spike = peer.ask(op="spike", good=50, factor=100)
        ours_spike = spike_pressure()
        say("pressure at the first event of a x100 spike", f"{ours_spike:.2f}", f"{spike['pressures'][0]:.4f}")
        again = peer.ask(op="replay", n=500)
        path = folder / "equal.db"
        session(path, HashingEmbedder(), 500)
        with Store(path) as store:
            report, _ = replayed(store)
        equal = f"{report.equal} of {report.ticks}", f"{again['equal']} of {again['of']}"
        say("equal after a replay from the file alone", *equal)
        restart = peer.ask(op="restart", n=100)
        ours_restart = [next_pressure(folder / f"restart{cut}.db", cut=cut) for cut in (False, True)]
        theirs_restart = f"{restart['before']:.3f}, {restart['after']:.3f}"
        say(
            "pressure of the next action, without and with a restart",
            "{:.3f}, {:.3f}".format(*ours_restart),
            theirs_restart,
        )


def next_pressure(path: Path, *, cut: bool) -> float:
    """Pressure of a failing action after 100 good ones, with or without closing and opening in between."""
    monitor = Monitor(goal="fix the parser", store=path, embedder=HashingEmbedder())
    for at in range(100):
        monitor.tool_call("Bash", {"command": f"step {at}"})
        monitor.tool_result(text(120, at))
    if cut:
        monitor.close()
        monitor = Monitor(goal="fix the parser", store=path, embedder=HashingEmbedder())
    monitor.tool_call("Bash", {"command": "fails"})
    monitor.tool_result("Error: boom", error=True)
    with monitor:
        return monitor.pressure


def spike_pressure() -> float:
    rng = random.Random(3)
    with Monitor(goal="fix the parser", embedder=HashingEmbedder()) as monitor:
        for at in range(50):
            monitor.tool_call("Bash", {"command": f"step {at}"})
            monitor.tool_result(text(120, at))
            monitor.usage(tokens_in=rng.randrange(800, 1_200), tokens_out=100, cost_usd=0.004)
        monitor.usage(tokens_in=100_000, tokens_out=10_000, cost_usd=0.4)
        return monitor.pressure


def in_a_fresh_process() -> float:
    result = subprocess.run([sys.executable, __file__, "--growth"], check=True, capture_output=True, text=True)
    return float(result.stdout)


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        recording(folder)
        ticking()
        deciding()
        replaying(folder)
        resuming(folder)
        against_soma(folder)


def long() -> None:
    """Print what takes many events, and the judgements beside those of the peer."""
    with TemporaryDirectory() as name:
        growing(Path(name))
        resuming(Path(name), compared=True)
        verdicts_beside_soma(Path(name))


if __name__ == "__main__":
    if "--growth" in sys.argv:
        sys.stdout.write(str(growth_mb()))
    elif "--long" in sys.argv:
        long()
    else:
        main()
