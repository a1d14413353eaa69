"""Cost of a turn, beside the peer ``noos`` in its own environment, and what a whole monitor's turn costs.

The peer's part needs ``.venv-noos`` (``make bench`` makes it); without it the rows about the peer are left out.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import scope_drift
from peers import noos
from peers.client import Peer
from showing import ablation, row, say

import coherence.compat as compat
from coherence import EmbeddingCache, Monitor
from coherence.providers import HashingEmbedder, MiniLMEmbedder

ROOT = Path(__file__).resolve().parents[2]
NOOS = ROOT / ".venv-noos" / "bin" / "python"
WORDS = "the agent reads a file and runs tests again because one failed with an import error in line parser".split()
SIZES = ((100, 80.0, 600), (4_000, 250.0, 120))
"""Characters of an answer, microseconds a turn may take, turns."""


def texts(chars: int, n: int) -> list[tuple[str, str]]:
    rng = random.Random(chars)

    def text(length: int) -> str:
        words: list[str] = []
        while sum(map(len, words)) + len(words) < length:
            words.append(rng.choice(WORDS) + (str(rng.randrange(99)) if rng.random() < 0.1 else ""))
        return " ".join(words)[:length]

    return [(text(31), text(chars)) for _ in range(n)]


def embedded(pairs: Sequence[tuple[str, str]]) -> EmbeddingCache:
    """Return a cache that knows the texts: what embedding costs is no part of a turn here."""
    cache = EmbeddingCache(HashingEmbedder(384), max_texts=10_000)
    cache.make([text for pair in pairs for text in pair], time.monotonic() + 600, [])
    return cache


def classic(embedder: EmbeddingCache | Literal[False]) -> Any:
    """Return the classic API, its regulators with this embedder."""

    class Regulator:
        for_user = partial(compat.Regulator.for_user, embedder=embedder)

    return SimpleNamespace(Regulator=Regulator, LLMEvent=compat.LLMEvent)


def whole_turns(pairs: Sequence[tuple[str, str]], *, tick: str) -> float:
    """Median microseconds of a turn through a monitor in memory, its texts embedded beforehand."""
    took = []
    with Monitor(embedder=embedded(pairs), config={"tick": tick}) as monitor:
        for asked, answered in pairs:
            started = time.perf_counter_ns()
            monitor.message("user", asked)
            monitor.message("assistant", answered)
            monitor.usage(tokens_in=100, tokens_out=20)
            monitor.decide()
            took.append((time.perf_counter_ns() - started) / 1e3)
    return statistics.median(took[len(took) // 5 :])


def in_a_fresh_process(operation: str) -> dict[str, Any]:
    """Run an operation on ours in a process of its own."""
    result = subprocess.run([sys.executable, __file__, operation], check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def ours() -> None:
    for chars, target, n in SIZES:
        pairs = texts(chars, n)
        turn = noos.turns(classic(False), texts=pairs)["median_us"]
        row(f"a turn of {chars:,} characters by words alone, compat.Regulator", turn, target, " us")
        turn = noos.turns(classic(embedded(pairs)), texts=pairs)["median_us"]
        ablation("  with vectors that are there already", turn, " us")
        ablation("  the same, a monitor", whole_turns(pairs, tick="manual"), " us")


def drift(scores: Sequence[float]) -> float:
    """AUROC of scores of right answers, then of swapped ones."""
    half = len(scores) // 2
    return scope_drift.auroc(np.array(scores[:half]), np.array(scores[half:]))


def against_noos() -> None:
    if not NOOS.exists():
        say("noos 0.1.0, side by side", "make bench", "", "not installed")
        return
    with Peer(NOOS, Path(__file__).parent / "peers" / "noos.py", limit_s=300) as peer:
        say("beside noos " + str(peer.ask(op="version")["version"]), "ours", "theirs")
        for chars, _, n in SIZES:
            pairs = texts(chars, n)
            rounds = [(noos.turns(classic(False), texts=pairs), peer.ask(op="turns", texts=pairs)) for _ in range(3)]
            mine, theirs = (min(each[at]["median_us"] for each in rounds) for at in (0, 1))
            say(
                f"a turn of {chars:,} characters by words alone",
                f"{mine:.0f} us",
                f"{theirs:.0f} us",
                f"{mine / theirs:.1f}x",
            )


def long() -> None:
    """Print what many topics cost, and how well both tell answers that are off the task."""
    row("start of a turn after 10,000 topics", noos.topics(classic(False), known=10_000)["median_us"], 100, " us")
    row("memory growth from event 20,000 to 100,000, compat.Regulator", in_a_fresh_process("--growth")["mb"], 2, " MB")
    if not NOOS.exists():
        return
    with Peer(NOOS, Path(__file__).parent / "peers" / "noos.py", limit_s=900) as peer:
        mine = noos.topics(classic(False), known=10_000)["cpu_us"]
        theirs = peer.ask(op="topics", known=10_000)["cpu_us"]
        what = "CPU of the start of a turn after 10,000 topics"
        say(what, f"{mine:.0f} us", f"{theirs:,.0f} us", f"{theirs / mine:.0f}x")
        items = scope_drift.own("held_out")
        for name, with_input in (("task with its input", True), ("instruction only", False)):
            tasks = [scope_drift.task_of(item, with_input) for item in items]
            swapped = [items[(at + 37) % len(items)].answer for at in range(len(items))]
            pairs = [*zip(tasks, (item.answer for item in items), strict=True), *zip(tasks, swapped, strict=True)]
            answers = noos.drifts(compat, pairs=pairs), peer.ask(op="drifts", pairs=pairs)
            mine, theirs = (drift(each["scores"]) for each in answers)
            say(f"drift of swapped answers, AUROC, {name}", f"{mine:.3f}", f"{theirs:.3f}")


LONG = 52_000
"""Characters of a long result."""


def long_text(kind: str, seed: int) -> str:
    """Return a result of 52,000 characters."""
    rng = random.Random(seed)

    def said(least: int, most: int) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(least, most)))

    def line() -> str:
        match kind:
            case "prose":
                return f"{said(8, 20).capitalize()} {rng.randrange(10**4)}. "
            case "JSON":
                made = {"id": rng.randrange(10**7), "name": said(3, 3), "mail": f"u{rng.randrange(10**5)}@example.org"}
                return json.dumps({**made, "price": rng.randrange(10**5) / 100, "ok": True}) + ", "
            case "log":
                clock = f"10:{rng.randint(10, 59)}:{rng.randint(10, 59)},{rng.randrange(1000):03}"
                stamp = f"2024-05-{rng.randint(10, 28)} {clock}"
                request = f"request {rng.getrandbits(32):08x} in {rng.randrange(900)} ms"
                return f"{stamp} INFO [worker-{rng.randrange(9)}] app.{said(1, 1)}: handled {request}\n"
        name = f"{said(2, 2).replace(' ', '_')}_{rng.randrange(99)}"
        return f"def {name}(value):\n    # {said(4, 9)}\n    return value + 1\n\n"

    parts, size = [""], 0
    while size < LONG:
        parts.append(line())
        size += len(parts[-1])
    return "".join(parts)[:LONG]


def after_a_long_result(kind: str, pairs: int = 6) -> tuple[float, float]:
    """Median CPU milliseconds of a result of 52 kB and the decision after it, and of embedding one, in turns."""
    model = MiniLMEmbedder()
    model.embed("load the model")
    took: tuple[list[float], list[float]] = [], []
    with Monitor(goal="fix the parser", embedder=EmbeddingCache(model), config={"tick": "manual"}) as monitor:
        for seed in range(2 * pairs):
            text, started = long_text(kind, seed), time.process_time()
            if seed % 2:
                model.embed(text)
            else:
                monitor.tool_result(text)
                monitor.decide()
            took[seed % 2].append((time.process_time() - started) * 1e3)
    ours, alone = (statistics.median(each[2:]) for each in took)
    return ours, alone


def long_results() -> None:
    for kind in ("prose", "JSON", "log", "code"):
        ours, alone = after_a_long_result(kind)
        row(f"decide() after 52 kB of {kind}, over embedding it ({alone:.0f} ms CPU)", ours / alone, 1.3, "x")


def main() -> None:
    ours()
    long_results()
    against_noos()


if __name__ == "__main__":
    if "--growth" in sys.argv:
        sys.stdout.write(json.dumps(noos.growth(classic(False))))
    elif "--long" in sys.argv:
        long()
    else:
        main()
