"""A harmless line for the next session's agent, by which it is seen whether what hooks say arrives."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

import msgspec

from coherence.core.files import open_output

PLANTED, TOLD = "canary", "canary-told"
"""Files of the state folder: of a canary that waits for a session, and of one that a session was told."""


class Canary(msgspec.Struct, frozen=True):
    """A line that was planted, and the session that was told it."""

    token: str
    """Random, so that it is found again."""
    planted: float
    """Unix time in seconds."""
    told: float | None = None
    """Unix time at which a session was told; ``None`` = none was."""
    session: str = ""
    transcript: str = ""
    """File of the session's transcript."""
    offset: int = 0
    """Bytes that the transcript had then."""

    @property
    def line(self) -> str:
        """The line itself."""
        return f"coherence checks whether its hooks are heard, and nothing needs to be done: {self.token}."


def plant(state: Path) -> Canary:
    """Plant a canary in a state folder, which must be there; one that was planted or told before is forgotten."""
    uproot(state)
    made = Canary(secrets.token_hex(8), time.time())
    _write(state / PLANTED, made)
    return made


def read_canary(state: Path) -> Canary | None:
    """Return the canary of a state folder, told or not; ``None`` if there is none."""
    for name in (PLANTED, TOLD):  # in the order in which it moves
        try:
            return msgspec.json.decode((state / name).read_bytes(), type=Canary)
        except (FileNotFoundError, msgspec.DecodeError):
            continue
    return None


def uproot(state: Path) -> None:
    """Remove the canary of a state folder."""
    for name in (PLANTED, TOLD):
        (state / name).unlink(missing_ok=True)


def take_canary(state: Path, session: str, transcript: str) -> str:
    """Return the line for a session that is told now, empty if none is planted; of several sessions one gets it.

    Examples
    --------
    >>> import tempfile
    >>> state = Path(tempfile.mkdtemp())
    >>> planted = plant(state)
    >>> take_canary(state, "s1", "") == planted.line, take_canary(state, "s2", "")
    (True, '')
    """
    try:
        os.rename(state / PLANTED, state / TOLD)
        found = msgspec.json.decode((state / TOLD).read_bytes(), type=Canary)
    except (OSError, msgspec.DecodeError):
        return ""
    try:
        offset = os.stat(transcript).st_size
    except (OSError, ValueError):  # it is written later
        offset = 0
    told = msgspec.structs.replace(found, told=time.time(), session=session, transcript=transcript, offset=offset)
    _write(state / TOLD, told)
    return told.line


def _write(path: Path, canary: Canary) -> None:
    part = path.with_suffix(".part")
    with open_output(part) as file:
        file.write(msgspec.json.encode(canary))
    os.replace(part, path)
