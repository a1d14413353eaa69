"""Refusals that are kept for hooks which do not reach the daemon, and the sessions that they belong to."""

from __future__ import annotations

import hashlib
import threading
from contextlib import suppress
from pathlib import Path

from coherence.integrations.daemon import hook

_SESSIONS = "sessions"
"""Folder beside the refusals: one folder a session, with an empty file for each of its refusals."""


def store_refusal(state: Path, session: str, key: str, answer: bytes) -> None:
    """Keep the refusal of a call, or of all calls of an agent.

    Parameters
    ----------
    state : Path
        State folder.
    session : str
        Session of the call.
    key : str
        Name of the call, from :func:`~coherence.integrations.daemon.hook.call_key`, or of the agent, from
        :func:`~coherence.integrations.daemon.hook.agent_key`.
    answer : bytes
        Answer that a hook gives when the call is tried again.
    """
    mark = _marks(state, session) / key
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark.touch(mode=0o600)
    path = state / hook.BLOCKED / key
    part = path.with_suffix(f".{threading.get_ident()}")
    part.touch(mode=0o600)
    part.write_bytes(answer)
    part.replace(path)


def forget_refusal(state: Path, session: str, key: str) -> None:
    """Delete one refusal of a session, if there is one."""
    for path in (state / hook.BLOCKED / key, _marks(state, session) / key):
        path.unlink(missing_ok=True)


def forget_refusals(state: Path, session: str) -> int:
    """Delete the refusals of a session's calls; return their number."""
    marks = _marks(state, session)
    count = 0
    for mark in sorted(marks.glob("*")):
        with suppress(FileNotFoundError):
            (state / hook.BLOCKED / mark.name).unlink()
            count += 1
        mark.unlink(missing_ok=True)
    with suppress(OSError):  # there is none, or another refusal has just come
        marks.rmdir()
    return count


def _marks(state: Path, session: str) -> Path:
    name = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
    return state / hook.BLOCKED / _SESSIONS / name
