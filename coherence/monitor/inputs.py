"""Conversion of what real clients give in place of a text: content blocks, nothing at all, data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coherence.core.validation import check_text, to_json

MAX_BLOCKS = 10_000
"""Content blocks of one message that are read."""

_TEXT_KEYS = ("text", "content", "refusal", "thinking", "output")


def message_text(field: str, given: object) -> str:
    """Return what a message says: a text, content blocks, or ``None`` beside tool calls.

    Parameters
    ----------
    field : str
        What an error calls it.
    given : str, sequence of blocks, or None
        Blocks are mappings or an SDK's objects; those without a text, such as images and calls, are passed over.

    Raises
    ------
    TypeError
        For anything else.

    Examples
    --------
    >>> message_text("text", [{"type": "text", "text": "Done."}, {"type": "tool_use", "name": "Read"}])
    'Done.'
    >>> message_text("text", None)
    ''
    """
    if given is None:
        return ""
    found = _blocks_text(given)
    return check_text(field, given) if found is None else found


def result_text(field: str, given: object) -> str:
    """Return what a tool answered as text: a text, content blocks, ``None``, or data, which becomes JSON.

    Examples
    --------
    >>> result_text("text", {"rows": 3}), result_text("text", [{"type": "text", "text": "ok"}])
    ('{"rows":3}', 'ok')
    """
    if isinstance(given, str):
        return check_text(field, given)
    if given is None:
        return ""
    if isinstance(given, bytes | bytearray):
        return bytes(given).decode("utf-8", "replace")
    found = _blocks_text(given)
    return to_json(field, given).decode() if found is None else found


def _blocks_text(given: object) -> str | None:
    """Return the text of content blocks, ``None`` if it is something else."""
    if not isinstance(given, list | tuple) or not given:
        return None
    texts: list[str] = []
    for block in given[:MAX_BLOCKS]:
        if isinstance(block, str):
            texts.append(block)
            continue
        # a list of anything else is data, and not what somebody said
        if not isinstance(_part(block, "type"), str):
            return None
        text = next((found for key in _TEXT_KEYS if (found := _part(block, key))), None)
        if isinstance(text, list | tuple):
            text = _blocks_text(text)
        if isinstance(text, str):
            texts.append(text)
    return "\n".join(texts)


def _part(block: object, key: str) -> Any:
    try:
        return block.get(key) if isinstance(block, Mapping) else getattr(block, key, None)
    except Exception:  # a stranger's object may raise anything while it is read
        return None
