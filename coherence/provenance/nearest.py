"""What the sources have in place of a value that they do not have, or not so."""

from __future__ import annotations

import re

from coherence.provenance.claims import Claim
from coherence.provenance.normal_values import digest, words
from coherence.provenance.sources import Given, form_key

LEAST_TITLE = 2
"""Words that make a title."""

SAME_TITLE = 0.5
"""Share of a title's words that stand beside the id where it is the right one."""

OTHER_TITLE = 0.75
"""Share of a title's words beside another id from which it is that one's title."""

MOST_VERSIONS = 100
"""Versions of an id that are told apart."""

_VERSION = re.compile(r"(.*\d)v\d{1,3}\Z", re.S)
_DOCUMENT = re.compile(r"id:(?:\d{4}\.\d{4,5}(?:v\d+)?|10\.\d{4,9}/.*)\Z", re.S)
_LINKED = re.compile(r"\[([^\]\n]{4,200})\]\(\s{0,4}\Z")
_MARKED = re.compile(
    r"\"([^\"\n]{4,200})\"|“([^”\n]{4,200})”|\*\*([^*\n]{4,200})\*\*|(?<![\w*])[*_]([^*_\n]{4,200})[*_](?![\w*])"
)
_BEFORE = re.compile(
    r"(?:\A|[\n.;:!?)\]]|\s[-*•–—]\s)\s*((?:[^\n.;:!?()]|\.(?=\w)){4,120}?)\s*[(\[,–—-]\s*(?:arxiv:|doi:|id:?|cve:)?\s*\Z",
    re.I,
)
_AFTER = re.compile(r"[)\]]?\s*(?:[:–—(-]|,\s)\s*([^\n.;()\[\]]{4,120})")
_STOPS = "the a an of in on for and or to by with at from is are was as it its this that arxiv doi id cve"
_STOP = frozenset(_STOPS.split())


def other_version(given: Given, claim: Claim) -> tuple[str, int] | None:
    """Return the version of an id that came in, and its event; ``None`` if none did.

    Examples
    --------
    >>> given = Given(values={"id:2310.06825v2": 12, "id:2310.06825": 12})
    >>> other_version(given, Claim("id", "2310.06825v3", 0, ("id:2310.06825v3",)))
    ('2310.06825v2', 12)
    """
    for form in claim.forms:
        versioned = _VERSION.fullmatch(form)
        if versioned is None or versioned[1] not in given.values:
            continue
        known = [form for number in range(1, MOST_VERSIONS) if (form := f"{versioned[1]}v{number}") in given.values]
        if known:
            newest = max(known, key=lambda form: given.values[form])
            return newest.partition(":")[2], given.values[newest]
    return None


def similar(given: Given, claim: Claim) -> tuple[str, int] | None:
    """Return a value of the same kind that came in and differs in one character, and its event."""
    for form in claim.forms[:1]:
        kind, _, body = form.partition(":")
        if len(body) < 3:
            continue
        for key, seq in reversed(given.values.items()):
            if len(key) == len(form) and key.startswith(kind) and _differ(key, form) == 1:
                return key.partition(":")[2], seq
    return None


def _differ(one: str, other: str) -> int:
    return sum(left != right for left, right in zip(one, other, strict=True))


def opened(given: Given, claim: Claim) -> bool:
    """Tell whether a cited source was opened, or need not have been: addresses and documents must, if a tool gave them.

    A list of results names an address; only a successful call that names it opens it.
    """
    if claim.kind != "url" and not (claim.kind == "id" and _DOCUMENT.match(claim.forms[0])):
        return True
    return any(form_key(form) in given.opened for form in (*claim.forms, *claim.also))


def title_of(text: str, claim: Claim) -> list[str]:
    """Return the words of the title that an id or address is stated with; empty if there is none.

    Examples
    --------
    >>> text = "See [Mistral 7B](https://arxiv.org/abs/2310.06825) and Attention Is All You Need (1706.03762)."
    >>> title_of(text, Claim("url", "https://arxiv.org/abs/2310.06825", 17, ()))
    ['mistral', '7b']
    >>> title_of(text, Claim("id", "1706.03762", text.index("1706"), ()))
    ['attention', 'all', 'you', 'need']
    """
    begin = text.rfind("\n", 0, claim.start) + 1
    end = text.find("\n", claim.start)
    end = len(text) if end < 0 else end
    begin, end = max(begin, claim.start - 250), min(end, claim.start + len(claim.text) + 250)
    before, after = text[begin : claim.start], text[claim.start + len(claim.text) : end]
    found = _LINKED.search(before)
    title = found[1] if found else ""
    if not title and (marked := list(_MARKED.finditer(before))):
        title = next(group for group in marked[-1].groups() if group)
    if not title and (marked := list(_MARKED.finditer(after[:120]))):
        title = next(group for group in marked[0].groups() if group)
    if not title and (found := _BEFORE.search(before)):
        title = re.split(r"\b(?:and|see|in|from|of|is|are)\b ", found[1])[-1] if len(found[1].split()) > 8 else found[1]
    if not title and (found := _AFTER.match(after)):
        title = found[1]
    return [word for word in words(title) if word not in _STOP]


def other_title(given: Given, text: str, claim: Claim) -> tuple[str, int] | None:
    """Return the id that a stated title belongs to, and its event, if it is not the one it is stated with."""
    if claim.kind not in ("id", "url") or len(given.records) < 2:
        return None
    own = next((given.records[key] for form in claim.forms if (key := form_key(form)) in given.records), None)
    title = title_of(text, claim) if own is not None else []
    title = [word for word in title if digest(word) in given.pairs]
    if own is None or len(title) < LEAST_TITLE:
        return None
    wanted = [digest(word) for word in dict.fromkeys(title)]
    share = sum(word in own for word in wanted) / len(wanted)
    if share >= SAME_TITLE:
        return None
    mine = {form_key(form) for form in (*claim.forms, *claim.also)}
    for key, beside in given.records.items():
        other = sum(word in beside for word in wanted) / len(wanted)
        if key not in mine and other >= OTHER_TITLE and beside != own:
            return key.partition(":")[2], given.values.get(key, 0)
    return None


def untitled(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a document is cited by its id alone although the sources name it."""
    if claim.kind != "id" or not _DOCUMENT.match(claim.forms[0]):
        return False
    own = next((given.records[key] for form in claim.forms if (key := form_key(form)) in given.records), [])
    if len(own) < LEAST_TITLE:
        return False
    begin = text.rfind("\n", 0, claim.start) + 1
    end = text.find("\n", claim.start)
    line = text[max(begin, claim.start - 250) : min(len(text) if end < 0 else end, claim.start + 250)]
    return not any(digest(word) in own for word in words(line) if word not in _STOP and word.isalpha())
