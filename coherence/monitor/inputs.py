"""Conversion of what real clients give in place of a text: content blocks, nothing at all, data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coherence.core.calls import PluginCall
from coherence.core.plain import is_a, is_plain
from coherence.core.strangers import ask, report
from coherence.core.validation import check_text, plain_text, to_json

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
    if type(given) is str:
        return given
    if given is None:
        return ""
    found, call = _read_blocks(given)
    if call is not None and call.failure is not None:
        raise ValueError(f"{field} cannot be read: {call.failure.kind} in {call.source}")
    return check_text(field, given) if found is None else found


def result_text(field: str, given: object) -> str:
    """Return what a tool answered as text: a text, content blocks, ``None``, or data, which becomes JSON.

    Examples
    --------
    >>> result_text("text", {"rows": 3}), result_text("text", [{"type": "text", "text": "ok"}])
    ('{"rows":3}', 'ok')
    """
    text = given if type(given) is str else plain_text(given)
    if text is not None:
        return text
    if given is None:
        return ""
    if is_a(given, bytes):
        return bytes.decode(given, "utf-8", "replace")
    if is_a(given, bytearray):
        return bytearray.decode(given, "utf-8", "replace")
    found, call = _read_blocks(given)
    if call is not None:
        report(field, [call])
    return to_json(field, given).decode() if found is None else found


def _read_blocks(given: object) -> tuple[str | None, PluginCall | None]:
    """Return the text of content blocks, ``None`` if it is something else, and the call that asked a stranger."""
    if not is_a(given, list) and not is_a(given, tuple):
        return None, None
    if is_plain(given):
        return _blocks_text(given), None
    # the methods of the base, which those of a subclass cannot replace
    base: Any = list if is_a(given, list) else tuple
    blocks = base.__getitem__(given, slice(MAX_BLOCKS))
    # the first that is no plain block is what hangs, if it hangs
    blamed = next((block for block in blocks if not is_plain(block)), given)
    call = ask(blamed, lambda: _blocks_text(blocks))
    return call.value, call


def _blocks_text(given: object) -> str | None:
    """Return the text of content blocks, ``None`` if it is something else; runs code of blocks that are not plain."""
    if not isinstance(given, list | tuple) or not given:
        return None
    texts: list[str] = []
    for block in given[:MAX_BLOCKS]:
        if (text := plain_text(block)) is not None:
            texts.append(text)
            continue
        # a list of anything else is data, and not what somebody said
        if plain_text(_part(block, "type")) is None:
            return None
        part = next((found for key in _TEXT_KEYS if (found := _part(block, key))), None)
        text = _blocks_text(part) if isinstance(part, list | tuple) else plain_text(part)
        if text is not None:
            texts.append(text)
    return "\n".join(texts)


def _part(block: object, key: str) -> Any:
    try:
        return block.get(key) if isinstance(block, Mapping) else getattr(block, key, None)
    except BaseException:  # a stranger's object may raise anything while it is read, here on a worker
        return None
