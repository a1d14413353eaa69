"""Failures on the guard's side: counted and named, never raised into the host."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from coherence.core.plain import type_name
from coherence.core.readings import times
from coherence.core.redact import redact
from coherence.core.strangers import error_text
from coherence.guard.shorten import shortened

if TYPE_CHECKING:
    from coherence.core.calls import PluginCall

LOG = logging.getLogger("coherence.guard")
MAX_KINDS = 100


class ErrorCounts:
    """Failures by stage and type.

    Examples
    --------
    >>> troubles = ErrorCounts()
    >>> troubles.add("notifier", ValueError("no route"))
    >>> troubles.counts, troubles.newest
    ({'notifier: ValueError': 1}, {'notifier': 'ValueError: no route'})
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """``stage: type`` -> how often."""
        self.newest: dict[str, str] = {}
        """Stage -> its newest failure."""
        self.renew()

    def renew(self) -> None:
        """Go on in a forked child: another thread of the parent may have held the lock."""
        self._lock = threading.RLock()  # a signal handler may add one while this thread adds one

    def add(self, stage: str, error: BaseException | str, *, kind: str | None = None) -> None:
        """Count a failure. Of each kind the first, the 10th, the 100th and so on are logged, as warnings.

        ``kind`` is the name it is counted under; default: the exception's type, or the text.
        """
        found, text = (error, error) if isinstance(error, str) else (type_name(error), describe(error))
        kind = found if kind is None else kind
        text = redact(text)
        name = f"{stage}: {kind}"
        with self._lock:
            # a text with a number in it would be a new kind each time
            if name not in self.counts and len(self.counts) >= MAX_KINDS:
                name = "others"
            count = self.counts[name] = self.counts.get(name, 0) + 1
            self.newest[stage] = text
        if is_told(count):
            with suppress(Exception):  # a stranger's handler or filter
                LOG.warning("%s failed, %s so far: %s", stage, times(count), text)

    def failed(self, call: PluginCall | str) -> None:
        """Count a call of the host's function that failed, or what is wrong with what it returned."""
        if isinstance(call, str):
            self.add("clock", call)
        elif call.error is not None:
            self.add(call.source, call.error)
        elif call.failure is not None:
            self.add(call.source, call.failure.message, kind=call.failure.kind)


def is_told(count: int) -> bool:
    """Return whether something is logged when it happens so many times: 1, 10, 100 and so on.

    Examples
    --------
    >>> [count for count in range(2_000) if is_told(count)]
    [1, 10, 100, 1000]
    """
    return count > 0 and set(str(count)[1:]) <= {"0"} and str(count)[0] == "1"


def describe(error: BaseException) -> str:
    """Return an exception as a trace keeps it: type and up to 2,000 characters of both; see :func:`shortened`."""
    return described(type_name(error), error_text(error))


def described(name: str, text: str | None) -> str:
    """Return what a trace keeps of an exception's type and text; ``None`` if its text cannot be read.

    Examples
    --------
    >>> described("ValueError", "no"), described("ValueError", None)
    ('ValueError: no', 'ValueError')
    """
    return shortened(f"{name}: {text}" if text else name, 2_000)
