"""States and numbers that a result tells of things, and whether a clause speaks of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.readings import excerpt
from coherence.core.words import word_set
from coherence.detect.claim_words import BE, clause_words, negations
from coherence.detect.failure_cues import finds_nothing
from coherence.detect.fingerprints import name_words
from coherence.detect.text_analysis import is_name, tokens

SHORT = 240
"""Characters of a result up to which all of it is said of what the call asked for."""

MAX_SUMMARY = 2_000
"""Characters of a result up to which "3 of 5" is said of all of it."""

QUOTED = 140
"""Characters of a claim or a result that are quoted."""

STATES: dict[str, tuple[str, str]] = {
    "running": (
        "active running up online alive operational reachable started circule fährt läuft funciona",
        "inactive dead down offline stopped exited unreachable crashed supprimé annulé ausgefallen cancelado",
    ),
    "open": ("open unresolved reopened offen ouvert abierto", "closed resolved solved geschlossen fermé cerrado"),
    "free": (
        "free available vacant unbooked frei verfügbar libre disponible",
        "taken booked occupied busy unavailable reserved belegt ausgebucht occupé ocupado",
    ),
    "changed": ("changed modified differs uncommitted dirty in_place", "unchanged clean unmodified identical"),
    "paid": ("paid settled bezahlt payé pagado", "unpaid overdue outstanding unbezahlt impayé"),
    "delivered": (
        "delivered arrived zugestellt geliefert livré livrée entregado entregada",
        "undelivered in_transit unterwegs",
    ),
    "published": ("published", "draft unpublished"),
    "enabled": ("enabled", "disabled"),
    "valid": (
        "valid gültig valide válido valida",
        "invalid expired ungültig abgelaufen expiré périmé caducado vencido scaduto",
    ),
    "approved": ("approved accepted granted", "rejected denied declined refused disapproved"),
    "locked": ("locked", "unlocked"),
    "connected": ("connected", "disconnected"),
    "eligible": ("eligible", "ineligible"),
    "encrypted": ("encrypted", "unencrypted"),
    "public": ("public", "private"),
    "signed": ("signed", "unsigned"),
    "missing": ("missing", "present"),
}

_POLES = {
    word.replace("_", " "): (name, at == 0)
    for name, poles in STATES.items()
    for at, words in enumerate(poles)
    for word in words.split()
}
"""Word -> what it tells of, and which of both."""
_NOTHING_CHANGED = "nothing to commit"
_HAS = word_set("has have is are there plenty enough several many some contains holds shows was were")

_FIELD_LINE = lazy_regex(
    r"^[\s-]{0,12}[\"']?([A-Za-z][\w -]{0,40}?)[\"']?\s{0,3}[:=]\s{0,3}[\"']?([^\n\"',]{1,60})", re.M
)
_MEASURED = lazy_regex(r"[$€£]?\s?(\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,4})?|\d{1,12}(?:\.\d{1,4})?)\s?(?:%|[a-z]{1,7})?")
_DAY = lazy_regex(r"\b(?:19|20)\d\d-(\d\d)-(\d\d)\b")
_LOOKING = word_set("get list search find read check show view fetch lookup query by all mcp api for of")
_AGENDA = word_set("calendar event events schedule agenda appointments meetings availability bookings")
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
_LABELS = lazy_regex(r"\b[A-Za-z]{1,20}:(?=\s)")
_CHANGED = lazy_regex(r"^(?: ?[MADRU]{1,2}|\?\?) {1,2}\S.{0,100}", re.M)
_ID_KEY = lazy_regex(r"(?:^|_| )(?:id|number|code|key|no|ref|reference)\Z|Id\Z", re.IGNORECASE)
"""Name of a field whose value is an id."""

MARKS = lazy_regex(r"<returncode>[^<\n]{0,9}</returncode>|</?output>")


class StateTold(msgspec.Struct):
    """State of something, by a result."""

    seq: int
    about: list[str]
    """Tokens of what the call asked for and of the record it stands in."""
    topic: str
    """Key of the table of states; else the tokens of a field's name, in order."""
    value: bool
    line: str
    record: list[str] = []
    """Tokens that name the record alone, where the result has several."""
    number: float | None = None
    lined: bool = False
    """True if it is told by one line of several, each about another thing."""


class OpenAttempt(msgspec.Struct):
    """A call without its result."""

    id: str
    tool: str
    acts: list[str]
    objects: list[str]
    reads: bool
    shell: bool
    paths: list[str]
    checks: str = ""
    """``tests`` or ``build`` where it runs those."""
    raw: str = ""
    """Tool and the beginning of its arguments, in lower case."""


def claimed(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the states that a clause tells of, as the table has them."""
    if _POLE_WORDS.isdisjoint(words):
        return
    for at, word in enumerate(words):
        if word in _POLE_WORDS and (word != "clean" or not _TREE.isdisjoint(words)):
            found = _POLES.get(" ".join(words[at : at + 2])) or _POLES.get(word)
            if found is not None and not _IS.isdisjoint(words[max(0, at - 5) : at]):
                yield found


_TREE = word_set("tree repo repository directory checkout branch workspace git copy status")
"""Words beside which "clean" says that nothing has changed: a function may be clean, too."""
_POLE_WORDS = frozenset(word.partition(" ")[0] for word in _POLES)
_IS = BE | {"it's", "they're", "that's", "still", "remains", "has", "have", "there"}


def has(topic: str, words: Sequence[str], clause: frozenset[str]) -> bool | None:
    """Tell whether a clause says that there is some of what a field counts; ``None`` if it does not speak of it."""
    parts = topic.split()
    return True if parts and clause.issuperset(parts) and says_there_is(words) else None


def says_there_is(words: Sequence[str]) -> bool:
    """Tell whether a clause says that there is some of something."""
    return not _HAS.isdisjoint(words)


@lru_cache(maxsize=2_000)
def _topic(key: str) -> str:
    """Return the tokens of a field's name as a topic."""
    return " ".join(sorted(tokens(key[:80])))


_POLE_TOKENS = {topic: frozenset(token for pole in poles for token in tokens(pole)) for topic, poles in STATES.items()}


def may_speak_of(state: StateTold, said: frozenset[str]) -> bool:
    """Tell whether a message of some tokens may tell of what a state is told of."""
    named = _POLE_TOKENS.get(state.topic)
    if named is not None and state.topic not in said and named.isdisjoint(said):
        return False
    return (named is not None or said.issuperset(state.topic.split())) and same_thing(state, said, least=1)


def same_thing(state: StateTold, said: frozenset[str], least: int = 2) -> bool:
    """Tell whether a sentence speaks of what a state is told of: by a name, or by two words where no name differs."""
    if state.record and not any(each in said for each in state.record):
        return False
    shared = {each for each in state.about if each in said}
    if state.lined or any(map(is_name, shared)):
        return True
    return len(shared) >= least and not (any(map(is_name, said)) and any(map(is_name, state.about)))


def with_singulars(found: frozenset[str]) -> frozenset[str]:
    """Return tokens, and the short plurals among them without their ending, too: longer ones are stems already."""
    singulars = {token[:-1] for token in found if len(token) == 4 and token[3] == "s"}
    return found | singulars if singulars else found


def states_in(seq: int, call: OpenAttempt, text: str) -> Iterator[StateTold]:
    """Yield the states that a result tells of: fields of records, or all of a short one."""
    body = MARKS.sub("\n", text).strip()
    asked = call.objects
    agenda = not call.acts and not _AGENDA.isdisjoint(name_words(call.tool))
    day = next((day for each in asked if (day := _DAY.fullmatch(each)) is not None), None) if agenda else None
    if day is not None:
        told = excerpt(body, QUOTED) if body else "nothing"
        yield StateTold(seq, _day_words(day), "free", finds_nothing(body), told)
    if not call.shell and not call.acts and finds_nothing(body):
        sought = tokens(" ".join(word for word in name_words(call.tool) if word not in _LOOKING))
        if sought:
            yield StateTold(seq, asked, " ".join(sorted(sought)), False, excerpt(body or "nothing", QUOTED))
        return
    if body[:1] in "{[":
        try:
            value = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            return
        yield from _of_json(seq, asked, value)
        return
    if call.shell or "git" in name_words(call.tool):
        changed = _CHANGED.search(body) if len(body) <= MAX_SUMMARY else None
        if changed is not None and {"status", "git"} & {*asked, *name_words(call.tool)}:
            yield StateTold(seq, [*asked, *tokens("working tree changes committed edits")], "changed", True, changed[0])
    lined = "\n" in body and not call.shell and not (call.reads and call.paths) and _NOTHING_CHANGED not in body
    if len(body) <= SHORT and lined:
        yield from _of_lines(seq, asked, body)
    elif len(body) <= SHORT:
        about = [*asked, *sorted(tokens(body))]
        words = clause_words(_LABELS.sub(" ", body))
        if _NOTHING_CHANGED in body:
            about += tokens("changes committed edits")
            yield StateTold(seq, about, "changed", False, excerpt(body, QUOTED))
            return
        if len(words) <= 12:
            for at, word in enumerate(words):
                found = _POLES.get(word)
                if found is not None:
                    value = found[1] != bool(negations(words[max(0, at - 3) : at]))
                    yield StateTold(seq, about, found[0], value, excerpt(body, QUOTED))
                    return
    if call.shell or (call.reads and call.paths):
        return  # what programs and files hold is not said of the world
    for line in islice(_FIELD_LINE.finditer(body), 40):
        yield from _of_field(seq, asked, [], line[1], line[2].strip())


def _of_lines(seq: int, asked: list[str], body: str) -> Iterator[StateTold]:
    """Yield the states that short lines tell of what each of them begins with."""
    lines = [line.strip() for line in body.split("\n") if line.strip()][:20]
    parts = [tokens(line) for line in lines]
    number = Counter(token for part in parts for token in part)
    for line, part in zip(lines, parts, strict=True):
        if _FIELD_LINE.match(line) is not None or line[-1] in ".!":
            continue  # a field, or prose
        words = clause_words(_LABELS.sub(" ", line))
        own = [token for token in part if number[token] == 1 and token not in _POLES]
        found = [pole for word in words if (pole := _POLES.get(word)) is not None]
        if len(words) <= 12 and len({*found}) == 1 and own:
            topic, value = found[0]
            denied = bool(negations(words))
            yield StateTold(seq, [*asked, *own], topic, value != denied, excerpt(line, QUOTED), own, lined=True)


def _day_words(day: re.Match[str]) -> list[str]:
    """Return the tokens by which somebody names a day."""
    number = int(day[2])
    ending = "th" if 10 < number < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    # digits of no month must not raise
    return [day[0], f"{number}{ending}", str(number), *tokens(_MONTHS[(int(day[1]) - 1) % 12])]


_NESTED = (dict, list)


def _of_json(seq: int, asked: list[str], value: Any) -> Iterator[StateTold]:
    waiting: list[tuple[Any, list[str], bool]] = [(value, [], False)]
    seen = 0
    while waiting and seen < 400:
        item, record, many = waiting.pop()
        if isinstance(item, list):
            several = many or sum(isinstance(each, dict) for each in item) > 1
            waiting += [(each, record, several) for each in item[:60]]
            seen += len(item[:60])
        elif isinstance(item, dict):
            own = [token for key, each in islice(item.items(), 30) for token in _ids(key, each)]
            record = own or record
            several = many or sum(isinstance(each, dict) for each in item.values()) > 1
            for key, each in islice(item.items(), 60):
                seen += 1
                if isinstance(each, _NESTED) and each:
                    named = [token for token in tokens(key[:60]) if is_name(token)]
                    waiting.append((each, named or record, several if named else many))
                elif not isinstance(each, dict):
                    yield from _of_field(seq, [*asked, *record], record if many else [], key, each)


def _ids(key: str, value: Any) -> Iterable[str]:
    """Return the tokens of a field that names its record."""
    names = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
    return tokens(str(value)[:60]) if names and is_id_key(key) else ()


def is_id_key(key: str) -> bool:
    """Tell whether the value of a field of this name is an id."""
    return _ends_as_id(key[-12:])  # no shorter than what the expression looks at


@lru_cache(maxsize=2_000)
def _ends_as_id(key: str) -> bool:
    return _ID_KEY.search(key) is not None


def _of_field(seq: int, about: list[str], record: list[str], key: str, value: Any) -> Iterator[StateTold]:
    if isinstance(value, str):
        low = value.casefold().replace("_", " ")
        if low in ("true", "yes"):
            value = True
        elif low in ("false", "no"):
            value = False
        else:
            found = _POLES.get(low)
            measured = _MEASURED.fullmatch(low)
            if found is not None:
                yield StateTold(seq, about, found[0], found[1], f"{key}: {value}", record)
            elif measured is not None and (topic := _topic(key)) and not is_id_key(key):
                number = float(measured[1].replace(",", ""))
                yield StateTold(seq, about, topic, True, f"{key}: {value}", record, number)
            return
    if value is None:
        return
    line = f"{key}: {str(value).lower()}"
    if isinstance(value, bool):
        parts = clause_words(key.replace("_", " "))
        stated = [found for word in parts if (found := _POLES.get(word)) is not None]
        if stated:
            yield StateTold(seq, about, stated[0][0], value == stated[0][1], line, record)
            return
    elif is_id_key(key):
        return
    topic = _topic(key)
    if topic:
        count = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        yield StateTold(seq, about, topic, bool(value), line, record, count)
