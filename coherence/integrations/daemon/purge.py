"""Purging of a session from the state folder: payloads that wait, refusals that are kept, and the daemon's log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from coherence.core.errors import CoherenceError
from coherence.core.validation import clean
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.folder import MAX_SESSION, control, enter, only_one
from coherence.integrations.daemon.journal import TAKEN
from coherence.integrations.daemon.log import empty_log
from coherence.integrations.daemon.refusals import forget_refusals
from coherence.store.purge import PurgeReport
from coherence.store.store import Store

PURGE_S = 600.0
"""Seconds that a running daemon may take: the store's file is rewritten."""


class Removed(msgspec.Struct, frozen=True):
    """Counts of what was removed from a state folder."""

    payloads: int
    """Payloads that waited for the daemon."""
    refusals: int
    """Refusals that were kept for hooks without a daemon."""


class SessionPurge(msgspec.Struct, frozen=True):
    """Result of purging a session."""

    session: str
    report: PurgeReport
    removed: Removed | None
    """``None``: nothing of the state folder belongs to this store."""


def purge_session(state: Path, store: Path, session: str) -> SessionPurge:
    """Wipe a session of hooks, with all its agents, from the store and the state folder; also while a daemon runs.

    The daemon ends the session first; an event that comes later begins another one. Without a daemon none can start
    meanwhile.

    Parameters
    ----------
    state : Path
        State folder of the daemon; it may be missing. It becomes the current folder.
    store : Path
        File of the store, which must be one.
    session : str
        The client's name of the session.

    Raises
    ------
    CoherenceError
        If the daemon does not answer, or the store cannot be rewritten.
    """
    store = store.absolute()
    answer = control(state, "purge", wait_s=PURGE_S, session=session, store=str(store))
    if answer is not None and answer["report"] is not None:
        return msgspec.convert(answer, SessionPurge)
    if answer is not None or not state.is_dir():
        return SessionPurge(session, _purge_store(store, session), None)
    enter(state)
    with only_one() as alone:
        if not alone:
            raise CoherenceError("a daemon is just starting or ending: purge again")
        return SessionPurge(session, _purge_store(store, session), forget_session(state, session))


def _purge_store(path: Path, session: str) -> PurgeReport:
    with Store(path, recovers=False) as store:
        return store.purge(session=session)


def forget_session(state: Path, session: str) -> Removed:
    """Remove what a state folder holds of a session, and empty the daemon's log, which may quote it.

    Parameters
    ----------
    state : Path
        The folder; no daemon may be taking in what waits there.
    session : str
        The client's name of the session.
    """
    found = list(_payloads(state, session))
    for path in found:
        path.unlink(missing_ok=True)
    empty_log(state)
    waited = sum(path.suffix != TAKEN for path in found)  # the others are in the store, too
    return Removed(waited, forget_refusals(state, session))


def _payloads(state: Path, session: str) -> Iterator[Path]:
    """Yield the files of the spool that belong to a session, those that a killed hook has left among them."""
    for path in sorted((state / hook.SPOOL).glob("*")):
        with suppress(OSError):
            if _belongs(path.read_bytes(), session):
                yield path


def _belongs(raw: bytes, session: str) -> bool:
    try:
        payload = msgspec.json.decode(raw.partition(b"\n")[2], type=dict[str, msgspec.Raw])
        name = msgspec.json.decode(payload["session_id"], type=str)
    except (ValueError, RecursionError, KeyError):  # only a part of a payload, or none
        return session.encode("utf-8", "surrogatepass") in raw
    return session in (name, clean(name, MAX_SESSION))
