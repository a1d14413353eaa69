"""Calls and answers that break what somebody with a say has forbidden: by the act, and by what it is done to.

Read are the goal, requests, corrections and the system text; a later request that asks for the act lifts it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

import msgspec

from coherence.core.events import Message
from coherence.core.lazy import lazy_regex
from coherence.core.readings import excerpt
from coherence.core.words import word_set
from coherence.detect.claim_words import is_negation
from coherence.detect.deeds import NEW_TEXT, OLD_TEXT, Deeds, Part
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.languages import language
from coherence.detect.objects import alike, names, same, telling_of
from coherence.detect.prohibition import Prohibition
from coherence.detect.properties import FORMS, count_of
from coherence.detect.restrictions import MAX_CHARS, QUOTED, asked, prohibitions
from coherence.detect.text_analysis import TextAnalysis, tokens

MAX_PROHIBITIONS = 24
MAX_DOMAINS = 16
MAX_MARKED = 64
SHORTEST = 3
"""Letters of the shortest word that others are composed with."""
MAX_RECORD = 300
"""Characters of a line of a result that is one record."""
LENIENT = 1.1
"""Share of the words allowed up to which nobody counts."""

OFFICES = word_set(
    "shipping support warehouse ops operations it hr office billing team legal security admin helpdesk desk logistics "
    "accounting finance sales dispatch service backoffice staff internal"
)
"""Mailboxes of one's own house: not those of a customer, a guest or a patient."""

_BREAKS: Mapping[str, frozenset[str]] = {
    "change": word_set("change remove write"),
    "remove": word_set("remove"),
    "run": word_set("run add create"),
    "add": word_set("add"),
    "create": word_set("create"),
    "write": word_set("write change add remove"),
    "buy": word_set("buy pay book"),
    "book": word_set("book buy"),
    "pay": word_set("pay buy"),
    "invite": word_set("invite send add"),
    "send": word_set("send invite"),
    "handover": word_set("handover"),
}
"""Family that is forbidden -> families of calls that break it; others are broken by themselves."""
_WRITING = word_set("write add change send publish create mention other")
_HARMLESS = word_set("read run online log")
"""Families that are no "doing anything at all" to a thing."""

_BINS = tokens("trash bin wastebasket recycle papelera Papierkorb corbeille cestino lixeira archive archived archiv")
_ID = lazy_regex(r"(?<![\w.])#?([A-Za-z]{1,8}[-_]?\d{1,12}|\d{2,12})(?![\w.])")
_VALUE = lazy_regex(r"[\w@+.,-]{4,32}")
_HELD = lazy_regex(  # a digit of the value is near
    r"(?=\D{0,49}\d)[\"']?(?P<key>[A-Za-z][\w ]{1,24}?)[\"']?\s{0,2}[:=]?\s{0,2}[\"']?"
    r"(?P<value>(?=[\w@+.-]{0,16}\d)[\w@+.-]{4,32})"
)
MAX_HELD = 4_000
"""Characters of a result in which values behind the name of what is forbidden are sought."""
_MAIL = lazy_regex(r"[\w.+-]{1,64}@([\w-]{1,60}(?:\.[\w-]{1,60}){1,4})")
_SIGNATURE = lazy_regex(r"\b(?:def|function|func|fn|sub)\b[^\n()/]{0,80}\(")
_CLAUSES = lazy_regex(r"[.!?;:](?=\s|$)|\n|,\s")


class BrokenProhibition(msgspec.Struct, frozen=True):
    """A call and the sentence that forbids it."""

    seq: int
    tool: str
    arguments: str
    sentence: str
    other: int
    """Number of the event that forbids it; 0 = of an earlier session."""


class ProhibitionFacts(msgspec.Struct):
    """Prohibitions that stand; plain data, bounded."""

    standing: list[Prohibition] = []
    domains: dict[str, int] = {}
    """Domain of e-mail addresses -> how often it was seen; the most frequent is the user's own."""
    newest: BrokenProhibition | None = None
    called: int = 0
    """The newest call."""
    marked: list[str] = []
    """Ids of records in results that hold what is forbidden, each with its tokens: ``415 legal``; the newest."""
    held: list[str] = []
    """Values in results under a key that names what must not be told; the newest."""
    goal: str = ""
    """Beginning of what is asked for."""


class ProhibitionDetector(EventDetector[ProhibitionFacts]):
    """Holds each call and answer against what was forbidden.

    Examples
    --------
    >>> from msgspec import Raw
    >>> from coherence.core.events import Goal, ToolCall
    >>> detector = ProhibitionDetector()
    >>> detector.observe(Observed.of(Goal("Prepare release 3.2. Do not deploy yet."), 1))
    >>> detector.observe(Observed.of(ToolCall("deploy", Raw(b'{"version": "3.2"}'), "1"), 2))
    >>> detector.data.newest.sentence, detector.data.newest.other
    ('Do not deploy yet.', 1)
    """

    name, data_type = "broken_constraint", ProhibitionFacts

    def on_goal(self, observed: Observed) -> None:
        """Take in what is asked; another goal forbids anew."""
        data = self.data
        if observed.new_goal:
            data.standing = [each for each in data.standing if each.lasting]
            data.newest, data.called, data.marked, data.held = None, 0, [], []
        data.goal = observed.text.raw[:2_000]
        self._hear(observed)

    def on_message(self, observed: Observed) -> None:
        """Take in what the user or the host says."""
        event: Message = observed.event
        if event.role == "assistant":
            self.data.newest = self._broken_by_answer(observed) if self.data.standing else None
        elif event.role in ("user", "system"):
            self._hear(observed)

    def on_correction(self, observed: Observed) -> None:
        """Take in what the user corrects."""
        if not observed.event.removed:
            self._hear(observed)

    def _broken_by_answer(self, observed: Observed) -> BrokenProhibition | None:
        """Return which prohibition a message breaks by what it is like, or what it says."""
        text = observed.text.part(MAX_CHARS, "\n").raw
        for each in reversed(self.data.standing):
            if _shows(text, each) or ("have" in each.acts and _tells(text, each, self.data)):
                return BrokenProhibition(observed.seq, "", excerpt(text.strip(), QUOTED // 2), each.sentence, each.seq)
        return None

    def _hear(self, observed: Observed) -> None:
        data = self.data
        system = type(observed.event) is Message and observed.event.role == "system"
        new = list(islice(prohibitions(observed.text, observed.seq, data.goal, lasting=system), MAX_PROHIBITIONS))
        if data.standing and not system:
            wanted = asked(observed.text.part(MAX_CHARS, "\n"))
            data.standing = [
                each for each in data.standing if each.lasting or (not each.once and wanted.isdisjoint(each.acts))
            ]
        known = {(each.sentence, each.acts, each.objects, each.of, each.unit) for each in data.standing}
        fresh = [each for each in new if (each.sentence, each.acts, each.objects, each.of, each.unit) not in known]
        data.standing = [*data.standing, *fresh][-MAX_PROHIBITIONS:]
        self._note_domains(observed.text)

    def on_tool_result(self, observed: Observed) -> None:
        """Remember whose addresses are known, and which records and values hold what is forbidden."""
        standing = self.data.standing
        if not standing:
            return
        if any(each.of == "house" for each in standing):
            self._note_domains(observed.text)
        named = {token for each in standing for token in each.objects if len(token) > 2}
        if not named:
            return
        text = observed.text.part(MAX_CHARS, "\n").raw
        low = text.casefold()
        if any(map(low.__contains__, named)):
            for line in islice(re.split(r"\n|\},", text), 400):
                if len(line) > MAX_RECORD:
                    continue
                own = tokens(line)
                held = sorted({token for token in named if token in own})
                if held and (first := _ID.search(line)) is not None:
                    self.data.marked = [*self.data.marked, " ".join((first[1].casefold(), *held))][-MAX_MARKED:]
        told = {one for each in standing if "have" in each.acts for token in each.objects for one in same(token)}
        # a token of ASCII text stands in it as it is
        if told and (not text.isascii() or any(map(low[:MAX_HELD].__contains__, told))):
            for found in islice(_HELD.finditer(text[:MAX_HELD]), 200):
                if not told.isdisjoint(tokens(found["key"])):
                    self.data.held = [*self.data.held, _bare(found["value"])][-MAX_MARKED:]

    def _note_domains(self, text: TextAnalysis) -> None:
        raw = text.part(MAX_CHARS, "\n").raw
        if "@" not in raw:
            return
        domains = self.data.domains
        for domain in islice(_MAIL.findall(raw), 40):
            domains[domain.casefold()] = domains.get(domain.casefold(), 0) + 1
        while len(domains) > MAX_DOMAINS:
            del domains[min(domains, key=domains.__getitem__)]

    def on_tool_call(self, observed: Observed) -> None:
        """Judge a call."""
        self.data.called, self.data.newest = observed.seq, self.broken_by(observed)

    def broken_by(self, observed: Observed) -> BrokenProhibition | None:
        """Return which prohibition a call breaks, made or not; nothing is changed."""
        data, event = self.data, observed.event
        if not data.standing:
            return None
        deeds = Deeds(event, observed)
        for each in reversed(data.standing):
            if _breaks(deeds, each, data):
                shown = excerpt(observed.text.raw[len(event.tool_name) :].strip(), QUOTED // 2)
                return BrokenProhibition(observed.seq, event.tool_name[:100], shown, each.sentence, each.seq)
        return None

    def renumber(self) -> None:
        """Let the next event be number 1."""
        data = self.data
        data.standing = [msgspec.structs.replace(each, seq=0) for each in data.standing]
        data.newest, data.called = None, 0


def _bare(value: str) -> str:
    return value.casefold().replace(",", "").rstrip(".")


def _shows(text: str, each: Prohibition) -> bool:
    """Tell whether an answer has a form, a length or a language that it must not have."""
    if each.unit and each.limit is not None and each.unit not in ("money", "count"):
        return count_of(text, each.unit) > each.limit * (LENIENT if each.unit in ("word", "character") else 1)
    if each.of == "language":
        spoken = language(text)
        return spoken not in ("", *each.only) and len(text) > 20
    return any(FORMS[form].search(text) for form in each.forms)


def _tells(text: str, each: Prohibition, data: ProhibitionFacts) -> bool:
    """Tell whether an answer tells what must not be told: by name, or a value that a result holds under that name."""
    if data.called and "mention" not in each.acts:
        return False
    if _holds(text, data.held):
        return True
    wanted = telling_of(each.objects)
    if not wanted:
        return False
    for clause in islice(_CLAUSES.split(text), 200):
        if any(map(is_negation, clause.casefold().replace("’", "'").split()[:80])):
            continue
        own = tokens(clause)
        numbered = re.search(r"\d\d", clause) is not None  # a synonym says something of a thing only with a number
        if all(
            any(one in own for one in (same(token) if numbered else (token,))) or _ends_in(own, token)
            for token in wanted
        ):
            return True
    return False


def _holds(text: str, values: list[str]) -> bool:
    """Tell whether a text holds one of the values that must not be told."""
    return bool(values) and not {_bare(word) for word in _VALUE.findall(text)}.isdisjoint(values)


def _ends_in(own: frozenset[str], token: str) -> bool:
    """Tell whether a word is composed with a token: walnut."""
    token = token.removesuffix("s")
    return len(token) >= SHORTEST and any(
        bare.endswith(token) and (bare == token or len(bare) - len(token) >= SHORTEST)
        for word in own
        if (bare := word.removesuffix("s"))
    )


def _breaks(deeds: Deeds, each: Prohibition, data: ProhibitionFacts) -> bool:
    """Tell whether a call does what is forbidden, or writes what must not be there."""
    if "have" in each.acts and any(part.acts & _WRITING for part in deeds.parts):
        # "no print statements": what is written holds "print", but hardly "statement".
        named = [token for token in each.objects if token not in _CODE_SORTS] or each.objects
        if named and all(not deeds.written.isdisjoint(same(token)) for token in named):
            return True
        if any(FORMS[form].search(deeds.content) for form in each.forms) or _holds(deeds.content, data.held):
            return True
    return any(breaks(part.acts, each.acts) and _hits(deeds, part, each, data) for part in deeds.parts)


_CODE_SORTS = tokens(
    "function functions method methods statement statements keyword keywords module modules class classes call calls"
)


def breaks(done: frozenset[str], forbidden: tuple[str, ...]) -> bool:
    """Tell whether acts of these families break what is forbidden."""
    if "any" in forbidden and done - _HARMLESS:
        return True
    return any(not done.isdisjoint(_BREAKS.get(act, (act,))) for act in forbidden)


def _hits(deeds: Deeds, part: Part, each: Prohibition, data: ProhibitionFacts) -> bool:
    if each.limit is not None:
        if each.unit == "money":
            return any(amount > each.limit for amount in deeds.amounts())
        return each.unit == "count" and any(number > each.limit for number in deeds.counts())
    if each.only and not each.of and any(name in deeds.text.casefold() for name in each.only):
        return False
    if each.of == "good" and not _BINS.isdisjoint(part.tokens):
        return False
    if each.of == "known" and "write" in part.acts and not any(key in deeds.fields for key in OLD_TEXT):
        return False  # rather a new file
    if each.of not in ("", "good", "known"):
        return _is_outside(deeds, part, each, data)
    if "signatur" in each.objects:
        return _changes_signature(deeds)
    if not each.objects:
        return True
    own = {word.casefold().lstrip("#") for word in re.findall(r"[\w'-]+", deeds.text)}
    marked = {token for line in data.marked for name, *held in (line.split(),) if name in own for token in held}
    # What a policy says of a kind of record has exceptions elsewhere in it.
    if marked and not each.lasting and all(token in marked or token in part.tokens for token in each.objects):
        return True
    reached = " ".join(deeds.recipients())
    people = tokens(" ".join(re.findall(r"[^\W_]+", reached))) if reached else frozenset()
    # One word of several is enough where a user names a thing, not where a policy names a kind of thing.
    values = () if each.lasting and len(telling_of(each.objects)) > 1 else part.values
    return names(each.objects, part.tokens | people, part.paths, values)


def _is_outside(deeds: Deeds, part: Part, each: Prohibition, data: ProhibitionFacts) -> bool:
    """Tell whether a call goes beyond what alone is allowed."""
    if each.of == "path":
        named = list(deeds.files()) or [path for path in part.paths if deeds.steps and ("/" in path or "." in path[1:])]
        return bool(named) and any(not any(allowed in path.casefold() for allowed in each.only) for path in named)
    if each.of == "hour":
        start, end = map(int, each.only)
        return any(not start <= hour <= end for hour in deeds.hours()[:2])
    reached = deeds.recipients()
    if each.of == "person":
        return any(
            not any(alike(name, one) or name in one.casefold() for name in each.only for one in (who.casefold(),))
            for who in reached
        )
    mails = [who.casefold() for who in reached if "@" in who]
    if each.of == "domain":
        return any(not who.partition("@")[2].endswith(each.only) for who in mails)
    if each.of == "house":
        house = max(data.domains, key=data.domains.__getitem__, default="")
        return bool(house) and any(who.partition("@")[2] != house for who in mails)
    if each.of == "outsider" and mails:
        return not all(who.partition("@")[0] in OFFICES for who in mails)
    return each.of == "outsider"


def _changes_signature(deeds: Deeds) -> bool:
    fields = deeds.fields
    old, new = (next((fields[key] for key in keys if key in fields), None) for keys in (OLD_TEXT, NEW_TEXT))
    if isinstance(old, str) and isinstance(new, str):
        before = {line.strip() for line in old.splitlines() if _SIGNATURE.search(line)}
        return any(line not in {each.strip() for each in new.splitlines()} for line in before)
    return any(
        step.lstrip().startswith("sed") and _SIGNATURE.search(step.replace("\\", "")) is not None
        for step in deeds.steps
    )
