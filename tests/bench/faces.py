"""Speed of what the faces ask: overview, session page and timeline of a large store, and following a busy one.

The store is filled with rows that real monitors have recorded of the shipped runs, again and again under new names and
times, through the store's own transactions: triggers, hash chain, firings and tallies are those of any other store.
Vectors and snapshots, which no view reads, are left out.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import msgspec
from showing import row, say

from coherence import Monitor
from coherence.store import tallies
from coherence.store import transaction as writing
from coherence.store.rows import EventRow, FiringRow, SessionRow
from coherence.store.store import Store
from coherence.views.views import Views

BATCH = 2_000
"""Events of one transaction."""

AGENTS, EVENTS_A_SECOND, LOOK_S, FOLLOWED_S = 50, 20, 0.25, 10.0
"""Agents that are followed, events of each in a second, time between two looks, and how long."""


def recorded(folder: Path) -> list[tuple[SessionRow, list[EventRow]]]:
    """Return the shipped runs as monitors record them."""
    path = folder / "demo.db"
    command = [sys.executable, "-m", "coherence", "demo", "--store", str(path), "--html", str(folder / "demo.html")]
    subprocess.run(command, check=True, capture_output=True)
    with Store(path) as store:
        return [(session, list(store.events(session.id))) for session in store.sessions()]


def again(events: list[EventRow], began: float, name: str, count: int, first: int = 1) -> Iterator[EventRow]:
    """Yield events again and again under new numbers and times; each hundredth tick is a firing."""
    ticks = 0
    for seq, event in zip(range(first, first + count), itertools.cycle(events), strict=False):
        firing = None
        if event.reading is not None:
            ticks += 1
            if ticks % 100 == 0:
                firing = FiringRow(f"loop-{name}-{seq}", "loop", None, "treatment", "The same call failed again.")
        yield msgspec.structs.replace(event, seq=seq, ts=began + seq * 0.5, firing=firing)


def fill(path: Path, runs: list[tuple[SessionRow, list[EventRow]]], sessions: int, count: int) -> None:
    """Write so many sessions of so many events each."""
    began = time.time() - sessions * 60.0
    with Store(path, synchronous="NORMAL") as store:
        for number in range(sessions):
            template, events = runs[number % len(runs)]
            name = f"run-{number}"
            rows = again(events, began + number * 60.0, name, count)
            with store.transaction() as transaction:
                row_ = transaction.add_session(
                    session=name,
                    agent=f"agent-{number % 40}",
                    parent=None,
                    source="api",
                    started=began + number * 60.0,
                    config=template.config,
                )
            while batch := list(itertools.islice(rows, BATCH)):
                with store.transaction() as transaction:
                    transaction.add_events(row_, batch)


def took(action: Callable[[], object], times: int = 5) -> float:
    """Return the fewest milliseconds that something takes: others may use the machine, too."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        found.append((time.perf_counter() - began) * 1e3)
    return min(found)


def first_look(path: Path) -> None:
    """Open the store and show its overview, as a face does that has just begun."""
    with Views(path) as views:
        views.overview()


def session_page(views: Views, agent: str, session: str) -> None:
    """Show all that a session's page shows at first."""
    views.session(agent, session)
    timeline = views.timeline(agent, session)
    views.step(agent, session, timeline.points[-1].seq)


def large(path: Path) -> None:
    """Print figures of the store of many sessions."""
    row("overview, opened anew", took(partial(first_look, path)), 200, " ms")
    with Views(path) as views:
        views.overview()
        row("overview, again", took(views.overview), 200, " ms")
        row("overview, one rule, by cost", took(lambda: views.overview(rule="loop", sort="cost")), 200, " ms")
        row(
            "overview, sessions that hold a rare text",
            took(lambda: views.overview(text="no such text"), 1),
            2_000,
            " ms",
        )
        row("newest", took(views.newest, 101), 1, " ms")
        lines = views.overview(sort="newest", limit=50).lines
        pages = [took(partial(session_page, views, line.agent, line.session), 1) for line in lines]
        row("session page, first time, median of 50 sessions", median(pages), 300, " ms")
        row("session page, first time, worst of 50 sessions", max(pages), 300, " ms")
        line = views.overview(sort="newest").lines[-1]
        row("session page, again", took(lambda: session_page(views, line.agent, line.session)), 300, " ms")
        row("fleet", took(views.fleet), 200, " ms")
        row("firings", took(views.firings), 200, " ms")


def long(path: Path) -> None:
    """Print figures of the session of many steps."""
    with Views(path) as views:
        line = views.overview().lines[0]
        say("steps of the long session", f"{line.steps:,}", "")
        name = (line.agent, line.session)
        row("long timeline, first time", took(lambda: views.timeline(*name), 1), 500, " ms")
        row("long timeline, again", took(lambda: views.timeline(*name)), 100, " ms")
        half = line.events // 2
        row("long timeline, zoomed", took(lambda: views.timeline(*name, first=half, last=half + 3_000)), 50, " ms")
        row("long session, step in its middle", took(lambda: views.step(*name, half)), 100, " ms")
        row("long session", took(lambda: views.session(*name)), 100, " ms")


def write_steadily(path: Path, runs: list[tuple[SessionRow, list[EventRow]]], name: str, seconds: float) -> None:
    """Write what so many agents do, at their pace."""
    with Store(path, synchronous="NORMAL") as store:
        rows: list[tuple[SessionRow, Iterator[EventRow]]] = []
        for number in range(AGENTS):
            template, events = runs[number % len(runs)]
            with store.transaction() as transaction:
                session = transaction.add_session(
                    session=name, agent=f"live-{number}", parent=None, source="api", started=time.time(),
                    config=template.config,
                )  # fmt: skip
            rows.append((session, again(events, time.time(), f"{name}-{number}", 10**9)))
        began, beats = time.monotonic(), int(seconds * EVENTS_A_SECOND / 5)
        for beat in range(beats):
            for session, events_ in rows:
                with store.transaction() as transaction:
                    transaction.add_events(session, list(itertools.islice(events_, 5)))
            time.sleep(max(began + (beat + 1) * 5 / EVENTS_A_SECOND - time.monotonic(), 0))


def follow(path: Path, runs: list[tuple[SessionRow, list[EventRow]]]) -> None:
    """Print the share of a core that following agents takes, one session page of theirs open."""
    name = f"live-{time.time():.0f}"  # the stores may stay from an earlier time
    writer = multiprocessing.get_context("spawn").Process(
        target=write_steadily, args=(path, runs, name, FOLLOWED_S + 3)
    )
    with Views(path) as views:
        before = views.overview().newest
        writer.start()
        while views.newest() < before + 10 * AGENTS:
            time.sleep(0.05)
        began, spent, seen, looks = time.monotonic(), time.process_time(), views.newest(), 0
        first = seen
        late = []
        while time.monotonic() < began + FOLLOWED_S:
            looked = time.monotonic()
            if (newest := views.newest()) != seen:
                seen, looks = newest, looks + 1
                views.overview(sort="newest", limit=AGENTS)
                views.timeline("live-0", name)
                late.append((time.monotonic() - looked) * 1e3)
            time.sleep(max(looked + LOOK_S - time.monotonic(), 0))
        wall = time.monotonic() - began
        share = 100 * (time.process_time() - spent) / wall
    writer.join()
    say("events a second that were followed", f"{(seen - first) / wall:,.0f}", "")
    row("following 50 agents, share of one core", share, 25, " %")
    row("time of one look at them", median(late), 200, " ms")


def recording(folder: Path) -> None:
    """Print what counting takes of the time that a real monitor needs to record, in batches and one event at a time."""
    keep = tallies.keep_tally
    spent: list[float] = []

    def timed(*given: object) -> None:
        began = time.thread_time()
        keep(*given)  # type: ignore[arg-type]
        spent.append(time.thread_time() - began)

    writing.keep_tally = timed  # type: ignore[assignment,attr-defined]
    for name, every in (("as monitors do", 10), ("each step by itself", 1)):
        spent.clear()
        with Monitor(agent="a", store=folder / f"m{every}.db", embedder=False, goal="make the tests pass") as m:
            began = time.process_time()
            for number in range(600):
                call = m.tool_call("Bash", {"command": f"pytest -q tests/test_{number % 7}.py"})
                m.tool_result(f"{number} passed", call=call)
                m.decide()
                if number % every == 0:
                    m.flush()
            m.flush()
            whole = time.process_time() - began
        say(f"recording {name}: counting a transaction, of {len(spent)}", f"{1e6 * median(spent):.0f} us", "")
        row(f"recording {name}: share of counting", 100 * sum(spent) / (whole - sum(spent)), 5, " %")
    writing.keep_tally = keep  # type: ignore[attr-defined]


def main() -> None:
    """Fill the stores and print the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=1_000)
    options.add_argument("--events", type=int, default=1_000, help="events of each session")
    options.add_argument("--steps", type=int, default=100_000, help="steps of the long session")
    options.add_argument("--keep", type=Path, help="folder in which the stores stay, and are used again")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = chosen.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        runs = recorded(Path(name))
        many, one = folder / "many.db", folder / "long.db"
        for path, sessions, count in (
            (many, chosen.sessions, chosen.events),
            (one, 1, _events(runs[0][1], chosen.steps)),
        ):
            if not path.exists():
                began = time.perf_counter()
                fill(path, runs, sessions, count)
                seconds, size = time.perf_counter() - began, path.stat().st_size / 1e6
                say(
                    f"{path.name}: {sessions:,} sessions, {sessions * count:,} events",
                    f"{seconds:.0f} s, {size:,.0f} MB",
                    "",
                )
        recording(Path(name))
        large(many)
        long(one)
        follow(many, runs)


def _events(events: list[EventRow], steps: int) -> int:
    """Return how many events hold so many steps."""
    ends = sum(event.kind == "tool_result" or '"role":"assistant"' in event.data for event in events)
    return steps * len(events) // ends


if __name__ == "__main__":
    main()
