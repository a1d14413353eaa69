"""Texts as a record keeps them: of long ones both ends, without secrets, for a bounded amount of work."""

from __future__ import annotations

from coherence.core.redact import redact
from coherence.core.validation import clean

MARGIN = 4_000
"""Characters beyond a cut that are searched for secrets too; a private key of 4,096 bits has 3,300."""


def shortened(text: str, most: int) -> str:
    r"""Return a text without its middle if it is longer than ``most`` characters, and then without secrets.

    Secrets are replaced before the cut, so that no half of one stays. A shorter text stays as it is.

    Parameters
    ----------
    text : str
        Any text; lone surrogates become U+FFFD.
    most : int
        Characters that are kept, half of them at each end; 2 or more.

    Examples
    --------
    >>> shortened("short", 100)
    'short'
    >>> shortened("a" * 50 + "b" * 50, 10)
    'aaaaa\n[… 90 of 100 characters left out …]\nbbbbb'
    """
    if len(text) <= most:
        return clean(text)
    half = most // 2
    left_out = f"[… {len(text) - 2 * half:,} of {len(text):,} characters left out …]"
    return clean(f"{_start(text, half)}\n{left_out}\n{_end(text, half)}")


def begun(text: str, most: int, margin: int = MARGIN) -> str:
    """Return up to ``most`` characters from the start of a text, and ``…`` if there is more; then without secrets.

    Examples
    --------
    >>> begun("abc", 3), begun("abcd", 3)
    ('abc', 'abc…')
    """
    return clean(text if len(text) <= most else f"{_start(text, most, margin)}…")


def _start(text: str, kept: int, margin: int = MARGIN) -> str:
    seen = text[: kept + margin]
    found = redact(seen)
    # What has moved up from near the end of what was seen may be the start of a secret that was cut.
    return found[: kept if len(seen) == len(text) else max(min(kept, len(found) - margin // 2), 0)]


def _end(text: str, kept: int) -> str:
    seen = text[-kept - MARGIN :]
    found = redact(seen)
    return found[-kept if len(seen) == len(text) else max(len(found) - kept, MARGIN // 2) :]
