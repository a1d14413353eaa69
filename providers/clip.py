"""Cutting long texts, so that embedding any text costs a bounded time."""

from __future__ import annotations


def head_and_tail(text: str, limit: int) -> str:
    """Return a text of at most about ``limit`` characters: the beginning and the end of a longer one.

    Lone surrogates, which no tokenizer and no server takes, become question marks.

    Examples
    --------
    >>> head_and_tail("abcdefgh", 4)
    'ab gh'
    """
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} {text[-half:]}"
    return text.encode("utf-8", "replace").decode()
