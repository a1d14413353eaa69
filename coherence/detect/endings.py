"""Endings of calls, by the words of a short result: refused, left pending, only tried out, done in part."""

from __future__ import annotations

from typing import Literal, TypeAlias

from coherence.core.lazy import lazy_regex
from coherence.detect.tables import expressions, table

Ending: TypeAlias = Literal["", "failed", "pending", "tried out", "partly"]

SHORT = 500
"""Characters of a result up to which its words are about the call, not about what it found."""

_FORMS = expressions(table("endings")["forms"], 0)
_FAILED = _FORMS["failed"]
_FINE = _FORMS["fine"]
"""Expressions with such words that tell of no failure."""

_PENDING = _FORMS["pending"]
_THROUGH = lazy_regex(r"\b(?:delivered|completed|succeeded|finished|done|zugestellt|entregad[oa]|livré)\b")
_TRIED_OUT = _FORMS["tried_out"]
_PARTLY = _FORMS["partly"]


_TRIES = lazy_regex(r"--dry-?run\b|\bdry_?run\W{1,4}true|terraform plan|--noop\b|--simulate\b|--what-?if\b")


def only_tries(call: str) -> bool:
    """Tell whether a call, in lower case, asks to show what it would do."""
    return _TRIES.search(call) is not None


def ending_of(text: str) -> Ending:
    """Return how a call ended of which a short result tells; "" where it is not told, or all went well.

    Examples
    --------
    >>> ending_of("403 API rate limit exceeded."), ending_of('{"sent": 12, "failed": 0}')
    ('failed', '')
    >>> ending_of('{"id": "TR-1", "status": "pending_approval"}'), ending_of('{"imported": 231, "rejected": 19}')
    ('pending', 'partly')
    """
    if len(text) > SHORT:
        return ""
    low = text.casefold().replace("’", "'")
    plain = _FINE.sub(" ", low)
    # Asked first, for what came out in part has words of failure, too: "imported": 231, "rejected": 19.
    if _PARTLY.search(plain) is not None:
        return "partly"
    if _FAILED.search(plain) is not None:
        return "failed"
    if _TRIED_OUT.search(low) is not None:
        return "tried out"
    return "pending" if _PENDING.search(low) is not None and _THROUGH.search(low) is None else ""


def fails_at_once(text: str) -> bool:
    """Tell whether what was to be read is a short notice that begins with a failure."""
    return (
        len(text) <= NOTICE
        and "\n" not in text.strip()
        and _FAILED.search(_FINE.sub(" ", text[:BEGIN].casefold())) is not None
    )


NOTICE, BEGIN = 200, 40
