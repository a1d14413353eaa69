"""Views on a store: one object that every face asks, and that only reads.

Rooms that take long to import are imported by the methods that ask them, so that a face begins at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from coherence.store.faces import (
    events_numbered,
    found_events,
    holds,
    newest_event,
    run_labels,
    session_span,
)
from coherence.store.rows import GUARD_SESSION, PURGE_AGENT, PURGED_SESSION, SessionRow
from coherence.store.store import Store
from coherence.store.tally import BANDS, Tally
from coherence.store.told import newest_firings
from coherence.views.comparisons import findings_of, rates_of
from coherence.views.courses import Courses
from coherence.views.events import view_of
from coherence.views.lines import STATES, line_of, ordered
from coherence.views.shapes import (
    Comparison,
    EventView,
    ExperimentView,
    FiringView,
    FleetView,
    GuardView,
    LessonView,
    Overview,
    SessionLine,
    SessionView,
    StepView,
    Timeline,
)
from coherence.views.steps import around, step_view
from coherence.views.timelines import timeline_of
from coherence.views.told import LABELS, Told
from coherence.views.words import comment_text, goal_text

MAX_LIMIT = 1_000
"""Rows of one answer, at most."""

MAX_POINTS = 5_000
"""Points of one timeline, at most."""

FIRINGS = 200
"""Firings of a session that are shown, the newest."""

JUDGED = 50
"""Judgements of a session among which the comment on its label is looked for, the newest."""

NAMED = 5
"""Sessions that an error names, and goals of a session that are told, the newest."""

SEARCH_S = 1.0
"""Seconds that a search in events may take; older sessions are left out then."""


class Views:
    """Agents, sessions, timelines, steps, firings, lessons, guards and experiments of a store. Thread-safe.

    It only reads, page by page, so it is in nobody's way: agents may go on recording into the file. Once read, sessions
    are followed: only what was added since is read again.

    Parameters
    ----------
    store : path or Store
        The file, which must be there. A :class:`~coherence.store.store.Store` stays open when the views are closed.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    StoreError
        The file is no store, or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from coherence.monitor.monitor import Monitor
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Monitor(agent="coder", session="1", store=f"{folder.name}/runs.db", embedder=False) as monitor:
    ...     _ = monitor.goal("fix the login test")
    ...     _ = monitor.message("assistant", "I look at the test first.")
    ...     _ = monitor.decide()
    >>> with Views(f"{folder.name}/runs.db") as views:
    ...     line = views.overview().lines[0]
    >>> line.agent, line.goal, line.steps
    ('coder', 'fix the login test', 1)
    >>> folder.cleanup()
    """

    def __init__(self, store: str | Path | Store) -> None:
        self._owns = not isinstance(store, Store)
        if not isinstance(store, Store) and not Path(store).is_file():
            raise FileNotFoundError(f"{store}: no such file; name the store that agents record into")
        self._lock = Lock()
        self._use(store if isinstance(store, Store) else Store(store, recovers=False))

    def _use(self, store: Store) -> None:
        self._kept = store
        self._courses = Courses(store)
        self._told = Told(store, self._courses)

    @property
    def store(self) -> Store:
        """The store that is looked at; if another file has taken the place of its file, that one."""
        with self._lock:
            if self._owns and self._kept.lost and self._kept.path.is_file():
                old = self._kept
                self._use(Store(old.path, recovers=False))
                old.close()
            return self._kept

    def close(self) -> None:
        """Close the store, unless it was given open."""
        if self._owns:
            self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def newest(self) -> int:
        """Return the position of the newest event in the store, 0 without any: if it is the same, nothing is new."""
        return newest_event(self.store)

    def overview(
        self,
        *,
        agent: str | None = None,
        band: str | None = None,
        rule: str | None = None,
        text: str | None = None,
        since: float | None = None,
        until: float | None = None,
        label: str | None = None,
        state: str | None = None,
        sort: str = "worst",
        limit: int = 100,
        offset: int = 0,
    ) -> Overview:
        """Return the sessions that fit, one row each.

        Parameters
        ----------
        agent, band, rule, label : str, optional
            Only this agent's sessions; those whose light is this colour now; those in which this rule fired; those
            labelled ``good`` or ``bad``, or not labelled (``none``).
        state : {"running", "open", "succeeded", "failed"}, optional
            Only those that go on, that have no outcome, or whose outcome was this.
        text : str, optional
            Only those whose agent, session, goal or events hold this text, in whatever case.
        since, until : float, optional
            Only those with their newest event from, or their beginning up to, this Unix time.
        sort : {"worst", "newest", "cost", "steps", "agent"}
            Order.
        limit, offset : int
            At most so many rows, after so many.

        Raises
        ------
        ValueError
            There is no such order or state.
        """
        if state is not None and state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)}, not {state!r}")
        newest = self.newest()
        found = self._courses.all()
        labels = run_labels(self._kept)
        chosen = [
            (row, tally)
            for row, tally in found
            if (agent is None or row.agent == agent)
            and (band is None or BANDS[tally.band] == band)
            and (rule is None or rule in tally.rules)
            and (since is None or max(tally.last_ts, row.started) >= since)
            and (until is None or row.started <= until)
            and (state is None or STATES[state](tally))
            and (label is None or (self._label(row, labels) or "none") == label)
        ]
        partial = False
        if text:
            chosen, partial = self._holding(ordered(chosen, "newest"), text)
        shown = ordered(chosen, sort)[max(offset, 0) :][: _bounded(limit)]
        self._courses.prepare(shown)
        return Overview(
            lines=tuple(self._line(row, tally, labels) for row, tally in shown),
            total=len(found),
            matched=len(chosen),
            newest=newest,
            agents=tuple(sorted({row.agent for row, _ in found})),
            rules=tuple(sorted({name for _, tally in found for name in tally.rules})),
            partial=partial,
        )

    def _holding(self, found: list[tuple[SessionRow, Tally]], text: str) -> tuple[list[tuple[SessionRow, Tally]], bool]:
        """Return those of some sessions, the newest first, that hold a text, and whether time ran out."""
        wanted, until = text.lower(), time.monotonic() + SEARCH_S
        held, partial = [], False
        for row, tally in found:
            if wanted in f"{row.agent}/{row.session}".lower():
                held.append((row, tally))
            elif time.monotonic() > until:
                partial = True
            elif holds(self._kept, row.id, text):
                held.append((row, tally))
        return held, partial

    def _label(self, row: SessionRow, labels: Mapping[tuple[str, str], bool]) -> str | None:
        # of a name that looks like that of a continuation only the store knows what it is
        session = row.session
        if labels and "~" in session and (row.agent, session) not in labels:
            from coherence.monitor.session_header import began_as

            session = began_as(self._kept, row.agent, session)
        good = labels.get((row.agent, session))
        return None if good is None else LABELS[good]

    def _line(
        self,
        row: SessionRow,
        tally: Tally,
        labels: Mapping[tuple[str, str], bool] | None = None,
        *,
        brief: bool = False,
    ) -> SessionLine:
        labels = run_labels(self._kept) if labels is None else labels
        if not brief:
            self._courses.prepare([(row, tally)])
        window = self._courses.window(row)
        words = ("", "") if brief else self._courses.words(row)
        return line_of(row, tally, words=words, label=self._label(row, labels), window=window)

    def _row(self, agent: str, session: str) -> SessionRow:
        row = self.store.session(agent, session)
        if row is None or row.config == PURGED_SESSION or session == GUARD_SESSION or agent == PURGE_AGENT:
            rows = [each for each, _ in self._courses.all()]
            raise LookupError(unknown_session(agent, session, rows))
        return row

    def session(self, agent: str, session: str) -> SessionView:
        """Return one session as a whole.

        Raises
        ------
        LookupError
            There is no such session; the nearest names are told.
        """
        from coherence.views.lessons import session_lessons

        row = self._row(agent, session)
        course, tally = self._courses.of(row), self._courses.tally(row)
        firings = self._told.firings(newest_firings(self._kept, FIRINGS, session_id=row.id))
        goals = [mark.seq for mark in course.marks(("goal",), limit=NAMED)] or [tally.request]
        events = events_numbered(self._kept, row.id, sorted({*goals, tally.ended}))
        first, last = session_span(self._kept, row.id)
        lessons = [each.lesson for each in firings if each.lesson is not None]
        line = self._line(row, tally)
        return SessionView(
            line=line,
            firings=firings,
            refusals=self._told.refusals(row),
            lessons=session_lessons(self._kept, agent, session, lessons),
            ended=view_of(events[tally.ended]).text if tally.ended in events else "",
            goals=tuple(goal_text(events[seq]) for seq in goals if seq in events),
            calls=tally.calls,
            errors=tally.errors,
            first=first,
            last=last,
            subagents=tuple(
                (each.agent, each.session)
                for each, _ in self._courses.all()
                if each.parent == agent and _same_run(each.session, session)
            ),
            cause=self._courses.whole_cause(row) if line.cause.endswith("…") else line.cause,
            comment=self._comment(row, line.label),
        )

    def _comment(self, row: SessionRow, label: str | None) -> str:
        """Return the newest comment on a session's label, if it is among its newest judgements."""
        marks = [] if label is None else self._courses.of(row).marks(("feedback",), limit=JUDGED)
        events = events_numbered(self._kept, row.id, [mark.seq for mark in marks])
        found = (comment_text(events[mark.seq], label) for mark in reversed(marks) if mark.seq in events)
        return next(filter(None, found), "")

    def timeline(
        self, agent: str, session: str, *, first: int = 1, last: int | None = None, points: int = 600
    ) -> Timeline:
        """Return the course of a session between two of its events, in so many points at most.

        Where there are more ticks than points, each point is the worst of several.

        Raises
        ------
        LookupError
            There is no such session; the nearest names are told.
        """
        row = self._row(agent, session)
        course, tally = self._courses.of(row), self._courses.tally(row)
        firings = newest_firings(self._kept, FIRINGS, session_id=row.id)
        first = max(first, session_span(self._kept, row.id)[0])
        points = min(max(points, 1), MAX_POINTS)
        return timeline_of(self._kept, row, course, tally, firings, first=first, last=last, points=points)

    def events(
        self,
        agent: str,
        session: str,
        *,
        after: int = 0,
        limit: int = 100,
        kind: str | None = None,
        text: str | None = None,
    ) -> tuple[EventView, ...]:
        """Return events of a session in order, after one, of one kind or with a text in them, in whatever case.

        Raises
        ------
        LookupError
            There is no such session; the nearest names are told.
        """
        row = self._row(agent, session)
        found = found_events(self._kept, row.id, after=after, limit=_bounded(limit), kind=kind, text=text)
        return tuple(map(view_of, found))

    def step(self, agent: str, session: str, seq: int) -> StepView:
        """Return the step that holds an event.

        Raises
        ------
        LookupError
            There is no such session or event.
        """
        row = self._row(agent, session)
        events = around(self._kept, row, seq)
        if not events or not events[0].seq <= seq <= events[-1].seq:
            first, last = session_span(self._kept, row.id)
            raise LookupError(f"{agent}/{session} has no event {seq}; it has {first} to {last}")
        first, last = events[0].seq, events[-1].seq
        step = self._courses.of(row).ticks.step_at(first)
        told = newest_firings(self._kept, FIRINGS, session_id=row.id)
        return step_view(
            self._kept,
            row,
            events,
            self._courses.tally(row).steps if step is None else step,
            self._told.firings([each for each in told if first <= each.seq <= last]),
            self._told.refusals(row, first=first, last=last),
        )

    def compare(self, one: tuple[str, str], other: tuple[str, str]) -> Comparison:
        """Return two sessions, each named by agent and session, side by side.

        Raises
        ------
        LookupError
            There is no such session; the nearest names are told.
        """
        tallies = [self._courses.tally(self._row(*name)) for name in (one, other)]
        return Comparison(
            one=self.session(*one),
            other=self.session(*other),
            one_timeline=self.timeline(*one),
            other_timeline=self.timeline(*other),
            rates=rates_of(*tallies),
            findings=findings_of(*tallies),
        )

    def firings(
        self, *, agent: str | None = None, session: str | None = None, limit: int = 100
    ) -> tuple[FiringView, ...]:
        """Return the newest firings of all, of one agent, or of one session of it, the newest first.

        Raises
        ------
        LookupError
            Agent and session are named, and there is no such session; the nearest names are told.
        """
        row = self._row(agent, session) if agent is not None and session is not None else None
        found = newest_firings(self.store, _bounded(limit), agent=agent, session_id=None if row is None else row.id)
        wanted = session if row is None else None
        return self._told.firings([each for each in found if wanted is None or each.session == wanted])

    def fleet(self) -> FleetView:
        """Return all agents, and who is affected by whom."""
        from coherence.views.fleets import fleet_view

        store, labels = self.store, run_labels(self._kept)
        newest = {row.agent: (row, tally) for row, tally in self._courses.all()}
        lines = {name: self._line(row, tally, labels, brief=True) for name, (row, tally) in newest.items()}
        return fleet_view(store, lines)

    def lessons(self, text: str = "", limit: int = 100) -> tuple[LessonView, ...]:
        """Return lessons that hold all words of a text, those used last first."""
        from coherence.views.lessons import lesson_views

        return lesson_views(self.store, text, _bounded(limit))

    def guard(self) -> GuardView:
        """Return all agents under guard, with their patches."""
        from coherence.views.guards import guard_view

        return guard_view(self.store)

    def experiments(self) -> tuple[ExperimentView, ...]:
        """Return the effect of each pattern's guidance."""
        from coherence.views.trials import experiment_views

        return experiment_views(self.store)


def unknown_session(agent: str, session: str, rows: Iterable[SessionRow]) -> str:
    """Return in words that there is no such session, with the names nearest to it."""
    names = [f"{row.agent}/{row.session}" for row in rows]
    wanted = f"{agent}/{session}"
    near = get_close_matches(wanted, names, NAMED, 0.4) or names[: -NAMED - 1 : -1]
    known = f"; the nearest: {', '.join(near)}" if near else "; the store holds no session yet"
    return f"no session is called {wanted}{known}"


def _same_run(one: str, other: str) -> bool:
    """Tell whether two sessions began under the same name."""
    return one.partition("~")[0] == other.partition("~")[0]


def _bounded(limit: int) -> int:
    return min(max(limit, 0), MAX_LIMIT)
