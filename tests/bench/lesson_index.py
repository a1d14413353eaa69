"""Accuracy, speed and size of the vector index of lessons; asserts nothing.

Run as ``python tests/bench/lesson_index.py`` (20,000 real sentences, 1,000,000 synthesised vectors), or with
``--texts 100000``. Embedding a sentence takes some milliseconds; the vectors are kept in ``.bench/`` for the next time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from showing import row, say

from coherence.lessons.index import LessonIndex, nearest_rows
from coherence.lessons.search import SAVE_EVERY
from coherence.providers.minilm import MiniLMEmbedder

Half = npt.NDArray[np.float16]
D = 384
QUERIES = 300
CACHE = Path(".bench")
SLICE_WORDS = 12
CENTRES = 20_000
CHUNK = 25_000


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def real_texts(count: int) -> list[str]:
    """Return different sentences of recorded runs and pages, in random order, then slices of 12 words of them."""
    found: dict[str, None] = {}
    whole: list[str] = [path.read_text() for path in sorted(Path("docs").glob("*.md"))]
    for path in sorted([*Path("tests/data/runs").glob("*.gz"), *Path("examples/data").glob("*.gz")]):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                whole.extend(strings(json.loads(line)))
    for text in whole:
        found.update(
            dict.fromkeys(part.strip()[:300] for part in re.split(r"\n+|(?<=[.!?])\s", text) if len(part) > 20)
        )
    texts = list(found)
    random.Random(1).shuffle(texts)
    for text in list(texts):
        words = text.split()
        for start in range(0, len(words) - SLICE_WORDS, SLICE_WORDS // 2):
            found.setdefault(" ".join(words[start : start + SLICE_WORDS]))
    slices = list(found)[len(texts) :]
    random.Random(2).shuffle(slices)
    return [*texts, *slices][: count + QUERIES]


def real_vectors(count: int) -> Half:
    """Return the vectors of that many sentences and of the queries behind them."""
    texts = real_texts(count)
    path = CACHE / f"minilm-{len(texts)}.npy"
    if not path.exists():
        embed = MiniLMEmbedder().embed
        CACHE.mkdir(exist_ok=True)
        np.save(path, np.array([embed(text) for text in texts], np.float16))
    vectors: Half = np.load(path)
    return vectors


def synthesised(count: int, seed: int) -> npt.NDArray[np.float32]:
    """Return vectors around 20,000 centres; like real ones, few directions hold most of what differs (power law)."""
    spectrum = (np.arange(1, D + 1) ** -0.5).astype(np.float32)
    centres = np.random.default_rng(0).standard_normal((CENTRES, D), np.float32)
    rng = np.random.default_rng(seed)
    mixed = centres[rng.integers(0, CENTRES, count)] + 0.6 * rng.standard_normal((count, D), np.float32)
    return mixed * spectrum


def anonymous_mb() -> float:
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def timed_ms(action: Any, inputs: Any) -> list[float]:
    times = []
    for each in inputs:
        started = time.perf_counter_ns()
        action(each)
        times.append((time.perf_counter_ns() - started) / 1e6)
    return times


def recall(index: LessonIndex, chunks: Iterable[Any], queries: Any, k: int = 10) -> float:
    """Return the share of the exact ``k`` nearest, of all vectors as they were given, that a search gives."""
    units = queries / np.linalg.norm(queries.astype(np.float32), axis=1)[:, None]
    best = np.empty((len(queries), 0), np.float32)
    for part in chunks:
        rows = part.astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        best = np.sort(np.concatenate([best, units @ rows.T], axis=1))[:, -k:]
    found = [np.array([cosine for _, cosine in index.search(query, k)]) for query in queries]
    return float(np.mean([np.sum(each >= least - 1e-3) for each, least in zip(found, best[:, 0], strict=True)]) / k)


def measure_exact(n: int, vectors: Any, queries: Any, target_ms: float | None) -> None:
    index = LessonIndex("bench", D)
    index.add(range(n), vectors, newest=n)
    times = timed_ms(lambda query: index.search(query, 100), queries)
    report_times(f"{n:,} real (flat), search k=100", times, target_ms)


def report_times(label: str, times: list[float], target_ms: float | None) -> None:
    if target_ms is None:
        say(f"{label}, p50", f"{statistics.median(times):.3f} ms", "-")
    else:
        row(f"{label}, p50", statistics.median(times), target_ms, " ms")
    say(f"{label}, p99", f"{sorted(times)[int(0.99 * len(times))]:.3f} ms", "-")


def measure(
    name: str,
    chunks: Callable[[], Iterable[Any]],
    queries: Any,
    target_ms: float | None = None,
    target_recall: float = 0.99,
) -> None:
    folder = CACHE / "index"
    shutil.rmtree(folder, ignore_errors=True)
    index = LessonIndex("bench", D)
    n = 0
    for part in chunks():
        index.add(range(n + 1, n + 1 + len(part)), part, newest=n + len(part))
        n += len(part)
    say(f"{name}, save all", f"{timed_ms(lambda _: index.save(folder, np.arange(n) + 1), [0])[0]:,.0f} ms", "-")
    loading = statistics.median(timed_ms(lambda _: LessonIndex.load(folder, "bench", D), range(5)))
    if n in (100_000, 1_000_000):
        row(f"{name}, load beyond the import of faiss", loading, {100_000: 60.0, 1_000_000: 600.0}[n], " ms")
    else:
        say(f"{name}, load", f"{loading:,.2f} ms", "-")
    timed_ms(lambda query: index.search(query, 100), queries)  # maps the pages
    times = timed_ms(lambda query: index.search(query, 100), queries)
    report_times(f"{name} (binary), search k=100", times, target_ms)
    row(f"{name}, recall@10", 100.0 * recall(index, chunks(), queries), 100.0 * target_recall, " %", least=True)
    if n >= 100_000:
        more = synthesised(1_000, 5)
        adding = timed_ms(lambda at: index.add([n + 1 + at], more[at : at + 1], n + 1 + at), range(len(more)))
        row(f"{name}, add one, mean of 1,000", 1_000 * statistics.fmean(adding), 50.0, " us")
        say(f"{name}, add one, median", f"{1_000 * statistics.median(adding):.1f} us", "-")
        say(f"{name}, index in memory", f"{index.memory_bytes / 1e6:,.0f} MB", "-")
        row(f"{name}, anonymous memory of the process", anonymous_mb(), 300.0, " MB")
    shutil.rmtree(folder)


def imports() -> None:
    """Pay for faiss before anything is timed; on a cold start it is most of the first large search."""
    started = time.perf_counter()
    nearest_rows(np.ones((1, 8), np.float16), np.ones(8, np.float32), 1)
    say("import of faiss and its first call", f"{1e3 * (time.perf_counter() - started):.0f} ms", "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=20_000, help="real sentences to embed, up to about 100,000")
    parser.add_argument("--synthesised", type=int, default=1_000_000, help="synthesised vectors, 0 = none")
    options = parser.parse_args()
    imports()
    real = real_vectors(options.texts)
    vectors, queries = real[:-QUERIES], real[-QUERIES:].copy()
    for n, target in ((100, 0.1), (1_000, None), (SAVE_EVERY, None)):
        if n <= len(vectors):
            measure_exact(n, vectors[:n], queries, target)
    for n in sorted({10_000, 50_000, len(vectors)}):
        if n <= len(vectors):
            measure(f"{n:,} real", partial(iter, [vectors[:n]]), queries, 1.5 if n == 100_000 else None)
    if options.synthesised:
        steps = options.synthesised // CHUNK

        def made() -> Iterator[Any]:
            return (synthesised(CHUNK, seed=100 + step) for step in range(steps))

        measure(f"{steps * CHUNK:,} synthesised", made, synthesised(QUERIES, seed=4), 11.0, 0.97)


if __name__ == "__main__":
    main()
