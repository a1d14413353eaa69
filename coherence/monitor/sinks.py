"""Records of an agent, handed to whoever wants them elsewhere as they come."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from coherence.core.plain import type_name
from coherence.core.protocols import Sink
from coherence.monitor.tick_result import Record

LOG = logging.getLogger("coherence")


class AgentRecord(Record, frozen=True, kw_only=True):
    """One event as it was folded, and whose it is."""

    agent: str
    session: str


def check_sink(sink: object) -> None:
    """Raise TypeError if an object is no sink."""
    if not callable(getattr(sink, "emit", None)):
        raise TypeError(f"a sink has a method emit(record); {type_name(sink)} has none")


class Sinks:
    """Hand each record of an agent to some sinks; what one of them raises is logged once and ends there.

    Parameters
    ----------
    agent, session : str
        Names of the agent and of its session.
    sinks : sequence of Sink
        Where records go.
    """

    def __init__(self, agent: str, session: str, sinks: Sequence[Sink]) -> None:
        self._name = agent, session
        self._sinks = tuple(sinks)
        self._failed: set[int] = set()

    def emit(self, record: Record) -> None:
        """Hand on one record."""
        if not self._sinks:
            return
        agent, session = self._name
        told = AgentRecord(record.seq, record.ts, record.event, record.result, agent=agent, session=session)
        for sink in self._sinks:
            try:
                sink.emit(told)
            except Exception as error:  # of a stranger, on the host's path
                self._log(sink, error)

    def end(self) -> None:
        """Tell those that want to know that the agent's session is over."""
        for sink in self._sinks:
            try:
                if (ended := getattr(sink, "ended", None)) is not None:
                    ended(*self._name)
            except Exception as error:
                self._log(sink, error)

    def _log(self, sink: Sink, error: Exception) -> None:
        if id(sink) not in self._failed:
            self._failed.add(id(sink))
            with suppress(Exception):  # a stranger's handler or filter
                LOG.warning("coherence: a sink failed (%s: %s); told once", type_name(sink), type_name(error))
