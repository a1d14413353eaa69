"""Beginning a session, or going on with one."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
import numpy as np

from coherence.config import Budget, MonitorConfig
from coherence.events import Source
from coherence.records import frozen_hook
from coherence.store.rows import SessionRow
from coherence.store.store import Store

FIRST = "1"
"""The name of an agent's first session, where none is given."""

CONTINUED = "~"
"""A session whose settings were changed goes on under its name and ``~2``, ``~3``, …"""


class MetricSpec(msgspec.Struct, frozen=True):
    """A metric that somebody else wrote; a replay takes its values as recorded."""

    name: str
    inverted: bool
    scalar: bool


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What must be the same for readings to be the same."""

    config: MonitorConfig
    budget: Budget | None = None
    tree_budget: Budget | None = None
    fingerprint: str | None = None
    """The embedder's; ``None``: its vectors could not be recorded, and readings are replayed as recorded."""
    metrics: tuple[MetricSpec, ...] = ()
    version: str = ""
    """Of this package: another one may measure otherwise."""


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded when a session begins."""

    settings: Settings
    effective: MonitorConfig
    """The settings' configuration, with what was learned from the agent's history."""
    numpy: str = ""
    onnxruntime: str = ""
    start: str = ""
    """The state in which the session began (base64 of a snapshot); empty = from nothing."""
    continues: str = ""
    """The session it goes on from."""

    def start_data(self) -> bytes | None:
        """Return the snapshot in which the session began."""
        return b64decode(self.start) if self.start else None


_DECODER = msgspec.json.Decoder(Beginning, dec_hook=frozen_hook)


def read_beginning(row: SessionRow) -> Beginning:
    """Return what was recorded when a session began.

    Raises
    ------
    ValueError
        If this version cannot read it.
    """
    try:
        return _DECODER.decode(row.config)
    except msgspec.DecodeError as error:
        raise ValueError(f"session {row.session} of {row.agent}: settings cannot be read: {error}") from error


def make_beginning(settings: Settings, effective: MonitorConfig, start: bytes | None, continues: str = "") -> Beginning:
    """Return what is to be recorded when a session begins."""
    return Beginning(
        settings=settings,
        effective=effective,
        numpy=np.__version__,
        onnxruntime=installed("onnxruntime"),
        start=b64encode(start).decode() if start else "",
        continues=continues,
    )


@cache
def installed(package: str) -> str:
    """Return the version of an installed package, empty if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def find_session(store: Store, agent: str, session: str | None) -> SessionRow | None:
    """Return the newest session of an agent, or the newest continuation of the one named."""
    if session is None:
        return store.session(agent)
    found = store.session(agent, session)
    number = 2
    while found is not None:
        following = store.session(agent, f"{session}{CONTINUED}{number}")
        if following is None:
            return found
        found, number = following, number + 1
    return None


def name_after(row: SessionRow | None, session: str | None) -> str:
    """Return the name for a session that goes on from another with other settings, or for a new one."""
    if row is None:
        return session if session is not None else FIRST
    base, _, number = row.session.rpartition(CONTINUED)
    if not base or not number.isdigit():
        return f"{row.session}{CONTINUED}2"
    return f"{base}{CONTINUED}{int(number) + 1}"


def add_session(
    store: Store, agent: str, name: str, source: Source, beginning: Beginning, parent: str | None
) -> SessionRow:
    """Begin a session, unless another process has just begun it."""
    config = msgspec.json.encode(beginning).decode()
    with store.transaction() as transaction:
        found: Any = transaction.session(agent, name)
        if found is not None:
            return found  # type: ignore[no-any-return]  # the store's own row
        return transaction.add_session(
            session=name, agent=agent, parent=parent, source=source, started=time.time(), config=config
        )
