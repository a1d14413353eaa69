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
    half, seen = most // 2, min(most // 2 + MARGIN, len(text))
    start, end = redact(text[:seen]), redact(text[-seen:])
    if seen < len(text):
        # What has moved up from near the end of what was seen may be a part of a secret that was cut.
        start, end = start[: max(len(start) - MARGIN // 2, 0)], end[MARGIN // 2 :]
    left_out = f"[… {len(text) - 2 * half:,} of {len(text):,} characters left out …]"
    return clean(f"{start[:half]}\n{left_out}\n{end[-half:]}")
