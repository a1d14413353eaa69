"""Beginning a session, or going on with one."""

from __future__ import annotations

import time
from base64 import b64decode
from typing import NamedTuple

import msgspec

from coherence.baseline.calibration import Calibration
from coherence.core.config import Budget, MonitorConfig
from coherence.core.decisions import Policy
from coherence.core.events import Source
from coherence.core.lazy import lazy_regex
from coherence.core.readings import frozen_hook
from coherence.monitor.arguments import FIRST
from coherence.store.rows import PURGED_SESSION, SessionRow
from coherence.store.store import Store
from coherence.store.transaction import Transaction

NOTHING = "nothing is embedded"
"""In place of the fingerprint of an embedder."""

CONTINUED = "~"
"""A session whose settings were changed goes on under its name and ``~2``, ``~3``, …"""


class MetricSpec(msgspec.Struct, frozen=True):
    """A metric that somebody else wrote; a replay takes its values as recorded."""

    name: str
    inverted: bool
    scalar: bool


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that must be the same for readings to be the same."""

    config: MonitorConfig
    budget: Budget | None = None
    tree_budget: Budget | None = None
    fingerprint: str | None = None
    """The embedder's; ``None``: its vectors could not be recorded, and readings are replayed as recorded."""
    metrics: tuple[MetricSpec, ...] = ()
    rules: tuple[str, ...] = ()
    """Rules that somebody else wrote; a replay takes their findings as recorded."""
    version: str = ""
    """Of this package: another one may measure otherwise."""


class SessionHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Record of the beginning of a session."""

    settings: Settings
    effective: MonitorConfig
    """The settings' configuration; of sessions of earlier versions, with a pressure fitted to the agent's history."""
    numpy: str = ""
    onnxruntime: str = ""
    start: str = ""
    """The state in which the session began (base64 of a snapshot); empty = from nothing."""
    continues: str = ""
    """The session it goes on from."""
    policies: dict[str, Policy] = {}
    """Pattern of guidance -> what its verdict had made of it by then."""
    calibration: Calibration = Calibration()
    """Risks from which metrics alarm, as the agent's runs had set it by then."""

    def start_data(self) -> bytes | None:
        """Return the snapshot in which the session began."""
        return b64decode(self.start) if self.start else None


_DECODER = msgspec.json.Decoder(SessionHeader, dec_hook=frozen_hook)

_DROPPED = lazy_regex(r'"learn_pressure":(?:true|false),')
"""Setting that is in headers recorded while there was one: ``effective`` holds what it had learned."""


def read_beginning(row: SessionRow) -> SessionHeader:
    """Return what was recorded when a session began.

    Raises
    ------
    ValueError
        If this version cannot read it.
    """
    try:
        return _DECODER.decode(_DROPPED.sub("", row.config))
    except msgspec.DecodeError as error:
        raise ValueError(f"session {row.session} of {row.agent}: settings cannot be read: {error}") from error


def is_without_text(row: SessionRow) -> bool:
    """Tell whether a session was recorded without texts, or was purged."""
    return '"privacy":"no-text"' in row.config or row.config == PURGED_SESSION


class Place(NamedTuple):
    """Session and name under which an agent goes on; both of one look, so that a name taken since is noticed."""

    row: SessionRow | None
    """The session to go on with, ``None`` = a new one."""
    name: str
    """For a session that begins now."""


def find_place(store: Store, agent: str, session: str | None, source: Source, *, resume: bool) -> Place:
    """Return where an agent goes on: nowhere in a new session, or in the one named, or in its newest to resume it.

    Tests go on from tests only, and nothing else does: what they did must not reach an agent's state or baselines.
    """
    if session is None and not resume:
        return Place(None, _next_name(store, agent))
    if session is None:
        newest = store.session(agent)
        if newest is not None and not _may_follow(newest, source):
            newest = next((row for row in reversed(store.sessions(agent=agent)) if _may_follow(row, source)), None)
        session = base_of(newest.session) if newest is not None else FIRST
    base = base_of(session)
    taken = _line(store, agent, base)
    # a name that only looks like a continuation is a name of its own
    if not taken:
        base = session
    line = taken if session == base and taken else _line(store, agent, session)
    row = next((row for row in reversed(line) if _may_follow(row, source)), None)
    return Place(row, f"{base}{CONTINUED}{len(taken or line) + 1}" if line else session)


def _next_name(store: Store, agent: str) -> str:
    """Return one more than the highest number that a session of an agent is called by."""
    # "3~2" counts as 3: CAST reads the digits in front.
    sql = "SELECT max(CAST(session AS INTEGER)) FROM sessions WHERE agent = :agent AND session GLOB '[0-9]*'"
    ((highest,),) = store.fetch(sql, {"agent": agent})
    return str((highest or 0) + 1)


def began_as(source: Store | Transaction, agent: str, session: str) -> str:
    """Return the name under which a session began, before its settings were changed.

    Some other name that looks like that of a continuation, such as ``task~2`` where there is no ``task``, is its own.
    """
    base = base_of(session)
    return base if base == session or source.session(agent, base) is not None else session


def base_of(session: str) -> str:
    """Return what a session's name says of the name under which it began, whether there was such a session or not."""
    base, _, number = session.rpartition(CONTINUED)
    return base if base and number.isdigit() else session


def _may_follow(row: SessionRow, source: Source) -> bool:
    return (row.source == "test") == (source == "test") and row.config != PURGED_SESSION


def _line(store: Store, agent: str, session: str) -> list[SessionRow]:
    """Return a session and its continuations, oldest first."""
    found: list[SessionRow] = []
    name = session
    while (row := store.session(agent, name)) is not None:
        found.append(row)
        name = f"{session}{CONTINUED}{len(found) + 1}"
    return found


def add_session(
    store: Store, agent: str, name: str, source: Source, beginning: SessionHeader, parent: str | None
) -> SessionRow | None:
    """Begin a session; ``None`` if another process has just begun one of that name."""
    config = msgspec.json.encode(beginning).decode()
    with store.transaction() as transaction:
        if transaction.session(agent, name) is not None:
            return None
        return transaction.add_session(
            session=name, agent=agent, parent=parent, source=source, started=time.time(), config=config
        )
