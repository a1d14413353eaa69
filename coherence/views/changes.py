"""The changes that a face may make to a store, each recorded as the command line does it."""

from __future__ import annotations

import time
from typing import Literal, TypeAlias

import msgspec

from coherence.core.events import BLOCK, NOTE, UNCOUNTED, Event, Feedback, encode_event, kind_of
from coherence.core.readings import number_of
from coherence.guard.guard import Guard
from coherence.guard.ledger import PatchRecord, ledger
from coherence.guard.traces import read_decisions
from coherence.lessons.intake import make_new
from coherence.lessons.store import LessonStore
from coherence.lessons.table import read_whole, reword
from coherence.monitor.session_header import began_as
from coherence.store.rows import EventRow, SessionRow
from coherence.store.runs import newest_run, write_label
from coherence.store.store import Store
from coherence.store.told import ToldFiring, ToldRefusal, find_told
from coherence.views.words import COMMENT

Label: TypeAlias = Literal["good", "bad"]
"""``good`` = it was right or went well, ``bad`` = a false alarm or it went wrong."""


def label_session(
    store: Store, agent: str, session: str, label: Label | None, comment: str = "", *, run: int | None = None
) -> int:
    """Label a run of a session, or take its label back; a comment becomes an event of the session.

    Parameters
    ----------
    store : Store
        Where the session is.
    agent, session : str
        Its names.
    label : {"good", "bad"} or None
        ``None`` takes the label back, and the outcome that the host has reported counts again.
    comment : str
        Words that judge nothing by themselves.
    run : int, optional
        Number of the run in the session, from 1; default: the newest.

    Returns
    -------
    int
        Number of the run that was labelled.

    Raises
    ------
    LookupError
        There is no such session.
    ValueError
        The label is none, there is no such run, or the session was recorded by a test or a replay, which counts for
        nothing.
    """
    row = _session(store, agent, session)
    _check(label)
    if row.source in UNCOUNTED:
        raise ValueError(f"{agent}/{session} is of the source {row.source!r}, which counts for nothing")
    began = began_as(store, agent, session)
    # a run may be labelled before anything of it is kept
    newest = newest_run(store, agent, began) or 1
    if run is not None and not 1 <= run <= newest:
        raise ValueError(f"{agent}/{began} has {number_of(newest, 'run')}, not {run:,}")
    number = run or newest
    with store.transaction() as transaction:
        write_label(transaction, agent, began, number, None if label is None else label == "good")
    if comment.strip():
        lead = "" if label is None else COMMENT.format(label=label)
        append(store, row, Feedback(text=f"{lead}{comment.strip()}", about=NOTE))
    return number


def label_firing(store: Store, id: str, label: Label | None) -> ToldFiring | ToldRefusal:
    """Say whether a firing or a refusal was right, or take that back; return which one it was.

    Raises
    ------
    LookupError
        No firing and no refusal has this id, or several have.
    """
    _check(label)
    found = find_told(store, id, 2)
    if len(found) != 1:
        what = "no firing and no refusal is" if not found else "more than one firing or refusal is"
        raise LookupError(f"{what} called {id!r}")
    label_told(store, found[0], label)
    return found[0]


def label_told(store: Store, told: ToldFiring | ToldRefusal, label: Label | None) -> None:
    """Record whether a firing or a refusal was right, as a monitor's ``label`` and ``confirm`` do.

    A monitor that has the session open takes the event in at its next write, as one of another process.
    """
    score = {"good": 1.0, "bad": -1.0}.get(label or "")
    if isinstance(told, ToldRefusal):  # without a score it would end the block
        event = Feedback(score or 0.0, about=BLOCK, decision=told.seq)
    else:
        event = Feedback(score, about=told.id)
    append(store, _session(store, told.agent, told.session), event)


def unblock(store: Store, agent: str, session: str, reason: str = "") -> None:
    """End a session's blocks: its agent may go on, and the call that was refused last may run, with a warning.

    A monitor that has the session open takes the event in at its next write.

    Raises
    ------
    LookupError
        There is no such session.
    """
    append(store, _session(store, agent, session), Feedback(text=reason or "unblocked", about=BLOCK))


def edit_lesson(
    store: Store, id: int, *, pattern: str | None = None, error: str | None = None, fix: str | None = None
) -> int:
    """Exchange words of a lesson; return the id of what takes its place, with its counts.

    Until ``coherence lessons rebuild``, a lesson with another error or fix is found by its error's shape and names
    only.

    Raises
    ------
    LookupError
        There is no such lesson.
    ValueError
        An error or a fix has no visible character.
    """
    known = read_whole(store, id)
    if known is None:
        raise LookupError(f"there is no lesson {id}")
    new = msgspec.structs.replace(
        make_new(
            pattern=known.pattern if pattern is None else pattern,
            error_text=known.error_text if error is None else error,
            fix_text=known.fix_text if fix is None else fix,
            tool=known.tool,
            origin=None,
            ts=known.created,
        ),
        seen=known.seen,
        count=known.count,
        helped=known.helped,
        failed=known.failed,
    )
    with store.transaction() as transaction:
        return reword(transaction, id, new)


def forget_lesson(store: Store, id: int) -> None:
    """Remove a lesson; the events that it was learned from do not bring it back.

    Raises
    ------
    LookupError
        There is no such lesson.
    """
    with LessonStore(store, embedder=False) as kept:
        if not kept.remove([id]):
            raise LookupError(f"there is no lesson {id}")


def rollback(store: Store, agent: str, why: str = "a person asked") -> PatchRecord:
    """Ask for the configuration before the patch in force; a process that has the adapter restores it.

    Returns
    -------
    PatchRecord
        The patch that is to go.

    Raises
    ------
    LookupError
        The agent has no patch on trial and no confirmed one.
    """
    record = patch_in_force(store, agent)
    with Guard(store=store) as guard:
        guard.rollback(agent, why)
    return record


def patch_in_force(store: Store, agent: str) -> PatchRecord:
    """Return the patch on trial, else the confirmed one.

    Raises
    ------
    LookupError
        There is none.
    """
    for record in reversed(ledger(read_decisions(store, agent, -1))):
        if record.can_roll_back:
            return record
    raise LookupError(f"{agent!r} has no patch on trial and no confirmed one: nothing to roll back")


def append(store: Store, row: SessionRow, event: Event) -> int:
    """Append an event to a session as another process would; return its number."""
    with store.transaction() as transaction:
        seq = transaction.last_seq(row.id) + 1
        transaction.add_events(row, [EventRow(seq, time.time(), kind_of(event), encode_event(event))])
    return seq


def _session(store: Store, agent: str, session: str) -> SessionRow:
    row = store.session(agent, session)
    if row is None:
        raise LookupError(f"no session is called {agent}/{session}")
    return row


def _check(label: str | None) -> None:
    if label not in ("good", "bad", None):
        raise ValueError(f"label must be 'good', 'bad' or None, not {label!r}")
