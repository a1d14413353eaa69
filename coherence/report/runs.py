"""Scored runs together: those of a store as they were measured, those of transcripts scored now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from coherence.core.decisions import KINDS
from coherence.core.errors import TranscriptError
from coherence.core.protocols import Embedder
from coherence.core.readings import number_of, one_line
from coherence.providers.minilm import default_embedder
from coherence.providers.readers import read_transcripts
from coherence.report.left_out import LeftOut
from coherence.report.recorded import MAX_EVENTS, scored_session
from coherence.report.score import FROM_BEST, ScoredRun, index_of, score_transcript
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.errors import StoreError
from coherence.store.extremes import Extreme, session_extremes
from coherence.store.open import is_sqlite
from coherence.store.rows import SessionRow
from coherence.store.session_names import sessions_called
from coherence.store.store import Store

if TYPE_CHECKING:
    import pandas

MAX_SESSIONS = 200
"""Sessions of a store that are read, the worst."""

NOTHING = LeftOut()

MAX_STEPS = 5_000
"""Steps of all these sessions together; the first is read whatever it has."""


class Runs(Sequence[ScoredRun]):
    """Some scored runs, by number or by name.

    Parameters
    ----------
    runs : iterable of ScoredRun
        The runs.
    rest : LeftOut
        Sessions of the store that were not read, and why.

    Examples
    --------
    >>> from coherence.providers import Step, Transcript
    >>> run = score_transcript(Transcript(id="trip", steps=(Step(role="assistant", content="Done."),)), embedder=False)
    >>> runs = Runs([run])
    >>> len(runs), runs["trip"] is runs[0]
    (1, True)
    """

    def __init__(self, runs: Iterable[ScoredRun], *, rest: LeftOut = NOTHING) -> None:
        self._runs = tuple(runs)
        self.rest = rest

    @property
    def left_out(self) -> int:
        """Number of sessions for which there was no room."""
        return self.rest.milder

    @overload
    def __getitem__(self, at: int | str) -> ScoredRun: ...
    @overload
    def __getitem__(self, at: slice) -> Runs: ...
    def __getitem__(self, at: int | str | slice) -> ScoredRun | Runs:
        """Return a run by its number or name, or some runs."""
        if isinstance(at, slice):
            return Runs(self._runs[at])
        if isinstance(at, int):
            return self._runs[at]
        found = next((run for run in self._runs if run.transcript.id == at), None)
        if found is None:
            known = one_line(", ".join(run.transcript.id for run in self._runs[:5])) or "none"
            raise KeyError(f"no run is called {at!r}; the first are: {known}")
        return found

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[ScoredRun]:
        return iter(self._runs)

    def __repr__(self) -> str:
        worst = max(self, key=badness, default=None)
        told = "" if worst is None else f", the worst {one_line(worst.transcript.id)} {worst.worst_band}"
        return f"<Runs: {number_of(len(self), 'run')}{told}>"

    def _repr_html_(self) -> str:
        """Draw a row for each run, the worst first, for notebooks."""
        from coherence.report.run_card import runs_html

        return runs_html(self.worst_first(), rest=self.rest)

    def worst_first(self) -> Runs:
        """Return the same runs, the worst first: by decision, band and lowest index."""
        return Runs(sorted(self._runs, key=badness, reverse=True), rest=self.rest)

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row for each step: light, index, pressure, decision, active findings, and each metric.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        from coherence.report.frame import frame_of

        return frame_of(self._runs)


def badness(run: ScoredRun) -> tuple[int, int, float]:
    """Return how bad a run was, the higher the worse: its decision, its band, and 1 less its lowest index."""
    decision, lowest = run.worst_decision, run.lowest
    kind = KINDS.index(decision.kind) if decision is not None else -1
    return kind, FROM_BEST.index(run.worst_band), -1.0 if lowest is None else 1.0 - index_of(lowest)


def read_runs(
    source: str | Path | Store,
    *,
    session: str | None = None,
    since: float | None = None,
    sessions: int = MAX_SESSIONS,
    steps: int = MAX_STEPS,
    events: int = MAX_EVENTS,
    embedder: Embedder | EmbeddingCache | Literal[False] | None = None,
) -> Runs:
    """Return the runs of a store as they were measured, the worst first, or those of a transcript, scored now.

    Parameters
    ----------
    source : path or Store
        A store, or a file that ``coherence score`` reads.
    session : str, optional
        Only this run: AGENT/SESSION, an agent's newest session, or all sessions of a name.
    since : float, optional
        Only sessions with an event since this Unix time in seconds; of a store.
    sessions, steps : int
        At most so many sessions, and steps of all together, of a store; the mildest are left out.
    events : int
        Newest events of each session that are read, of a store.
    embedder : Embedder or EmbeddingCache or False, optional
        For a transcript. Default: the shipped model.

    Raises
    ------
    TranscriptError
        If the file cannot be read, or holds no run that is asked for.

    Examples
    --------
    >>> from coherence import Monitor
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = os.path.join(folder, "runs.db")
    ...     with Monitor(store=store, agent="coder", goal="Fix it.", embedder=False) as m:
    ...         m.message("assistant", "I look at the login first.")
    ...     runs = read_runs(store)
    >>> runs[0].transcript.id, runs[0].worst_band.value
    ('coder/1', 'green')
    """
    if not isinstance(source, Store) and not is_sqlite(source):
        transcripts = [each for each in read_transcripts(source) if session in (None, each.id)]
        if not transcripts:
            raise TranscriptError(source, f"no run is called {session!r}")
        if embedder is not False and not isinstance(embedder, EmbeddingCache):
            embedder = EmbeddingCache(embedder or default_embedder())  # one for all runs
        return Runs(score_transcript(each, embedder=embedder) for each in transcripts).worst_first()
    try:
        with nullcontext(source) if isinstance(source, Store) else Store(source, recovers=False) as store:
            return stored_runs(store, session=session, since=since, sessions=sessions, steps=steps, events=events)
    except StoreError as error:
        raise TranscriptError(source.path if isinstance(source, Store) else source, str(error)) from error


def stored_runs(
    store: Store,
    *,
    session: str | None = None,
    since: float | None = None,
    sessions: int = MAX_SESSIONS,
    steps: int = MAX_STEPS,
    events: int = MAX_EVENTS,
) -> Runs:
    """Return the sessions of an open store as :func:`read_runs` does.

    Raises
    ------
    TranscriptError
        If the store has no session that is asked for.
    """
    every = store.sessions()
    wanted = every if session is None else sessions_called(every, session)
    if session is not None and not wanted:
        newest = one_line(", ".join(f"{row.agent}/{row.session}" for row in every[-5:])) or "none"
        raise TranscriptError(store.path, f"no agent and no session is called {session!r}; the newest are: {newest}")
    extremes = session_extremes(store)

    def extreme(row: SessionRow) -> Extreme:
        return extremes[row.id]

    known = [row for row in wanted if row.id in extremes]
    waiting = [row for row in known if since is None or extreme(row).newest >= since]
    waiting.sort(key=extreme, reverse=True)
    found: list[ScoredRun] = []
    stepless: list[SessionRow] = []
    room, read = steps, 0
    for row in waiting:
        if len(found) >= sessions or room <= 0:
            break
        run = scored_session(store, row, events=events)
        if run is not None and found and len(run.readings) > room:
            break
        read += 1
        if run is None:
            stepless.append(row)
        else:
            found.append(run)
            room -= len(run.readings)
    rest = LeftOut(
        milder=len(waiting) - read,
        stepless=len(stepless),
        refused=sum(KINDS[extreme(row).decision] == "block" for row in stepless),
        older=len(known) - len(waiting),
        since=since,
        newest=max((extreme(row).newest for row in known), default=None),
    )
    return Runs(found, rest=rest).worst_first()
