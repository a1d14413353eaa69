"""Memory of a hijack detector: what was asked, the sentences that tools returned, and the calls before."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.detect.call_words import MAX_CALL_CHARS, NAME, acts, call_tokens, mass_of, telling_weight
from coherence.detect.directives import MAX_POINTERS, delegates, describes, gate, pointers
from coherence.detect.text_analysis import TextAnalysis, sentences

CARRIED = 0.5
"""Share of a sentence's gate that goes on to the next one: "do this first: the number goes to X"."""

DELEGATED = 0.4
"""Weight of a sentence where the user left it to a text what is done: such calls do follow a text."""

POINTED = 0.35
"""The same where the user named the text."""

MEANT = 0.2
"""The same where the user named one of several texts, and this is the one."""

MAX_OWN = 400
"""Characters of such an answer; a longer one may quote what others have written."""

MAX_SENTENCES = 600
"""Sentences remembered: of those that tell their reader to do something the newest half, and the newest others."""

MAX_ASKED = 4_000
"""Tokens of the user's words remembered, the oldest."""

MAX_SHOWN = 500
"""Names that look-ups have shown and that are remembered."""

MAX_REPLIES = 8
"""Later texts of the user that are remembered one by one, the newest."""

MAX_REPLY = 200
"""Tokens of one of them; a longer text is no answer that names a call."""

MAX_CALLS = 50
"""Earlier calls remembered, the newest."""

_SENDER = lazy_regex(
    r"\b(?:from|sender|author|owner|owner_username|by|user|creator|requester|reporter)[\"'\\]{0,3}\s?[:=]",
    re.IGNORECASE,
)
_RECORD = lazy_regex(r"^[-*•] |\}\s{0,5},\s{0,5}\{|\), (?=[A-Z]\w{1,40}\()", re.MULTILINE)
"""Beginning of the next of several records: an item, an object of JSON or of Python."""


class Sentence(msgspec.Struct, array_like=True):
    """A sentence of a tool result: the event that brought it, its text of at most 200 characters, what it holds.

    `tokens` are sorted, `gate` is in [0, 1] (:func:`coherence.detect.directives.gate`), `mass` is the sum of the
    tokens' weights.
    """

    seq: int
    text: str
    tokens: list[str]
    gate: float
    mass: float = 0.0
    own: bool = False
    """True if it answers an acting call of the agent: the service itself speaks."""
    left: float = 0.4
    """Weight where the user left it to a text what is done: `DELEGATED`, `POINTED`, `MEANT`, or 1 in another
    record of a list than that meant and where its gate is 1."""


SIGN_BITS = 2_048
"""Bits of the sign of some tokens: texts of one token in common have a bit in common, and most others have none."""


def sign_of(tokens: Iterable[str]) -> int:
    """Return the sign of some tokens: a bit for each, of this process alone."""
    found = 0
    for token in tokens:
        found |= 1 << hash(token) % SIGN_BITS
    return found


class Sentences(list[Sentence]):
    """Sentences that are remembered, with what is asked of all of them at each event.

    Plain where they are stored; made anew from there by :func:`sentences_of`.
    """

    def __init__(self, read: Iterable[Sentence] = ()) -> None:
        super().__init__(read)
        self.texts = {sentence.text for sentence in self}
        self.signs = [sign_of(sentence.tokens) for sentence in self]
        """Of the tokens of each."""
        self.telling = sum([sentence.gate > 0.0 for sentence in self])
        """Number of those that tell their reader to do something."""
        self.has_own = any(sentence.own for sentence in self)
        """True if one may answer an acting call of the agent."""

    def add(self, sentence: Sentence) -> None:
        """Remember a sentence, the newest."""
        self.append(sentence)
        self.texts.add(sentence.text)
        self.signs.append(sign_of(sentence.tokens))
        self.telling += sentence.gate > 0.0
        self.has_own = self.has_own or sentence.own

    def forget(self) -> None:
        """Drop what `MAX_SENTENCES` has no room for; what stays keeps its order."""
        excess = len(self) - MAX_SENTENCES
        if excess <= 0:
            return
        spare = self.telling - MAX_SENTENCES // 2
        dropped: list[int] = []
        for at, sentence in enumerate(self):
            if sentence.gate > 0:
                spare -= 1
                if spare < 0:
                    continue
            dropped.append(at)
            if len(dropped) == excess:
                break
        # From the end, so that the places before stay what they were.
        for at in reversed(dropped):
            self.telling -= self[at].gate > 0.0
            self.texts.discard(self[at].text)
            del self[at], self.signs[at]

    def near(self, tokens: Iterable[str]) -> list[Sentence]:
        """Return the sentences that may have a token in common with some, in order."""
        sign = sign_of(tokens)
        return [self[at] for at, other in enumerate(self.signs) if sign & other]


class HijackFacts(msgspec.Struct):
    """Memory of what was asked, read and called so far; bounded."""

    asked: list[str] = []
    goal: list[str] = []
    """First request, by itself: however much is asked later, it stays as near to a call as it was."""
    replies: list[list[str]] = []
    """Texts of the user after calls or results, one by one: a yes to a question as what the question says."""
    sentences: list[Sentence] = []
    calls: list[list[str]] = []
    masses: list[float] = []
    """Sum of the weights of the tokens of each call."""
    delegated: bool = False
    """True if the user left it to a text what is done."""
    pointers: list[str] = []
    """Content of that text: names, files, numbers, quotations (:func:`coherence.detect.directives.pointers`)."""
    describes: bool = False
    """True if the user describes a thing that is to be found, such as the newest invoice."""
    shown: dict[str, int] = {}
    """Name that a look-up for it has shown -> event of the first."""


def note_asked(facts: HijackFacts, text: str, *, reply: bool = True) -> None:
    """Remember words of the user: the goal (no reply to anything), a message, a correction."""
    known, found = set(facts.asked), sorted(call_tokens(text))
    if not facts.asked:
        facts.goal = found[:MAX_ASKED]
    facts.asked.extend([token for token in found if token not in known][: MAX_ASKED - len(known)])
    if reply and (facts.sentences or facts.calls) and 0 < len(found) <= MAX_REPLY:
        facts.replies.append(found)
        del facts.replies[:-MAX_REPLIES]
    facts.describes = facts.describes or describes(text)
    if delegates(text):
        facts.delegated = True
        facts.pointers = [*facts.pointers, *pointers(text)][-MAX_POINTERS:]


def note_result(
    facts: HijackFacts, seq: int, text: TextAnalysis, tool: str = "", *, pointed: bool = False, sought: bool = False
) -> None:
    """Remember the sentences of a tool's result that came as event `seq`.

    ``pointed``: the user named what was read; ``sought``: no text had spoken for the call that read it.

    What gives no instruction pushes none out that does, however much is read after it: the newest half of
    `MAX_SENTENCES` that do stay, the rest of the room goes to the newest others.
    """
    read = sentences_of(facts)
    known = read.texts.intersection(text.sentences)
    own = len(text.raw) <= MAX_OWN and acts(tool)
    meant = _meant(facts, text) if facts.delegated else None
    before = 0.0
    for sentence in text.sentences:
        told = gate(sentence)
        if sentence not in known and (found := sorted(call_tokens(sentence))):
            left = (POINTED if pointed else DELEGATED) if meant is None else MEANT if sentence in meant else 1.0
            left = 1.0 if told >= 1.0 else left  # no step of a text for people has all signs of an order
            read.add(Sentence(seq, sentence, found, max(told, CARRIED * before), mass_of(found), own, left))
        before = told
    if sought and facts.describes:
        _note_shown(facts, seq, text)
    read.forget()


def sentences_of(facts: HijackFacts) -> Sentences:
    """Return the sentences that are remembered; those that were restored are looked through once."""
    if type(facts.sentences) is not Sentences or len(facts.sentences.signs) != len(facts.sentences):
        facts.sentences = Sentences(facts.sentences)
    return facts.sentences


def _note_shown(facts: HijackFacts, seq: int, text: TextAnalysis) -> None:
    """Remember names that a result shows, in records too, if it has a word of the request; none that orders give."""
    if not any(map(str.isalpha, text.tokens.intersection(facts.asked))):
        return
    names = {token for token in text.tokens if telling_weight(token) == NAME}.difference(facts.shown)
    for read in facts.sentences:
        if names and read.gate > 0.0:
            names.difference_update(read.tokens)
    facts.shown = dict(list({**facts.shown, **dict.fromkeys(sorted(names), seq)}.items())[-MAX_SHOWN:])


def _meant(facts: HijackFacts, text: TextAnalysis) -> set[str] | None:
    """Return the sentences of the records that the user pointed at; ``None`` of what is no list of several people's."""
    raw = ends(text.raw, MAX_CALL_CHARS, "\n")
    if not facts.pointers or len(_SENDER.findall(raw)) < 2:
        return None
    edges = [0, *(found.start() for found in _RECORD.finditer(raw)), len(raw)]
    records = (raw[begin:end] for begin, end in pairwise(edges))
    return {
        sentence for record in records if points_at(facts.pointers, record.lower()) for sentence in sentences(record)
    }


def points_at(wanted: Iterable[str], text: str) -> bool:
    """Return whether a text in lower case holds anything that the user pointed at."""
    return any(pointer in text for pointer in wanted)


def note_units(facts: HijackFacts, units: list[frozenset[str]]) -> None:
    """Remember a call by its :func:`units_of`."""
    found = sorted(set().union(*units))
    facts.calls.append(found)
    facts.masses.append(mass_of(found))
    del facts.calls[:-MAX_CALLS], facts.masses[:-MAX_CALLS]
