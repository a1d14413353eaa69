"""Notifiers that ship: one that writes to the log. A webhook is in ``coherence.export``."""

from __future__ import annotations

import logging
import re

import msgspec

from coherence.core.redact import redact_value
from coherence.core.validation import clean
from coherence.guard.error_counts import LOG
from coherence.guard.safe_json import tagged

WARNINGS = frozenset({"ending", "not_applied", "restore_failed", "decayed"})
"""Kinds of events that are logged as warnings; all others are for information."""

MAX_LINE = 2_000
"""Characters of a text in the log."""

_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


class LogNotifier:
    """Writes one line an event to the logger ``coherence.guard``; handlers and levels are the application's.

    Examples
    --------
    >>> LogNotifier().notify({"agent": "support", "kind": "confirmed", "why": "no worse in 60 calls"})
    """

    def notify(self, event: object) -> None:
        """Log an event: a warning if its kind is one of :data:`WARNINGS`."""
        if not LOG.isEnabledFor(logging.WARNING):
            return
        record = redact_value(tagged(event))
        fields = dict(record) if isinstance(record, dict) else {"text": record}
        kind = fields.pop("kind", "event")
        known = [fields.pop(name, None) for name in ("agent", "text", "why")]
        parts = [_line(part) for part in (known[0], kind, *known[1:]) if part is not None]
        if rest := {name: value for name, value in fields.items() if value is not None}:
            parts.append(_line(msgspec.json.encode(rest).decode()))
        warns = isinstance(kind, str) and kind in WARNINGS
        LOG.log(logging.WARNING if warns else logging.INFO, "%s", ": ".join(parts))


def _line(part: object) -> str:
    """Return a part of a log line: no line break, and nothing that changes how a terminal shows the rest."""
    text = part if isinstance(part, str) else msgspec.json.encode(part).decode()
    return _CONTROL.sub(" ", clean(text, MAX_LINE))
