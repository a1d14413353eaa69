"""Values of an answer compared with the values of its sources: which of them are unsupported, and what is nearest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from coherence.core.lazy import lazy_regex, one_of
from coherence.core.protocols import Extractor
from coherence.core.readings import Claim, number_of, one_line
from coherence.detect.answer_text import stated_text
from coherence.detect.arithmetic import has_degrees, is_converted, rounded
from coherence.detect.extractors import extract, numbers, row
from coherence.detect.number_words import measures
from coherence.detect.read_once import read_once
from coherence.detect.reckoned import Reckoning
from coherence.detect.restated import is_restated
from coherence.detect.sources import SMALL, Given, as_written, form_key, known_words, lookup
from coherence.detect.values import words
from coherence.detect.workings import gives, workings

LIKE_NAME = 0.8
"""Share of the characters of two names in code from which one may be meant for the other."""

MAX_NAMES = 500
"""Names in code that are compared, the newest."""

MAX_VERSIONS = 100
"""Versions of an id that are told apart."""

_VERSION = lazy_regex(r"(.*\d)v\d{1,3}\Z", re.S)
_DOCUMENT = lazy_regex(r"id:(?:\d{4}\.\d{4,5}(?:v\d+)?|10\.\d{4,9}/.*)\Z", re.S)
"""The id of a paper."""


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
        known = [form for number in range(1, MAX_VERSIONS) if (form := f"{versioned[1]}v{number}") in given.values]
        if known:
            newest = max(known, key=lambda form: given.values[form])
            return as_written(given, newest), given.values[newest]
    return None


def similar(given: Given, claim: Claim) -> tuple[str, int] | None:
    """Return a value of the same kind that came in and differs in one character, and its event; a name in a few."""
    if claim.kind == "function":
        names = [key for key in reversed(given.values) if key.startswith("f:")][:MAX_NAMES]
        from difflib import get_close_matches  # needed only where names differ

        found = get_close_matches(claim.forms[0], names, n=1, cutoff=LIKE_NAME)
        return (as_written(given, found[0]), given.values[found[0]]) if found else None
    for form in claim.forms[:1]:
        kind, _, body = form.partition(":")
        if len(body) < 3:
            continue
        size = len(form)
        head, tail = form[: size // 2], form[size // 2 :]  # one of them is the same where one character differs
        for key, seq in reversed(given.values.items()):
            if len(key) != size or not (key.startswith(head) or key.endswith(tail)):
                continue
            if key.startswith(kind) and _differ(key, form) == 1:
                return as_written(given, key), seq
    return None


def _differ(one: str, other: str) -> int:
    return sum(left != right for left, right in zip(one, other, strict=True))


def opened(given: Given, claim: Claim) -> bool:
    """Tell whether a cited source was opened, or need not have been: addresses and documents must, if a tool gave them.

    A list of results names an address; only a successful call that names it opens it.
    """
    if claim.kind != "url" and (claim.kind != "id" or _DOCUMENT.match(claim.forms[0]) is None):
        return True
    return any(form_key(form) in given.opened for form in (*claim.forms, *claim.also))


MAX_JUDGED = 300
"""Values of one answer that are judged; further ones count as unknown."""

MAX_WAITING = 20
"""Values that nothing has given up to which they are held against those that were found grounded after them."""

MAX_UNGROUNDED = 8
"""Ungrounded values of one answer that are named."""

WEIGHTS = {
    "record": 1.0,
    "term": 1.0,
    "number": 1.0,
    "amount": 1.0,
    "time": 1.0,
    "date": 2.0,
    "function": 2.0,
    "name": 2.0,
    "path": 2.0,
}
"""Kind -> how much a value of it counts; 3 for all others: ids, addresses, quotes. As tokens are weighed."""

WORDLIKE = 1.0
"""Weight of an id that is made of a word in small letters and a few digits, such as ``500-piece``."""

UNOPENED = 0.25
"""Share of an address that counts as ungrounded if it did come in but was never opened."""

UNATTRIBUTED = 1 / 3
"""Share of a quotation that counts where nobody is said to have said it: it may be a wording."""

TERM_WORDS = 5
"""Words of a quotation that is no wording or name; a shorter one counts where somebody is said to have said it."""

LONE_DIGITS = 4
"""Digits from which a number is known as that of an id, whatever letters stand before it: ``T-5503`` and ``5503``."""

WORDED = frozenset({"quote", "function", "name"})
"""Kinds that are known by their words."""

QUOTED = 0.6
"""Share of a quotation's neighbouring words that must have stood next to each other in a source."""

_COMMON = """utf-8 utf-16 utf-32 utf8 sha-1 sha1 sha-256 sha256 sha512 md5 mp3 mp4 h264 base64 ipv4 ipv6 x86 x86_64
win32 win64 covid-19 http2 oauth2 python3 es6 s3 ec2 i18n k8s 2fa b2b b2c iso-8859-1 bm25 fp16 fp32 int32 int64"""
COMMON = frozenset(_COMMON.split())
"""Words of letters and digits that are the id of nothing in particular."""

_SAYING = (
    r"said says saying wrote writes written state states stated stating read reads quot\w+ according told tells replied"
    r" answered report reports reported commented claims claimed titled log message sagt sagte sagen schreib\w* schrieb"
    r" laut zitat dit disent écri[tv]\w* selon dijo dice escrib\w+ según"
)
_SAYS = lazy_regex(rf"\b(?:{one_of(_SAYING.split())})\b", re.I)
"""Words near a quotation that say whose it is."""
_ASKING = (
    r"reply respond answer say type enter write send confirm provide click select choose press search use set mark\w*"
    r" antworte\w* répond\w+ responde\w*"
)
_ASKS_TO_SAY = lazy_regex(rf"\b(?:{one_of(_ASKING.split())})\b[^.!?\n]{{0,40}}\Z", re.I)
"""Words before those that the reader is to use."""
_DATA_BEFORE = frozenset("[({=,:")
_SHOW_WORDS = (
    r"such as|for example|for instance|e\.?g\.?|examples?|formats?|formatted|looks? like|like|starting with|starts with"
    r"|z\.? ?b\.?|beispiel\w*|wie|par exemple|comme|por ejemplo|como|ejemplo"
)
_SHOWS = one_of(_SHOW_WORDS.split("|"))
_EXAMPLE = lazy_regex(rf"\b(?:{_SHOWS})(?:\b|(?<=\.))[^.!?\n]{{0,30}}\Z", re.I)
_EXAMPLES = lazy_regex(rf"\b(?:{_SHOWS})", re.I)
"""Beginnings of what :data:`_EXAMPLE` finds."""
_FORMAT = lazy_regex(
    r"\b(?:[Ff]ormat\w*|[Ww]rit(?:e|ten)|looks? like|valid|accept(?:s|ed)|expects?|wants|enter|pattern|syntax"
    r"|[YMDHhmsdy]{2,4}[-/.:][YMDHhmsdy]{2,4})\b"
)
"""Words by which a value only shows how one is written."""
_STANDARD = lazy_regex(r"(?:rfc|iso|pep|din|ieee|utc|gmt)[ -]?[+-]?\d", re.I)
"""Beginning of the name of a standard, or of a time zone."""
_PLACEHOLDER = lazy_regex(r"0{4}|(\d)\1{5}|1234567")
"""Digits of an id that stands for any."""
_PLAIN = frozenset({"email", "number", "amount", "date", "time"})
"""Kinds of values that a call may be told of though it failed: it did not make them."""
_ADMITS = lazy_regex(
    r"\b(?:fail\w*|no|not|\w+n't|cannot|lacks?|denied|unable|invalid|refused|rejected|nicht|kein\w*|pas|aucun\w*|ningun\w*)\b",
    re.I,
)
"""Words by which a value did not work."""
_PLACES = (
    "room gate door floor platform track hall seat terminal zone dock raum zimmer saal gleis tor halle salle quai"
    " porte sala puerta piso andén"
)
_NUMBERED = lazy_regex(rf"\b(?:{one_of(_PLACES.split())})\s#?\Z", re.I)
"""Words before the number of one thing."""
_ELLIPSIS = lazy_regex(r"\.{3}|…|\[[^\]\n]{0,40}\]")
_COMMA_GROUP = lazy_regex(r",\d{3}")


class Flaw(msgspec.Struct, frozen=True):
    """A value that is not grounded, and why."""

    kind: str
    """Of value, see :class:`~coherence.core.readings.Claim`."""
    text: str
    """As stated, at most 80 characters."""
    flaw: str
    """``absent``, ``altered`` (something like it came in), ``version``, ``row`` (a record of a result has it, another
    one what it is stated with), ``sum`` (written out, it makes another) or ``unopened``."""
    near: str = ""
    """Value that the sources have instead."""
    seq: int = 0
    """The event that has it; 0 = none."""


class Grounds(msgspec.Struct, frozen=True):
    """A measure of how far a text is grounded."""

    value: float | None
    """In [0, 1], 1 = all of it; ``None`` = there is nothing to check, or most of it is unknown."""
    checked: int = 0
    """Values that could be judged."""
    unknown: int = 0
    """Values that are absent but may have stood in what was dropped."""
    flaws: tuple[Flaw, ...] = ()
    """The gravest first, at most eight."""
    lost: float = 0.0
    """Weight of what is not grounded: 3 for an id that never came in, 1 for a number."""
    looked_up: bool = True
    """True if any tool had given a result in this task."""
    seq: int = 0
    """The event of the text."""

    @property
    def grave(self) -> tuple[Flaw, ...]:
        """The flaws of values that did not come in so; not what was merely not opened."""
        return tuple(flaw for flaw in self.flaws if flaw.flaw != "unopened")


def judge(
    given: Given,
    text: str,
    extractors: Sequence[Extractor],
    *,
    looked_up: bool = True,
    seq: int = 0,
    more: Iterable[Flaw] = (),
) -> Grounds:
    """Return how far a text is grounded in what was given before it.

    Parameters
    ----------
    given : Given
        Not changed.
    text : str
        An answer, or the arguments of a call.
    extractors : sequence of Extractor
        What counts as a checkable value.
    looked_up : bool
        Whether any tool had given a result.
    seq : int
        Number of the text's event.
    more : iterable of Flaw
        What else is wrong with it; each counts as a number does.
    """
    text = stated_text(text)
    return judge_claims(given, text, stated_in(given, text, extractors), looked_up=looked_up, seq=seq, more=more)


def stated_in(given: Given, text: str, extractors: Sequence[Extractor]) -> Sequence[Claim]:
    """Return the claims of a folded text, measures that are spelt out in words too."""
    claims = extract(text, extractors)
    if any(getattr(each, "extractor", each) is numbers for each in extractors):
        spelt = [claim for claim in measures(text) if known_words(given, words(claim.text)) < 1.0]
        claims = sorted((*claims, *spelt), key=lambda claim: claim.start) if spelt else claims
    return claims


def judge_claims(
    given: Given,
    text: str,
    claims: Sequence[Claim],
    *,
    looked_up: bool = True,
    seq: int = 0,
    cited: bool = True,
    more: Iterable[Flaw] = (),
) -> Grounds:
    """Return how far the claims that were found in a folded text are grounded, see :func:`judge`.

    With ``cited=False`` nobody has to have opened an address: a call is what opens it.
    """
    total = lost = 0.0
    wordings = 0
    flaws: list[tuple[float, Claim, Flaw]] = []
    plain = [claim for claim in claims if claim.value is not None and lookup(given, claim.forms) is not None]
    distinct = {claim.forms: claim for claim in reversed(claims) if not _is_trivial(given, text, claim)}
    stated = sorted(distinct.values(), key=lambda claim: claim.start)
    unknown = max(len(stated) - MAX_JUDGED, 0)
    reckoning = Reckoning(given)
    worked = list(workings(text))
    wrong = {each.said_start: each for each in worked if not each.is_right}
    judged_flaws: dict[int, Flaw | None] = {}
    waiting = list(enumerate(stated[:MAX_JUDGED]))
    while waiting:  # a total may be used further, also one that is stated before its parts
        known = len(plain)
        for at, claim in waiting:
            flaw = _flaw(given, text, claim, plain, reckoning, cited=cited)
            if flaw is not None and any(gives(each, claim) for each in worked):
                flaw = None
            place = next((each for each in wrong if claim.start <= each < claim.start + len(claim.text)), -1)
            if place >= 0 and claim.value is not None:
                flaw = _made(claim, "sum", (f"{wrong[place].result:.10g}", 0))
            judged_flaws[at] = flaw
            if flaw is None and claim.value is not None and claim not in plain:
                plain.append(claim)
        waiting = [(at, claim) for at, claim in waiting if judged_flaws[at] is not None and claim.value is not None]
        if len(plain) == known or len(waiting) > MAX_WAITING:
            break
    for at, claim in enumerate(stated[:MAX_JUDGED]):
        flaw = judged_flaws[at]
        weight = _weight(claim)
        if flaw is not None and claim.kind == "quote" and not _is_attributed(text, claim):
            weight *= 0.0 if wordings else UNATTRIBUTED  # several are choices that are offered
            wordings += 1
        forgot = given.lost_words if claim.kind in WORDED else given.lost
        forgot += given.lost_numbers if claim.value is not None and claim.grain != 1.0 else 0
        if flaw is not None and flaw.flaw == "absent" and forgot:
            unknown += 1
            continue
        total += weight
        if flaw is not None and weight:
            share = weight * (UNOPENED if flaw.flaw == "unopened" else 1.0)
            lost += share
            flaws.append((share, claim, flaw))
    further = list(more)
    total += len(further)
    lost += len(further)
    flaws.sort(key=lambda found: -found[0])
    named = tuple(_near(given, claim) if flaw.flaw == "absent" else flaw for _, claim, flaw in flaws[:MAX_UNGROUNDED])
    named = (*named, *further)[:MAX_UNGROUNDED]
    judged = len(distinct) - unknown + len(further)
    value = 1.0 - lost / total if total and (named or judged >= unknown) else None
    return Grounds(value, judged, unknown, named, lost, looked_up, seq)


_WORDLIKE = lazy_regex(r"(?=[^A-Z]*[a-z]{2})[^A-Z]+|\w{1,3}")


def _weight(claim: Claim) -> float:
    """Return how much a value counts."""
    if claim.kind == "id" and _WORDLIKE.fullmatch(claim.text) and sum(map(str.isdigit, claim.text)) < LONE_DIGITS:
        return WORDLIKE
    return weight_of(claim.kind)


def weight_of(kind: str) -> float:
    """Return how much a value of a kind counts."""
    return WEIGHTS.get(kind, 3.0)


def _is_trivial(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a value says nothing: a small number, a common term, an example, words for the reader to use."""
    if claim.kind == "id":
        return claim.text.lower() in COMMON or _STANDARD.match(claim.text) is not None or _is_example(text, claim)
    if claim.kind == "quote":
        return _is_wording(text, claim)
    if claim.kind == "number" and claim.value is not None:
        return (claim.value in SMALL and not _is_exact(text, claim)) or _is_sample(text, claim)
    if claim.kind in ("date", "time", "email", "amount"):
        return _is_sample(text, claim)
    return claim.kind == "function" and not given.code


def _is_example(text: str, claim: Claim) -> bool:
    """Tell whether an id shows only what ids look like."""
    if _PLACEHOLDER.search(claim.text) is not None:
        return True
    return _has_examples(text) and _EXAMPLE.search(text, max(0, claim.start - 60), claim.start) is not None


def _is_exact(text: str, claim: Claim) -> bool:
    """Tell whether a small number is none of those that count: degrees, a fraction written out, room 3."""
    if claim.grain != 1.0 or has_degrees(text, claim):
        return True
    before = text[claim.start - 1 : claim.start]
    if not before.isspace() and before != "#":
        return False
    return _NUMBERED.search(text, max(0, claim.start - 12), claim.start) is not None


def _is_sample(text: str, claim: Claim) -> bool:
    """Tell whether a value shows only how one is written: a format stands near, and it is called an example."""
    if not _has_examples(text) or _EXAMPLE.search(text, max(0, claim.start - 60), claim.start) is None:
        return False
    return _FORMAT.search(text, max(0, claim.start - 160), claim.start) is not None


@read_once
def _has_examples(text: str) -> bool:
    return _EXAMPLES.search(text) is not None


def _is_wording(text: str, claim: Claim) -> bool:
    """Tell whether quotation marks hold a string of data, words that the reader is to use, or a name for something."""
    if claim.text[:1].isspace() or claim.text[-1:].isspace():  # what stands between two quotations
        return True
    before = text[max(0, claim.start - 3) : claim.start].rstrip('"“„«> ')
    if (
        before[-1:] in _DATA_BEFORE
        and before[-1:]
        and _SAYS.search(text, max(0, claim.start - 40), claim.start) is None
    ):
        return True
    if _ASKS_TO_SAY.search(text, max(0, claim.start - 60), max(0, claim.start - 1)) is not None:
        return True
    return len(claim.text.split()) < TERM_WORDS and not _is_attributed(text, claim)


def _is_attributed(text: str, claim: Claim) -> bool:
    """Tell whether somebody is said to have said what is quoted."""
    end = claim.start + len(claim.text)
    return (
        _SAYS.search(text, max(0, claim.start - 60), claim.start) is not None
        or _SAYS.search(text, end, min(len(text), end + 40)) is not None
        or text[max(0, claim.start - 2) : claim.start] in ("> ", "\n>")
    )


def _is_known_id(given: Given, claim: Claim) -> bool:
    """Tell whether an id stood in a source in another form: with other letters or signs around it, or as a number."""
    said = words(claim.text)
    if len(said) > 1 and known_words(given, said) == 1.0:
        return True  # Mistral-7B is Mistral 7B
    lone = [word for word in said if len(word) >= LONE_DIGITS and any(map(str.isdigit, word))]
    if len(said) == 1:
        return bool(lone) and known_words(given, lone) == 1.0
    return (
        len(lone) == 1
        and lone[0].isdigit()
        and len(said) == 2
        and len(said[0]) <= 3
        and known_words(given, lone) == 1.0
    )


def _is_age(given: Given, claim: Claim) -> bool:
    """Tell whether a whole number is the years between two days that were given."""
    if claim.kind != "number" or claim.grain != 1.0 or not claim.value or not LEAST_AGE <= claim.value <= MOST_AGE:
        return False
    # Of two days in years 30 apart, one may come before the birthday: the age is 29 or 30.
    days = (form[2:6] for form in given.values if form.startswith("d:") and len(form) == 12)
    years = {int(year) for year in days if year.isdecimal()}  # a source may name a day that there is not: 24.13.2024
    return any(year + claim.value in years or year + claim.value + 1 in years for year in years)


# A smaller number may count anything, a larger one is no age.
LEAST_AGE, MOST_AGE = 13, 110


def _flaw(
    given: Given, text: str, claim: Claim, plain: Sequence[Claim], reckoning: Reckoning, *, cited: bool
) -> Flaw | None:
    """Return what is wrong with a claim, ``None`` if it is grounded."""
    if claim.kind in WORDED:
        return None if _has_words(given, claim) else _made(claim, "absent")
    if lookup(given, claim.forms) is not None:
        return None if not cited or opened(given, claim) else _made(claim, "unopened")
    if _is_grounded(given, text, claim, plain, reckoning):
        return None
    found = other_version(given, claim)
    return _made(claim, "version", found) if found is not None else _made(claim, "absent")


def _has_words(given: Given, claim: Claim) -> bool:
    """Tell whether the sources have the words of a quotation, a name in code or a name."""
    if claim.kind == "quote":
        parts = [words(part) for part in _ELLIPSIS.split(claim.text)]
        return min((known_words(given, part) for part in parts if part), default=1.0) >= QUOTED
    if claim.kind == "function":
        return all(known_words(given, [part]) for part in words(claim.text))
    return known_words(given, words(claim.text)) == 1.0


def _is_grounded(given: Given, text: str, claim: Claim, plain: Sequence[Claim], reckoning: Reckoning) -> bool:
    """Tell whether a value that nothing has as it stands is a given one in another form, or follows from given ones."""
    is_number = claim.kind in ("number", "amount")
    converted = is_number and is_converted(given, text, claim)
    if claim.value in SMALL and claim.kind == "number" and claim.grain == 1.0 and not converted:
        return any(each.value == claim.value for each in given.numbers)
    if converted or (claim.value is not None and rounded(given, text, claim)):
        return True
    if is_number and (_is_row(given, claim) or _is_age(given, claim)):
        return True
    if claim.kind == "date" and _is_day_of_a_given_year(given, claim):
        return True
    if claim.kind == "id" and _is_known_id(given, claim):
        return True
    tried = any(claim.text in text or _has_number(text, claim) for text in given.tried)
    if tried and (claim.kind in _PLAIN or _ADMITS.search(text) is not None):
        return True
    return is_restated(given, text, claim, plain) or reckoning.follows(text, claim, plain)


def _has_number(text: str, claim: Claim) -> bool:
    return claim.value is not None and any(each.value == claim.value for each in numbers(text))


def _is_day_of_a_given_year(given: Given, claim: Claim) -> bool:
    """Tell whether a source names the day without a year, and one the year."""
    for form in claim.forms:
        year, _, day = form.removeprefix("d:").partition("-")
        if lookup(given, [f"anyyear:{day}"]) is not None and lookup(given, [f"n:{year}"]) is not None:
            return True
    return False


def _is_row(given: Given, claim: Claim) -> bool:
    """Tell whether what looks like one number is several given ones in a row: room 12, 500 people.

    A comma before three digits parts groups more often than rows: there, small numbers must be given too.
    """
    strict = _COMMA_GROUP.search(claim.text) is not None
    parts = [part for text in row(claim.text) for part in numbers(text)]
    return bool(parts) and all(
        (part.value in SMALL and not strict and not part.unit) or lookup(given, part.forms) is not None
        for part in parts
    )


def _near(given: Given, claim: Claim) -> Flaw:
    """Return the flaw of a value that never came in, with what is like it."""
    found = similar(given, claim)
    return _made(claim, "altered", found) if found is not None else _made(claim, "absent")


def _made(claim: Claim, flaw: str, near: tuple[str, int] = ("", 0)) -> Flaw:
    return Flaw(claim.kind, _short(claim.text), flaw, *near)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"


SHOWN = 60
"""Characters of a value in a sentence."""

MAX_TOLD = 3
"""Values that a sentence names."""

_QUOTES = str.maketrans(dict.fromkeys('"“”„‟«»＂`', "'"))


def describe_flaw(flaw: Flaw) -> str:
    """Return what is wrong with a value, as the end of a sentence about it.

    Examples
    --------
    >>> describe_flaw(Flaw("id", "2310.06825v3", "version", "2310.06825v2", 12))
    'the sources have 2310.06825v2 (event 12)'
    >>> describe_flaw(Flaw("id", "4711", "absent"))
    'occurs in nothing that the agent was given'
    """
    where = f" (event {flaw.seq})" if flaw.seq > 0 else ""
    match flaw.flaw:
        case "version" | "altered":
            return f"the sources have {_plain(flaw.near)}{where}"
        case "row":
            return f"stands beside what another record of the result has: {_plain(flaw.near)}{where}"
        case "sum":
            return f"is not what the sum makes: {_plain(flaw.near)}"
        case "unopened":
            return "is cited, but no call opened it"
        case _:
            return "occurs in nothing that the agent was given"


def sentence(grounds: Grounds) -> str:
    """Return what is wrong with a statement, in one sentence that names three values at most.

    Examples
    --------
    >>> sentence(Grounds(0.5, 2, flaws=(Flaw("number", "17", "altered", "19", 4),), looked_up=True))
    '1 of 2 values in the answer is not grounded: “17” - the sources have 19 (event 4)'
    """
    flaws = grounds.flaws
    parts = [f"“{_plain(flaw.text)}” - {describe_flaw(flaw)}" for flaw in flaws[:MAX_TOLD]]
    more = f"; and {len(flaws) - MAX_TOLD} more" if len(flaws) > MAX_TOLD else ""
    verb = "is" if len(flaws) == 1 else "are"
    blind = "" if grounds.looked_up else "; nothing was looked up in this task"
    checked = number_of(grounds.checked, "value")
    return f"{len(flaws)} of {checked} in the answer {verb} not grounded: {'; '.join(parts)}{more}{blind}"


def _plain(text: str) -> str:
    line = one_line(text[: 2 * SHOWN]).strip().translate(_QUOTES)
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
