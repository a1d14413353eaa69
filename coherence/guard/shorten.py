"""Texts as a record keeps them: of long ones both ends, without secrets, for a bounded amount of work."""

from __future__ import annotations

from coherence.core.redact import redacted_end, redacted_start
from coherence.core.validation import clean


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
    return clean(f"{redacted_start(text, half)}\n{left_out}\n{redacted_end(text, half)}")
