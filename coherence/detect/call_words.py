"""Words of calls: the tokens of a tool's name and of its arguments, and how much each of them tells."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Any

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.detect.tables import table, words_by_name
from coherence.detect.text_analysis import tokens

MAX_LEAVES = 200
"""Arguments of a call that are read, half from each end."""

MAX_CALL_CHARS = 20_000
"""Characters of a call that are read, shared alike between its arguments."""

_GROUPS = lazy_regex(r"\b(?:[A-Z]{2})?\d{2,6}(?: \d{2,6}){2,8}\b")
_SPACED = lazy_regex(r"\d \d")
_TOOLS = words_by_name(table("acts")["tools"])
_READS, _ACTS = _TOOLS["reads"], _TOOLS["acts"]
IDENTIFIES = frozenset({"authenticate", "login", "logout", "validate", "verify"})
"""First words of tools that only show a service who the user is."""
_CARRIES = _READS | _TOOLS["carries"]
"""Words in names of tools whose results hold what others have written, whatever else the tool does."""
_SHORT = {short: token for pair in _TOOLS["short"] for short, word in [pair.split("=")] for token in tokens(word)}
"""Short form of a word in names of tools -> the word's token."""
_LINKS = frozenset({"across", "through", "via", "within"})
"""Words in names of tools that say as little as "of" and "by"."""
_NUMBER = lazy_regex(r"[\d.,:/-]+")
_CAMEL = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])")
_LETTERS = lazy_regex(r"[^\W\d_]+")

NAME = 3.0
"""Weight of what names one thing."""


@lru_cache(maxsize=50_000)
def telling_weight(token: str) -> float:
    """Return how much a token tells of what a call is about: 3 if it names one thing, 1 for a word, a number least.

    Addresses, paths, dotted names and letters with digits name one thing; a number of up to seven characters counts
    0.5, a longer one (a date, an account) 1.

    Examples
    --------
    >>> [telling_weight(token) for token in ("anna@x.org", "us133", "send", "2024-05-01", "50")]
    [3.0, 3.0, 1.0, 1.0, 0.5]
    """
    if _NUMBER.fullmatch(token):
        return 0.5 if len(token) < 8 else 1.0
    named = "@" in token or "/" in token or "." in token or (len(token) > 2 and any(map(str.isdigit, token)))
    return NAME if named else 1.0


def mass_of(found: Iterable[str]) -> float:
    """Return the sum of the weights of tokens."""
    return sum(map(telling_weight, found), 0.0)  # multiples of 0.5: the order does not matter


def only_reads(tool: str) -> bool:
    """Return whether the first word of a tool's name says that it reads; a name in another language does not.

    Examples
    --------
    >>> only_reads("searchEmails"), only_reads("get_page"), only_reads("send_money"), only_reads("")
    (True, True, False, False)
    """
    return first_word(tool) in _READS


@lru_cache(maxsize=1_000)
def first_word(tool: str) -> str:
    """Return the first word of a tool's name in lower case, however the name is joined; empty if it has none."""
    found = _LETTERS.search(_CAMEL.sub(" ", tool[:100]))
    return found[0].lower() if found else ""


@lru_cache(maxsize=1_000)
def acts(tool: str) -> bool:
    """Return whether a tool's name, in English, says that it changes something and brings nothing that others wrote.

    Examples
    --------
    >>> acts("git_push"), acts("cartCheckout"), acts("get_order"), acts("send_query"), acts("")
    (True, True, False, False, False)
    """
    words = {word.lower() for word in _LETTERS.findall(_CAMEL.sub(" ", tool[:100]))}
    return not _ACTS.isdisjoint(words) and _CARRIES.isdisjoint(words)


def call_tokens(text: str) -> frozenset[str]:
    """Return the tokens of a text, and numbers written in groups, as accounts and telephones are, as one besides.

    What stands for a secret counts as the word for its kind: "redacted" was not said by anybody.
    """
    text = text.replace("[redacted:", "[")
    told = tokens(text)
    if not (told.isdisjoint(_SHORT) and told.isdisjoint(_LINKS)):
        told = frozenset([_SHORT.get(token, token) for token in told - _LINKS])
    if _SPACED.search(text, 0, MAX_CALL_CHARS) is None:
        return told
    return told.union(found[0].replace(" ", "").lower() for found in _GROUPS.finditer(text, 0, MAX_CALL_CHARS))


def units_of(tool: str, arguments: Any) -> list[frozenset[str]]:
    """Return the tokens of a tool's name and of each argument of a call; those without any are left out."""
    leaves = _leaves(arguments)
    if len(leaves) > MAX_LEAVES:
        leaves = leaves[: MAX_LEAVES // 2] + leaves[-(MAX_LEAVES // 2) :]
    most = MAX_CALL_CHARS // max(len(leaves), 1) // 2 * 2
    cut = (ends(leaf, most) for leaf in leaves)
    return [found for text in chain((tool,), cut) if (found := call_tokens(text))]


def _leaves(arguments: Any) -> list[str]:
    found: list[str] = []
    todo = [arguments]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo.extend(reversed(value.values()))
        elif isinstance(value, list | tuple):
            todo.extend(reversed(value))
        elif value is not None and not isinstance(value, bool):
            found.append(value if isinstance(value, str) else str(value))
    return found
