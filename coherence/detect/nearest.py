"""What the sources have in place of a value that they do not have, or not so."""

from __future__ import annotations

import re
from difflib import get_close_matches

from coherence.core.readings import Claim
from coherence.detect.normal_values import digest, words
from coherence.detect.sources import Given, as_written, form_key, known_words
from coherence.detect.titles import AROUND, LEAST_TITLE, STOP, Title, is_document

SAME_TITLE = 0.5
"""Share of a title's words that stand beside the id where it is the right one."""

OTHER_TITLE = 0.75
"""Share of a title's words beside another id from which it is that one's title."""

KNOWN_TITLE = 0.5
"""Share of a title's neighbouring words that stood so in a source where a source has it."""

LIKE_NAME = 0.8
"""Share of the characters of two names in code from which one may be meant for the other."""

MOST_NAMES = 500
"""Names in code that are compared, the newest."""

MOST_VERSIONS = 100
"""Versions of an id that are told apart."""

_VERSION = re.compile(r"(.*\d)v\d{1,3}\Z", re.S)


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
            return as_written(given, newest), given.values[newest]
    return None


def similar(given: Given, claim: Claim) -> tuple[str, int] | None:
    """Return a value of the same kind that came in and differs in one character, and its event; a name in a few."""
    if claim.kind == "function":
        names = [key for key in reversed(given.values) if key.startswith("f:")][:MOST_NAMES]
        found = get_close_matches(claim.forms[0], names, n=1, cutoff=LIKE_NAME)
        return (as_written(given, found[0]), given.values[found[0]]) if found else None
    for form in claim.forms[:1]:
        kind, _, body = form.partition(":")
        if len(body) < 3:
            continue
        for key, seq in reversed(given.values.items()):
            if len(key) == len(form) and key.startswith(kind) and _differ(key, form) == 1:
                return as_written(given, key), seq
    return None


def _differ(one: str, other: str) -> int:
    return sum(left != right for left, right in zip(one, other, strict=True))


def opened(given: Given, claim: Claim) -> bool:
    """Tell whether a cited source was opened, or need not have been: addresses and documents must, if a tool gave them.

    A list of results names an address; only a successful call that names it opens it.
    """
    if claim.kind != "url" and not is_document(claim):
        return True
    return any(form_key(form) in given.opened for form in (*claim.forms, *claim.also))


def other_title(given: Given, claim: Claim, title: Title) -> tuple[str, int] | None:
    """Return the id that a stated title belongs to, and its event, if it is not the one it is stated with."""
    if claim.kind not in ("id", "url") or len(given.records) < 2:
        return None
    own = _record(given, claim)
    wanted = [each for word in dict.fromkeys(title.words) if (each := digest(word)) in given.pairs]
    if own is None or len(wanted) < LEAST_TITLE:
        return None
    share = sum(word in own for word in wanted) / len(wanted)
    if share >= SAME_TITLE:
        return None
    mine = {form_key(form) for form in (*claim.forms, *claim.also)}
    for key, beside in given.records.items():
        other = sum(word in beside for word in wanted) / len(wanted)
        if key not in mine and other >= OTHER_TITLE and beside != own:
            return as_written(given, key), given.values.get(key, 0)
    return None


def other_name(given: Given, claim: Claim, name: str) -> tuple[str, int] | None:
    """Return the one id that a single word stands beside, and its event, if it is not the one it is stated with."""
    own, word = _record(given, claim), digest(name)
    if not name or own is None or word in own:
        return None
    mine = {form_key(form) for form in (*claim.forms, *claim.also)}
    found = [key for key, beside in given.records.items() if word in beside and key not in mine]
    if not found or any(given.records[key] != given.records[found[0]] for key in found):
        return None
    return as_written(given, found[0]), given.values.get(found[0], 0)


def invented_title(given: Given, claim: Claim, title: Title) -> bool:
    """Tell whether a document is cited with a title that no source has although one names the document."""
    own = _record(given, claim) or []
    said = list(dict.fromkeys(title.words))
    if given.lost_words or not is_document(claim) or not title.named or min(len(own), len(said)) < LEAST_TITLE:
        return False
    return not any(digest(word) in own for word in said) and known_words(given, said) < KNOWN_TITLE


def _record(given: Given, claim: Claim) -> list[int] | None:
    return next((given.records[key] for form in claim.forms if (key := form_key(form)) in given.records), None)


def untitled(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a document is cited by its id alone, no word of its title near, although the sources name it."""
    own = _record(given, claim) or []
    if not is_document(claim) or len(own) < LEAST_TITLE:
        return False
    near = text[max(0, claim.start - AROUND) : claim.start + AROUND]
    return not any(digest(word) in own for word in words(near) if word not in STOP and word.isalpha())
