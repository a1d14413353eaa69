"""Which title an id or address is stated with: that of its own object, row, line or sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from coherence.core.readings import Claim
from coherence.detect.normal_values import words

LEAST_TITLE = 2
"""Words that make a title."""

LEAST_NAMED = 3
"""Words in capitals that are a title though nothing marks them as one: two may be an author, or a heading."""

AROUND = 250
"""Characters on each side of an id that may hold its title."""

_DOCUMENT = re.compile(r"id:(?:\d{4}\.\d{4,5}(?:v\d+)?|10\.\d{4,9}/.*)\Z", re.S)
_LINKED = re.compile(r"\[([^\]\n]{4,200})\]\(\s{0,4}\Z")
_MARKED = re.compile(
    r"\"([^\"\n]{4,200})\"|“([^”\n]{4,200})”|\*\*([^*\n]{4,200})\*\*|(?<![\w*])[*_]([^*_\n]{4,200})[*_](?![\w*])"
)
_SAID = r"(?:\A|[\n.;:!?)\]]|\s[-*•–—]\s)\s*((?:[^\n.;:!?()]|\.(?=\w)){4,120}?)\s*"
_BEFORE = re.compile(_SAID + r"[(\[,–—-]\s*(?:arxiv:|doi:|id:?|cve:)?\s*\Z", re.I)
_BEFORE_PAPER = re.compile(
    _SAID + r"(?:[(\[,:–—-]|(?<=\s)(?:is|has|=)(?=\s)|(?<=\s)(?=(?:arxiv|doi):))\s*(?:(?:arxiv|doi|id)\b:?)?\s*\Z",
    re.I,
)
"""What leads to a paper's id is its title; before another value it may be any sentence."""
_AFTER = re.compile(r"(?:[)\]]?\s*(?:[:–—(-]|,\s)|\])\s*([^\n.;()\[\]]{4,120})")
_BARE = re.compile(r"\s+(?:is )?([A-Z][^\n.;()\[\]]{3,120})")
_FIELD = re.compile(r"[\"'](?:title|name|filename|subject|paper)[\"']\s?:\s?(?:\"([^\"\n]{4,200})\"|'([^'\n]{4,200})')")
_NO_TITLE = re.compile(r"[\s>*•\d.)(\[\]-]*(?:arxiv|doi|id)?:?\s*\Z", re.I)
_ONE = r"([A-Z][\w'-]{2,40})"
_ONE_BEFORE = re.compile(
    rf"(?:\"{_ONE}\"|“{_ONE}”|\*\*{_ONE}\*\*|(?:\A|[\n.;:!?]\s{{0,3}}|[-*•]\s){_ONE}(?=\s?[(\[]))\s?[:,–—(\[-]?\s?\Z"
)
_ONE_AFTER = re.compile(rf"(?:\s?[,:–—-])?\s?(?:\"{_ONE}\"|“{_ONE}”|\*\*{_ONE}\*\*|\({_ONE}\)|\[{_ONE}\])")
_STATES = """open opened closed done new draft final pending active inactive resolved fixed rejected approved accepted
merged critical high medium low urgent severe paid unpaid shipped delivered cancelled canceled confirmed completed
failed passed available unavailable deprecated removed updated unknown optional required public private internal"""
STATES = frozenset(_STATES.split())
"""Single words at an id that tell its state, not its name."""
_STOPS = "the a an of in on for and or to by with at from is are was as it its this that arxiv doi id cve see"
STOP = frozenset(_STOPS.split())
"""Words that say nothing of a title."""


class Title(NamedTuple):
    """What stands where a title would."""

    words: list[str]
    """In lower case, without those that say nothing."""
    named: bool = False
    """Whether it looks like a name, not like a description: by its quotation marks, its field or its capitals."""


def is_document(claim: Claim) -> bool:
    """Tell whether a claim is the id of a paper."""
    return claim.kind == "id" and _DOCUMENT.match(claim.forms[0]) is not None


def title_of(text: str, claim: Claim, others: Sequence[Claim] = ()) -> Title:
    """Return the title that an id or address is stated with; without words if there is none.

    Parameters
    ----------
    text : str
        Folded.
    claim : Claim
        The id.
    others : sequence of Claim
        What else the text states; a title beyond another id like this one belongs to that one.

    Examples
    --------
    >>> text = "See [Mistral 7B](https://arxiv.org/abs/2310.06825) and Attention Is All You Need (1706.03762)."
    >>> title_of(text, Claim("url", "https://arxiv.org/abs/2310.06825", 17, ())).words
    ['mistral', '7b']
    >>> title_of(text, Claim("id", "1706.03762", text.index("1706"), ()))
    Title(words=['attention', 'all', 'you', 'need'], named=True)
    """
    stop = claim.start + len(claim.text)
    field = _field(text, claim.start, stop)
    if field:
        return Title(_telling(field), named=True)
    begin, end = max(text.rfind("\n", 0, claim.start) + 1, claim.start - AROUND), _line_end(text, stop)
    rivals = [other for other in others if begin <= other.start < end and _rivals(claim, other)]
    earlier = [other.start + len(other.text) for other in rivals if other.start < claim.start]
    later = [other.start for other in rivals if other.start > claim.start]
    low, high = max(earlier, default=begin), min(later, default=end)
    first = min((other.start for other in rivals if other.start < claim.start), default=claim.start)
    said = _BEFORE_PAPER if any(_DOCUMENT.match(form) for form in claim.forms) else _BEFORE
    leads = _NO_TITLE.match(text[begin:first]) is not None
    leads = leads or (bool(earlier) and not _before(text[begin:first], said)[0])
    if text.find("|", begin, claim.start) >= 0 or text.find("|", stop, end) >= 0:
        return _of_row(text[low : claim.start], text[stop:high])
    before = ("", False) if leads and low > begin else _before(text[low : claim.start], said)
    found, marked = before if before[0] else _after(text[stop:high], bare=leads)
    return Title(_telling(found), named=marked or _is_name(found))


def name_of(text: str, claim: Claim) -> str:
    """Return the single word that names an id, directly beside it in quotation marks, brackets or bold; else nothing.

    Examples
    --------
    >>> hole = Claim("id", "CVE-2014-0160", 0, ())
    >>> [name_of(f"CVE-2014-0160 {said}", hole) for said in ('"Heartbleed"', "(PDF)", "(Open)")]
    ['heartbleed', '', '']
    """
    found = _ONE_AFTER.match(text, claim.start + len(claim.text))
    found = found or _ONE_BEFORE.search(text, max(0, claim.start - 60), claim.start)
    name = next((group for group in found.groups() if group), "") if found is not None else ""
    return "" if name.isupper() or name.lower() in STATES | STOP else name.lower()


def _rivals(claim: Claim, other: Claim) -> bool:
    """Tell whether another value is an id like this one, and not the same."""
    if other.kind not in ("id", "url") or {*claim.forms, *claim.also} & {*other.forms, *other.also}:
        return False
    if claim.kind == "url" or other.kind == "url" or is_document(claim) or is_document(other):
        return (claim.kind == "url" or is_document(claim)) and (other.kind == "url" or is_document(other))
    return True


def _line_end(text: str, stop: int) -> int:
    end = text.find("\n", stop)
    return min(len(text) if end < 0 else end, stop + AROUND)


def _field(text: str, start: int, stop: int) -> str:
    """Return the title in the object that holds a place; empty if there is none."""
    begin = text.rfind("{", max(0, start - 2 * AROUND), start)
    end = text.find("}", stop, stop + 2 * AROUND)
    if begin < 0 or end < 0 or text.find("}", begin, start) >= 0:
        return ""
    found = _FIELD.search(text, begin, end)
    return (found[1] or found[2]) if found else ""


def _of_row(before: str, after: str) -> Title:
    """Return the title in a row of a table: in the cell of the id, else in the nearest one that has some."""
    left, right = before.split("|"), after.split("|")
    cells = [left[-1] + " " + right[0], *reversed(left[:-1]), *right[1:]]
    cell = next((cell for cell in cells if len(_telling(cell)) >= LEAST_TITLE), "")
    return Title(_telling(cell), named=_is_name(cell))


def _before(before: str, said: re.Pattern[str]) -> tuple[str, bool]:
    """Return the title that stands before an id, and whether it is marked as one."""
    if (found := _LINKED.search(before)) is not None:
        return found[1], True
    if marked := list(_MARKED.finditer(before)):
        return _marked(marked[-1])
    if (found := said.search(before)) is None:
        return "", False
    long = len(found[1].split()) > 8
    return (re.split(r"\b(?:and|see|in|from|of|is|are)\b ", found[1])[-1] if long else found[1]), False


def _after(after: str, *, bare: bool) -> tuple[str, bool]:
    """Return the title after an id, ``bare`` also if no sign parts them; and whether it is marked as one."""
    if (found := _MARKED.search(after[:120])) is not None:
        return _marked(found)
    found = _AFTER.match(after) or (_BARE.match(after) if bare else None)
    return (found[1] if found else ""), False


def _marked(found: re.Match[str]) -> tuple[str, bool]:
    return next(group for group in found.groups() if group), found[0][0] in '"“'


def _telling(text: str) -> list[str]:
    return [word for word in words(text) if word not in STOP]


def _is_name(text: str) -> bool:
    """Tell whether words are written as a title is: all but the short ones in capitals."""
    said = [word for word in re.findall(r"[^\W\d_][\w'-]*", text) if word.lower() not in STOP and len(word) > 2]
    return len(said) >= LEAST_NAMED and all(word[0].isupper() for word in said)
