"""The text of an answer that states something: without thoughts, without what is to be run, out of its JSON."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.detect.values import fold

MAX_ANSWER = 20_000
"""Characters of an answer that are judged, half from each end."""

WRAPPED_WORDS = 12
"""Words from which a text within JSON is a message that is wrapped in it."""

MAX_TEXTS = 300
"""Texts within JSON that are read."""

_FENCE = lazy_regex(r"```(?P<tag>[\w+-]{0,20})[^\n]{0,80}\n(?P<body>[^`]{0,20000})(?:```|\Z)")
_DATA_TAGS = frozenset(["", "text", "txt", "json", "csv", "md", "markdown", "yaml", "output", "console"])
_COMMAND = lazy_regex(
    r"^\s{0,9}(?:[$>] |(?:cd|ls|cat|sed|grep|git|pip|npm|python3?|pytest|docker|curl|make|rm|cp|mv|find) )", re.M
)
_THOUGHTS = ("think", "thinking", "scratchpad", "function-thoughts")
"""Tags between which an agent speaks to itself."""


def stated_text(text: str) -> str:
    """Return what of an answer may state something, folded; of a longer one than 20,000 characters half of each end."""
    return without_commands(without_thinking(ends(fold(ends(unwrapped(text), MAX_ANSWER, "\n\n")), MAX_ANSWER, "\n\n")))


def without_thinking(text: str) -> str:
    """Return a text without what the agent says to itself between tags such as ``<thinking>``."""
    for name in _THOUGHTS:
        opening, closing = f"<{name}>", f"</{name}>"
        parts: list[str] = []
        while opening in text and closing in text:
            before, _, rest = text.partition(opening)
            _, closed, after = rest.partition(closing)
            if not closed:
                break  # a lone tag says nothing of what follows
            parts.append(before)
            text = after
        text = " ".join((*parts, text))
    return text


def unwrapped(text: str) -> str:
    r"""Return the texts within an answer that is JSON, one a paragraph; else the answer.

    Examples
    --------
    >>> unwrapped('{"response": "Yes, it does.\\\\nIt costs 5 euros in each of our shops in the town.", "done": true}')
    'Yes, it does.\\nIt costs 5 euros in each of our shops in the town.'
    >>> unwrapped('{"id": 7, "title": "A map"}')
    '{"id": 7, "title": "A map"}'
    """
    plain = text.strip()
    if plain[:1] + plain[-1:] not in ("{}", "[]") or len(plain) > MAX_ANSWER:
        return text.replace("\\n", "\n") if "\\n" in text else text
    try:
        waiting: list[Any] = [msgspec.json.decode(plain)]
    except (ValueError, RecursionError):
        return text
    found: list[str] = []
    # Taken from the end, so that what is put there reversed keeps its order.
    while waiting and len(found) < MAX_TEXTS:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [f"{key}: {each}" if type(each) in (int, float) else each for key, each in item.items()][::-1]
        elif isinstance(item, list):
            waiting += item[::-1]
        elif isinstance(item, int | float | str) and not isinstance(item, bool):
            found.append(str(item))
    wraps = any(len(each.split(None, WRAPPED_WORDS)) > WRAPPED_WORDS for each in found)
    return "\n".join(found) if wraps else text


def without_commands(text: str) -> str:
    """Return a text without blocks of code: what is to be run states nothing; blocks of data stay."""
    if "```" not in text:
        return text
    parts, begin = [], 0
    for block in _FENCE.finditer(text):
        if block["tag"].lower() not in _DATA_TAGS or _COMMAND.search(block["body"]) is not None:
            parts += [text[begin : block.start()], "\n"]
            begin = block.end()
    return "".join((*parts, text[begin:]))
