"""Finalizers, signal handlers and logging handlers that record while their own thread is inside the package."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Literal

import pytest

import coherence
from coherence import Monitor, Store
from coherence.core.events import Message, decode_event
from coherence.guard import Guard
from coherence.lessons import LessonStore
from coherence.monitor import worker
from coherence.providers import HashingEmbedder

ROOT = str(Path(coherence.__file__).parent)
MOST = 120
"""Interruptions of one test."""
Durability = Literal["batched", "full"]


def monitor(path: Path | None, durability: Durability = "batched", **options: Any) -> Monitor:
    return Monitor(store=path, durability=durability, embedder=HashingEmbedder(32), goal="fix the login", **options)


def said(path: Path) -> list[str]:
    """Return the messages of the only session, after checking that the store is whole."""
    with Store(path) as store:
        assert store.verify() == []
        (session,) = store.sessions()
        rows = list(store.events(session.id))
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        told = [decode_event(row.data) for row in rows if row.kind == "message"]
    return [event.content for event in told if isinstance(event, Message)]


@contextmanager
def interrupted(every: int, act: Callable[[int], object]) -> Iterator[list[int]]:
    """Call ``act`` at each ``every``-th call and return of a function while this package runs on this thread."""
    count, done = 0, [0]

    def at(frame: FrameType, what: str, _: Any) -> None:
        nonlocal count
        if not frame.f_code.co_filename.startswith(ROOT):
            return
        count += 1
        if count % every == 0 and done[0] < MOST:  # each one makes work, in which the next ones come
            done[0] += 1
            act(done[0])

    sys.setprofile(at)
    try:
        yield done
    finally:
        sys.setprofile(None)


def life(m: Monitor, number: int) -> None:
    """Do what a host does in a step."""
    call = m.tool_call("Bash", {"command": f"pytest -q -k {number}"})
    m.check("Bash", {"command": "ls"})
    m.tool_result(f"E assert {number} == 2", error=number % 2 == 0, call=call)
    m.message("assistant", f"step {number}")
    m.decide()


@pytest.mark.parametrize("durability", ["batched", "full"])
@pytest.mark.parametrize("every", [7, 43])
def test_post_interrupted_at_any_call_loses_nothing_and_keeps_the_order(
    tmp_path: Path, durability: Durability, every: int
) -> None:
    path = tmp_path / "s.db"
    m = monitor(path, durability)
    with interrupted(every, lambda number: m.message("user", f"interrupt {number}")) as done:
        for number in range(4):
            life(m, number)
        m.flush()
    m.close()
    told = said(path)
    assert done[0] > 20
    assert [text for text in told if text.startswith("step")] == [f"step {number}" for number in range(4)]
    # what interrupts a call of the same thread comes in the order in which it was recorded
    assert [text for text in told if text.startswith("interrupt")] == [f"interrupt {n + 1}" for n in range(done[0])]


@pytest.mark.parametrize("durability", ["batched", "full"])
def test_post_of_finalizers_at_every_allocation_is_stored(tmp_path: Path, durability: Durability) -> None:
    path = tmp_path / "s.db"
    alive: list[Monitor] = []
    made: list[str] = []

    class Dying:
        def __init__(self) -> None:
            self.itself = self  # only the collector ends it

        def __del__(self) -> None:
            for told in alive:
                made.append(f"died {len(made)}")
                told.message("user", made[-1])

    m = monitor(path, durability)
    alive.append(m)
    old = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for number in range(3):
            for _ in range(30):
                Dying()
            life(m, number)
    finally:
        gc.set_threshold(*old)
    gc.collect()
    alive.clear()
    m.close()
    assert len(made) == 90
    assert sorted(text for text in said(path) if text.startswith("died")) == sorted(made)


class Recording(logging.Handler):
    def __init__(self, m: Monitor) -> None:
        super().__init__()
        self.m, self.count = m, 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
        self.m.fault("log", record.getMessage())
        self.m.decide()


def test_post_of_a_logging_handler_of_this_package_is_stored(tmp_path: Path) -> None:
    class Broken:
        name, inverted = "broken", True

        def compute(self) -> float:
            logging.getLogger("coherence").warning("the metric speaks")
            return 0.5

    m = monitor(tmp_path / "s.db", "full", metrics=[Broken()])
    handler = Recording(m)
    logging.getLogger("coherence").addHandler(handler)
    try:
        life(m, 1)
    finally:
        logging.getLogger("coherence").removeHandler(handler)
    m.close()
    assert handler.count > 0
    with Store(tmp_path / "s.db") as store:
        assert store.verify() == []
        kept = [row.data for row in store.events(1) if row.kind == "fault"]
    assert sum("the metric speaks" in data for data in kept) == handler.count


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_post_of_a_signal_handler_is_stored(tmp_path: Path) -> None:
    m = monitor(tmp_path / "s.db", "full")
    count = 0

    def handle(*_: Any) -> None:
        nonlocal count
        count += 1
        m.message("user", f"signal {count}")
        m.check("Bash", {"command": "ls"})

    old = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.02)
    try:
        for number in range(30):
            life(m, number)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    m.close()
    told = [text for text in said(tmp_path / "s.db") if text.startswith("signal")]
    # one handler may interrupt another before it has said anything
    assert sorted(told) == sorted(f"signal {number + 1}" for number in range(count))
    assert count > 3


def test_record_of_a_lesson_by_a_finalizer_that_interrupts_another_one_is_kept(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        lessons = LessonStore(store, embedder=False)

        def record(name: str) -> int:
            return lessons.record(pattern="x", error_text=f"ImportError: No module named '{name}'", fix_text=name)

        with interrupted(40, lambda number: record(f"inner{number}") if number < 9 else None) as done:
            for number in range(3):
                record(f"outer{number}")
        kept = sorted(lesson.fix_text for lesson in lessons.lessons())
        assert done[0] > 9
        assert kept == sorted([*(f"outer{n}" for n in range(3)), *(f"inner{n}" for n in range(1, 9))])


def test_run_of_a_guard_by_a_finalizer_that_interrupts_another_call_is_recorded(tmp_path: Path) -> None:
    with Guard(store=tmp_path / "g.db", durability="full") as guard:
        with interrupted(25, lambda number: guard.run(lambda: number, agent="a") if number < 60 else None) as done:
            for number in range(5):
                assert guard.run(partial(int, number), agent="a").result == number
        count = min(done[0], 59)
        assert guard.errors == {}
    with Store(tmp_path / "g.db") as store:
        assert store.verify() == []
        ((calls,),) = store.fetch("SELECT count(*) FROM events WHERE kind = 'guard_call'")
    assert count > 10
    assert calls == 5 + count


def test_close_inside_a_call_ends_the_monitor_when_it_is_left(tmp_path: Path) -> None:
    m = monitor(tmp_path / "s.db")
    with interrupted(150, lambda number: m.close() if number == 1 else None) as done:
        life(m, 1)
    assert done[0] > 0
    m.close()
    assert m._worker.closed
    with Store(tmp_path / "s.db") as store:
        assert store.verify() == []


@pytest.mark.slow
def test_post_from_many_threads_that_interrupt_themselves_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    m = monitor(path)
    told: list[int] = []

    def act(name: int) -> None:
        with interrupted(97, lambda number: m.message("user", f"{name} interrupts {number}")) as done:
            for number in range(5):
                m.message("user", f"{name} says {number}")
                m.tool_result("ok")
                m.decide()
        told.append(done[0])

    threads = [threading.Thread(target=act, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    m.close()
    texts = said(path)
    assert sum("interrupts" in text for text in texts) == sum(told)
    for name in range(4):
        assert [text for text in texts if text.startswith(f"{name} says")] == [f"{name} says {n}" for n in range(5)]


class Schedule:
    """Interruptions of one life, drawn from a seed: records, questions, finalizers, signals and the clock."""

    def __init__(self, m: Monitor, seed: int, steps: int) -> None:
        self.m, self.seed, self.steps = m, seed, steps
        self.now = 1_800_000_000.0
        self.told: list[str] = []

    def time(self) -> float:
        """Return the wall time, which another one may set back."""
        self.now += 0.001
        return self.now

    def tell(self, text: str) -> None:
        self.told.append(text)
        self.m.message("user", text)

    def drop(self, text: str) -> None:
        """Leave a finalizer to the collector, which is asked to come now."""
        schedule = self

        class Dying:
            def __init__(self) -> None:
                self.itself = self

            def __del__(self) -> None:
                schedule.tell(text)

        Dying()
        gc.collect()

    def run(self, name: int) -> None:
        """Live on one thread, interrupted at places that only the seed decides."""
        random = Random(f"{self.seed} {name}")
        main = threading.current_thread() is threading.main_thread()
        left, wait = 25, random.randrange(1, 200)

        def at(frame: FrameType, what: str, _: Any) -> None:
            nonlocal left, wait
            if not left or not frame.f_code.co_filename.startswith(ROOT):
                return
            wait -= 1
            if wait:
                return
            left, wait = left - 1, random.randrange(1, 200)
            text = f"{name} interrupts {left}"
            act = random.randrange(6 if main else 5)
            if act == 0:
                self.m.decide()
            elif act == 1:
                self.m.check("Bash", {"command": "ls"})
            elif act == 2:
                self.now += random.choice([-3_600.0, 3_600.0])
            elif act == 3:
                self.drop(text)
            elif act == 5:
                signal.raise_signal(signal.SIGUSR1)
            else:
                self.tell(text)

        sys.setprofile(at)
        try:
            for number in range(self.steps):
                life(self.m, number)
                self.tell(f"{name} says {number}")
        finally:
            sys.setprofile(None)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs SIGUSR1")
@pytest.mark.parametrize("durability", ["batched", pytest.param("full", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 1), *(pytest.param(seed, 4, marks=pytest.mark.slow) for seed in range(1, 8))]
)
def test_post_under_a_seeded_schedule_of_threads_finalizers_signals_and_clock_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, steps: int, durability: Durability
) -> None:
    path = tmp_path / "s.db"
    m = monitor(path, durability)
    schedule = Schedule(m, seed, steps)
    monkeypatch.setattr(worker, "time", schedule)
    old = signal.signal(signal.SIGUSR1, lambda *_: schedule.tell(f"signal {len(schedule.told)}"))
    threads = [threading.Thread(target=schedule.run, args=(name,)) for name in range(1, 4)]
    try:
        for thread in threads:
            thread.start()
        schedule.run(0)
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads)
    finally:
        signal.signal(signal.SIGUSR1, old)
    gc.collect()
    m.close()
    texts = [text for text in said(path) if not text.startswith("step")]
    assert sorted(texts) == sorted(schedule.told)
    assert len(schedule.told) > 4 * steps + 10
