"""Monitors of agents that other processes tell of, made as their names come."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Condition, RLock
from typing import Any, TypeAlias

from coherence.core.config import MonitorConfig
from coherence.core.readings import Reading
from coherence.core.redact import short_message
from coherence.monitor.monitor import Monitor
from coherence.monitor.sinks import AgentRecord
from coherence.store.errors import StoreError
from coherence.store.store import Store

MAX_MONITORS = 64
"""Agents that are measured at a time; the one that was silent the longest is closed, and goes on when it is back."""

CLOSE_S = 5.0
"""Seconds that the end waits for requests under way."""

UNNAMED = "agent"
"""Name of an agent that nobody has named."""

OnReading: TypeAlias = Callable[[str, str, Reading], object]
"""Takes the names of an agent and of its session, and a reading."""


class _Readings:
    """Sink that hands on readings."""

    def __init__(self, on_reading: OnReading) -> None:
        self._on_reading = on_reading

    def emit(self, record: AgentRecord) -> None:
        if record.result is not None and record.result.reading is not None:
            self._on_reading(record.agent, record.session, record.result.reading)


class LiveMonitors:
    """The monitors of many agents over one store; all methods may be called from any thread.

    Parameters
    ----------
    store : Store
        Where the sessions are recorded.
    config : MonitorConfig, optional
        Settings of the monitors.
    embedder : any, optional
        As a monitor takes it.
    on_reading : callable, optional
        Called with each reading, on another thread.
    """

    def __init__(
        self,
        store: Store,
        *,
        config: MonitorConfig | None = None,
        embedder: Any = None,
        on_reading: OnReading | None = None,
    ) -> None:
        self._store, self._config, self._embedder = store, config, embedder
        self._sinks = [] if on_reading is None else [_Readings(on_reading)]
        self._monitors: OrderedDict[tuple[str, str], Monitor] = OrderedDict()
        self._users: dict[tuple[str, str], int] = {}
        self.lock = RLock()
        """While it is held, no monitor is closed."""
        self._changed = Condition(self.lock)

    def of(self, agent: str, session: str) -> Monitor:
        """Return the monitor of an agent in a session; hold the lock while it is used."""
        with self.lock:
            key = _key(agent, session)
            monitor = self._monitors.pop(key, None)
            if monitor is None:
                self._make_room()
                monitor = Monitor(
                    agent=key[0],
                    session=key[1],
                    store=self._store,
                    config=self._config,
                    embedder=self._embedder,
                    sinks=self._sinks,
                )
            self._monitors[key] = monitor
            return monitor

    @contextmanager
    def using(self, agent: str, session: str) -> Iterator[Monitor]:
        """Lend a monitor that is not closed meanwhile; others may go on to use theirs."""
        key = _key(agent, session)
        with self.lock:
            monitor = self.of(agent, session)
            self._users[key] = self._users.get(key, 0) + 1
        try:
            yield monitor
        finally:
            with self.lock:
                self._users[key] -= 1
                if not self._users[key]:
                    del self._users[key]
                self._changed.notify_all()

    def __len__(self) -> int:
        return len(self._monitors)

    def close(self) -> None:
        """Measure and write what waits, and end."""
        with self.lock:
            self._changed.wait_for(lambda: not self._users, CLOSE_S)
            while self._monitors:
                self._monitors.popitem()[1].close()

    def _make_room(self) -> None:
        for key in [key for key in self._monitors if key not in self._users]:
            if len(self._monitors) < MAX_MONITORS:
                return
            with suppress(StoreError):  # what waits is told in the log
                self._monitors.pop(key).close()


def _key(agent: str, session: str) -> tuple[str, str]:
    return short_message(agent) or UNNAMED, short_message(session) or UNNAMED
