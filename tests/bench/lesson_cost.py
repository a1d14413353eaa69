"""Cost of lessons beyond the embedding, beside a peer's at 100; asserts nothing.

Run as ``python tests/bench/lesson_cost.py`` (100 and 100,000 lessons), or with ``--million``. Vectors are known before:
those of lessons and questions are MiniLM's, those of the lessons in between lie around them. A stranger's embedder,
which may hang, is asked on another thread; what that costs is told apart. Files are in the page cache.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lesson_copies import copied
from lesson_vectors import Given, Learning, as_shipped
from lessons.errors import builders as making
from peers.client import Peer
from showing import row, say

from coherence.lessons import LessonStore
from coherence.lessons.intake import make_new
from coherence.lessons.normal import normalise

ERRORS = Path(__file__).resolve().parents[1] / "lessons" / "errors"
SOMA = Path(".venv-soma/bin/python")
COMPARED = 100
"""Characters of a fix that are compared: the peer keeps 200, before white space is made even."""
ROUNDS = 2
QUERY_MS = {100: 0.6, 100_000: 3.0, 1_000_000: 15.0}
RECORD_MS = 1.0
OPEN_MS = 200.0
MEMORY_MB = 300.0
OPENINGS = 7


class Asked(NamedTuple):
    """A question, and the fixes that are right."""

    text: str
    tool: str
    fixes: frozenset[str]


class Answered(NamedTuple):
    """Answer of a store to a question."""

    ms: float
    embedded: bool
    fix: str | None


class Told(NamedTuple):
    """Questions, and what both stores made of them."""

    asked: Sequence[Asked]
    ours: Sequence[Answered]
    theirs: Sequence[Answered]


def families(*names: str) -> list[making.Family]:
    return [family for name in names for family in making.load_families(ERRORS / f"families_{name}.jsonl")]


def again(made: Sequence[making.Lesson], seed: int) -> Iterator[Asked]:
    """Yield the same errors again, mostly in other words; right is every lesson about the same family and names."""
    rng = Random(seed)
    for lesson in made:
        asked = making.reoccurrence(lesson, rng)
        right = frozenset(plain(each.fix_text) for each in made if making.answers(each, asked))
        yield Asked(asked.text, asked.tool, right)


def in_same_words(made: Sequence[making.Lesson], seed: int) -> Iterator[Asked]:
    """Yield the same errors again, with other paths, numbers and ids only."""
    rng = Random(seed)
    for lesson in made:
        text = making.render(lesson.origin.errors[lesson.variant], lesson.origin, lesson.key, rng)
        yield Asked(text, lesson.tool, frozenset([plain(lesson.fix_text)]))


def unseen(n: int, seed: int) -> list[Asked]:
    return [Asked(each.text, each.tool, frozenset()) for each in making.never_seen(families("never_seen"), n, seed)]


def plain(fix: str) -> str:
    return " ".join(fix.split())[:COMPARED]


def different(questions: Iterable[Asked]) -> list[Asked]:
    """Leave out questions whose vector would be remembered from the one before."""
    return list({normalise(asked.text).text: asked for asked in questions}.values())


def fill(store: LessonStore, made: Sequence[making.Lesson | making.Distractor]) -> None:
    for at in range(0, len(made), 1_000):
        store.add(
            [
                make_new(
                    pattern=each.pattern,
                    error_text=each.error_text,
                    fix_text=each.fix_text,
                    tool=each.tool,
                    origin=None,
                    ts=1.8e9,
                )
                for each in made[at : at + 1_000]
            ]
        )


def ask(store: LessonStore, given: Given, questions: Iterable[Asked]) -> list[Answered]:
    """Put each question once."""
    answers = []
    for asked in questions:
        before = given.asked
        started = time.perf_counter_ns()
        found = store.query(asked.text, tool=asked.tool)
        ms = (time.perf_counter_ns() - started) / 1e6
        told = store.get(found[0].id) if found else None  # its fix as it was recorded
        answers.append(Answered(ms, given.asked > before, told.fix_text if told else None))
    return answers


def recording(store: LessonStore, made: Iterable[making.Lesson | making.Distractor]) -> list[float]:
    """Return the milliseconds of recording each lesson."""
    took = []
    for each in made:
        started = time.perf_counter_ns()
        store.record(pattern=each.pattern, error_text=each.error_text, fix_text=each.fix_text, tool=each.tool)
        took.append((time.perf_counter_ns() - started) / 1e6)
    return took


def p50(took: Iterable[float]) -> float:
    return statistics.median(took)


def p99(took: Iterable[float]) -> float:
    ordered = sorted(took)
    return ordered[int(0.99 * (len(ordered) - 1))]


def learned(folder: Path, made: Sequence[making.Lesson], questions: Iterable[Asked]) -> Given:
    """Return the vectors that a store of these lessons and these questions needs."""
    embedder = Learning()
    with LessonStore(folder / "learning.db", embedder=embedder, timeout_s=60) as store:
        fill(store, made)
        for asked in questions:
            store.query(asked.text, tool=asked.tool)
    return Given(embedder.known)


def report_queries(n: int, answers: Sequence[Answered], target: float) -> None:
    """Print the mixture, and both ways beside each other."""
    name = f"{n:,} lessons: query beyond the embedding"
    row(f"{name}, p50", p50(each.ms for each in answers), target, " ms")
    say(f"{name}, p99", f"{p99(each.ms for each in answers):.2f} ms", "-")
    for what, embedded in (("by equal signature", False), ("by meaning", True)):
        took = [each.ms for each in answers if each.embedded is embedded]
        if took:
            share = 100 * len(took) / len(answers)
            say(f"{name}, {what} ({share:.0f} %), p50", f"{p50(took):.2f} ms", "-")


def report_records(n: int, took: Sequence[float]) -> None:
    row(f"{n:,} lessons: record beyond the embedding, p50", p50(took), RECORD_MS, " ms")
    say(f"{n:,} lessons: record beyond the embedding, p99", f"{p99(took):.2f} ms", "-")


def hundred() -> None:
    """100 lessons, the peer with the same lessons and questions, in turns."""
    made = making.make_set(families("dev", "held_out"), 100)
    rounds = [different(again(made, seed)) for seed in range(ROUNDS)]
    same, never = different(in_same_words(made, 9)), different(unseen(300, 9))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        given = learned(Path(folder), made, [*(asked for each in rounds for asked in each), *same, *never])
        peer = None
        if SOMA.exists():
            peer = stack.enter_context(Peer(SOMA, Path(__file__).parent / "peers" / "soma_lessons.py"))
        path = Path(folder) / "lessons.db"
        with LessonStore(path, embedder=given) as store:
            took = recording(store, made)
        theirs_took = lessons_of(peer, made)
        told = []
        strangers: list[Answered] = []
        for questions in [*rounds, same, never]:
            with LessonStore(path, embedder=as_shipped(given)) as store:  # another one, which remembers no vector
                ask(store, given, unseen(20, 8))
                ours = ask(store, given, questions)
            with LessonStore(path, embedder=given) as store:
                ask(store, given, unseen(20, 8))
                strangers += ask(store, given, questions)
            told.append(Told(questions, ours, answers_of(peer, questions)))
        report_records(100, took)
        report_queries(100, [each for part in told[:ROUNDS] for each in part.ours], QUERY_MS[100])
        asked = [each.ms for each in strangers if each.embedded]
        say("100 lessons: query by meaning, with a stranger's embedder, p50", f"{p50(asked):.2f} ms", "-")
        if peer is None:
            say("soma-ai 2026.4.30, the same lessons and questions", "make bench", "", "not installed")
            return
        say("100 lessons, beside soma-ai's store", "ours", "theirs")
        say("record, p50", f"{p50(took):.2f} ms", f"{p50(theirs_took):.2f} ms")
        compare("the same errors again, mostly in other words", told[:ROUNDS])
        compare("the same errors in the same words", told[ROUNDS : ROUNDS + 1])
        compare("errors never seen", told[ROUNDS + 1 :])


def lessons_of(peer: Peer | None, made: Sequence[making.Lesson]) -> list[float]:
    if peer is None:
        return []
    rows = [(each.pattern, each.error_text, each.fix_text, each.tool) for each in made]
    return [float(ms) for ms in peer.ask(op="record", lessons=rows)["took_ms"]]


def answers_of(peer: Peer | None, questions: Sequence[Asked]) -> list[Answered]:
    if peer is None:
        return []
    told = peer.ask(op="query", questions=[(asked.text, asked.tool) for asked in questions])
    return [Answered(ms, False, fix) for ms, fix in zip(told["took_ms"], told["fixes"], strict=True)]


def compare(what: str, told: Sequence[Told]) -> None:
    """Print our figures beside the peer's: time, answers, and first answers whose fix is the right one."""
    asked = [each for part in told for each in part.asked]
    sides = [[each for part in told for each in part.ours], [each for part in told for each in part.theirs]]

    def both(figure: str, values: Iterable[str]) -> None:
        say(f"{what}: {figure}", *values)

    both("query, p50", (f"{p50(each.ms for each in side):.2f} ms" for side in sides))
    both("query, p99", (f"{p99(each.ms for each in side):.2f} ms" for side in sides))
    both("answered", (f"{100 * sum(each.fix is not None for each in side) / len(side):.1f} %" for side in sides))
    if any(each.fixes for each in asked):
        hits = [sum(plain(each.fix or "") in a.fixes for a, each in zip(asked, side, strict=True)) for side in sides]
        both("recall@1", (f"{found / len(asked):.3f}" for found in hits))


def many(folder: Path, n: int = 100_000, real: int = 1_000) -> tuple[Path, Given, list[Asked]]:
    """Many lessons; return their file, the vectors and questions about them."""
    made = making.make_set(families("dev", "held_out"), real)
    questions = different(again(made, 1))[:600]
    given = learned(folder, made, questions)
    path = folder / "lessons.db"
    started = time.perf_counter()
    with LessonStore(path, embedder=given) as store:
        fill(store, made)
        fill(store, making.distractors(n - len(made)))
        ask(store, given, unseen(1, 8))  # makes the index
    say(f"{n:,} lessons: making them", f"{time.perf_counter() - started:.0f} s", "-")
    measure_many(path, n, given, questions)
    return path, given, questions


def measure_many(path: Path, n: int, given: Given, questions: Sequence[Asked]) -> None:
    opened = in_fresh_processes(path)
    if n == 100_000:
        row(f"{n:,} lessons: open beyond imports, median", p50(each["open_ms"] for each in opened), OPEN_MS, " ms")
    else:
        say(f"{n:,} lessons: open beyond imports, median", f"{p50(each['open_ms'] for each in opened):.1f} ms", "-")
    whole = p50(each["open_ms"] + each["first_ms"] for each in opened)
    row(f"{n:,} lessons: open and the first query, median", whole, OPEN_MS if n == 100_000 else 600.0, " ms")
    memory = p50(each["anonymous_mb"] for each in opened)
    row(f"{n:,} lessons: anonymous memory after 100 queries", memory, MEMORY_MB, " MB")
    warm(path)
    with LessonStore(path, embedder=as_shipped(given)) as store:
        ask(store, given, questions[:100])
        report_queries(n, ask(store, given, questions[100:]), QUERY_MS[n])
        new = making.distractors(400, seed=99)
        report_records(n, recording(store, new[:300]))
        after = []
        for each, asked in zip(new[300:], questions, strict=False):
            recording(store, [each])
            after += ask(store, given, [asked])
        say(f"{n:,} lessons: query after every record, p50", f"{p50(each.ms for each in after):.2f} ms", "-")


def warm(path: Path) -> None:
    """Read the database and its index once, so that a query waits for no disk: some machines drop what lies idle."""
    for file in (path, *path.with_name(f"{path.name}.lessons").glob("index")):
        with file.open("rb") as opened:
            while opened.read(2**24):
                pass


def in_fresh_processes(path: Path) -> list[dict[str, float]]:
    """Open a file in several new processes, one after the other."""
    warm(path)
    found = []
    for _ in range(OPENINGS + 1):
        result = subprocess.run(
            [sys.executable, __file__, "--open", str(path)], check=True, capture_output=True, text=True
        )
        found.append(json.loads(result.stdout))
    return found[1:]


def open_once(path: Path) -> dict[str, float]:
    """Open a file and ask, with everything imported before."""
    import faiss
    import filelock
    import rapidfuzz.fuzz

    assert faiss and filelock and rapidfuzz.fuzz
    given = Given()
    texts = [f"widget {at}: cannot open the handle '{at}' of gate" for at in range(100)]
    started = time.perf_counter()
    store = LessonStore(path, embedder=given)
    opened = time.perf_counter()
    store.query(texts[0])
    first = time.perf_counter()
    for text in texts:
        store.query(text)
    memory = anonymous_mb()
    store.close()
    return {"open_ms": (opened - started) * 1e3, "first_ms": (first - opened) * 1e3, "anonymous_mb": memory}


def anonymous_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) * 1024 / 1e6


def million(path: Path, given: Given, questions: Sequence[Asked]) -> None:
    """1,000,000 lessons, most of them copies."""
    started = time.perf_counter()
    large = path.with_name("million.db")
    copied(path, large)
    with LessonStore(large, embedder=given) as store:
        ask(store, given, unseen(1, 8))  # makes the index
    say("1,000,000 lessons: making them and the index", f"{time.perf_counter() - started:.0f} s", "-")
    measure_many(large, 1_000_000, given, questions)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--million", action="store_true", help="1,000,000 lessons too: minutes, and 5 GB of disk")
    parser.add_argument("--open", type=Path, help="what a fresh process does")
    options = parser.parse_args(arguments)
    if options.open:
        sys.stdout.write(json.dumps(open_once(options.open)))
        return
    hundred()
    with tempfile.TemporaryDirectory() as folder:
        path, given, questions = many(Path(folder))
        if options.million:
            million(path, given, questions)


if __name__ == "__main__":
    main(sys.argv[1:])
