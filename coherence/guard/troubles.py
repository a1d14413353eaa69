"""What failed on the guard's side: counted and named, never raised into the host."""

from __future__ import annotations

import logging
import threading

from coherence.plain import clean

LOG = logging.getLogger("coherence")
MOST_KINDS = 100


class Troubles:
    """Failures by stage and type.

    Examples
    --------
    >>> troubles = Troubles()
    >>> troubles.add("notifier", ValueError("no route"))
    >>> troubles.counts, troubles.newest
    ({'notifier: ValueError': 1}, {'notifier': 'ValueError: no route'})
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """``stage: type`` -> how often."""
        self.newest: dict[str, str] = {}
        """Stage -> its newest failure."""
        self._lock = threading.Lock()

    def add(self, stage: str, error: BaseException | str) -> None:
        """Count a failure; the first of each kind is logged as well."""
        kind, text = (type(error).__name__, describe(error)) if isinstance(error, BaseException) else (error, error)
        name = f"{stage}: {kind}"
        with self._lock:
            first = name not in self.counts
            if first and len(self.counts) >= MOST_KINDS:
                name, first = "others", False
            self.counts[name] = self.counts.get(name, 0) + 1
            self.newest[stage] = text
        if first:
            LOG.warning("coherence guard: %s failed: %s; this is counted from now on", stage, text)


def describe(error: BaseException) -> str:
    """Return an exception as a trace keeps it: type and up to 2,000 characters of both."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # a stranger's exception
        return name
    return clean(f"{name}: {text}" if text else name, 2_000)
