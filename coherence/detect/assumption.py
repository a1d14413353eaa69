"""Phrases of a step that say how its author knows: assumed instead of looked up, unable, in code. English words."""

from __future__ import annotations

import re

import msgspec

from coherence.core.lazy import lazy_regex, twin_regex
from coherence.core.readings import excerpt
from coherence.core.validation import ends
from coherence.core.words import may_hold
from coherence.detect.bloom_filter import BloomWindow
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.english import are_english, english_words
from coherence.detect.read_once import read_once
from coherence.detect.text_analysis import TextAnalysis, mass, weight

MAX_CHARS = 10_000
"""Characters of a step that are looked at, half from each end."""

ENOUGH_LETTERS = 20
"""Letters of which the script of a text is told."""

FALLBACK = lazy_regex(
    r"(?=[adefghmpswADEFGHMPSW])\b(?i:(?:assum|simulat|mock|manual|alternative|estimat|hypothetical|fabricat)[a-z]{0,12}\b"
    r"|(?:dummy|placeholders?|workarounds?|made[ -]up|general knowledge)\b"
    r"|(?:sample|synthetic|fake) data(?:sets?)?\b)"
)
"""Something is put in the place of evidence. The letters in front are those that a phrase may begin with, for speed."""

_NEGATED = lazy_regex(
    # "Why not assume it?" and "if not, assume it" deny nothing.
    r"(?:(?<!\bwhy )(?<!\bif )\bnot|\b(?:no|nor|never|neither|cannot|without|avoid(?:s|ed|ing)?)|n['’]t)\s{1,3}"
    r"(?:(?:a|an|any|the|be|been|being|to|do|have|need|make|making|made|use|using|used)\s{1,3}){0,3}\Z",
    re.IGNORECASE,
)
# "not assume, estimate or simulate it" denies all three
_JOINED = lazy_regex(r"(?:,\s?|\s)(?:(?:or|nor)\s)?(?:(?:a|an|any|to|use|make)\s)?", re.IGNORECASE)
_BEFORE = 60
"""Characters before a phrase in which a word that denies it stands."""

INABILITY = twin_regex(
    r"(?=[cdinuCDINU])\b(?i:(?:unable|inaccessible|unavailable|unfortunately|can(?:no|')t|could(?: not|n't)"
    r"|not (?:able|possible|available|accessible)|do(?: not|n't) have access)\b)"
)
"""Something could not be done."""

_FENCE = "```"
CODE = lazy_regex(r"^[ \t]{0,20}```", re.MULTILINE)
"""The beginning of a code block; a fence inside a line only speaks of one."""

_FALLBACK_CUES = (
    *("assum", "simulat", "mock", "manual", "alternative", "estimat", "hypothetical", "fabricat"),
    *("dummy", "placeholder", "workaround", "made up", "made-up", "general knowledge"),
    *("sample data", "synthetic data", "fake data"),
)
_INABILITY_CUES = ("not", "'t", "unable", "inaccessible", "unavailable", "unfortunately")
"""Parts of such phrases in lower case: most texts hold none, which is found faster than phrases are."""

_BLOCK = lazy_regex(r"^[ \t]{0,20}```.*?(?:^[ \t]{0,20}```|\Z)", re.MULTILINE | re.DOTALL)
_WORD = lazy_regex(r"[^\W\d_]{1,40}")
_QUOTE = 60
"""Characters on each side of a phrase that are quoted."""


def shortened(text: str) -> str:
    """Return what is looked at of a text.

    Examples
    --------
    >>> len(shortened("x" * 1_000_000))
    10001
    """
    return ends(text, MAX_CHARS)


def is_english(text: str) -> bool:
    """Tell whether the cues can be found in a text: whether what stands outside its code blocks is English.

    It is not if 16 or more words hold too few of the most frequent English ones (see
    :mod:`coherence.detect.text_analysis`), or if most of 20 or more letters are of other scripts. A text too short to
    tell passes.

    Examples
    --------
    >>> is_english("The file was not found, so I assume that the price is 100 euros."), is_english("ok")
    (True, True)
    >>> is_english("Der Preis steht nicht in der Datei. Ich nehme an, dass er hundert Euro war, weil der Katalog "
    ...            "aus dem letzten Jahr diesen Preis nennt.")
    False
    """
    text = shortened(text)
    if _FENCE in text:
        text = _BLOCK.sub(" ", text)
    if not text.isascii():
        words = _WORD.findall(text)
        letters = sum(map(len, words))
        if letters >= ENOUGH_LETTERS and sum(len(word) for word in words if not word.isascii()) > letters / 2:
            return False
    return are_english(*english_words(text))


def fallbacks(text: str) -> list[re.Match[str]]:
    """Return the phrases that put something in the place of evidence, without those that are denied.

    Examples
    --------
    >>> [found[0] for found in fallbacks("I will not assume or estimate it, so I use placeholder data.")]
    ['placeholder']
    """
    found: list[re.Match[str]] = []
    if not may_hold(text, _FALLBACK_CUES):
        return found
    denied, end = False, 0
    for phrase in FALLBACK.finditer(text):
        # What stands before the previous phrase denies that one.
        before = text[max(phrase.start() - _BEFORE, end) : phrase.start()]
        denied = bool(_NEGATED.search(before) or (denied and _JOINED.fullmatch(before)))
        end = phrase.end()
        if not denied:
            found.append(phrase)
    return found


def quoted(text: str, found: re.Match[str]) -> str:
    r"""Return a phrase with the words around it, on its line.

    Examples
    --------
    >>> quoted("No file.\nLet's assume a price.", FALLBACK.search("No file.\nLet's assume a price."))
    "Let's assume a price."
    """
    start, end = max(found.start() - _QUOTE, 0), found.end() + _QUOTE
    before = text[start : found.start()].rpartition("\n")[2]
    after = text[found.end() : end].partition("\n")[0]
    # A window of full width may begin and end inside a word.
    if start and len(before) == _QUOTE:
        before = before.partition(" ")[2] or before
    if end < len(text) and len(after) == _QUOTE:
        after = after.rpartition(" ")[0] or after
    return f"{before}{found[0]}{after}".strip()


HALF_NEW = 50.0
"""Weight of new tokens at which half of what new material can add is reached."""

FALLBACK_WEIGHT, NEW_WEIGHT, CODE_WEIGHT = 1.0, 2.0, 0.25
TOTAL = FALLBACK_WEIGHT + NEW_WEIGHT + CODE_WEIGHT

FEW = 3.0
"""Weight that a step of no new word is taken to have besides its own."""

MAX_ENTITIES = 5
"""New names, numbers and addresses of a step that are kept to be shown."""

NAMED = 120
"""Characters of one of them that are shown, of a longer one from both ends: a path tells most at its end."""

RESTATED = 400
"""Characters of the task that a step must quote to restate it; all, of a shorter task."""

LEAST_TASK = 30
"""A shorter task is quoted by chance."""

_NO_WORD = lazy_regex(r"\W+")


class AssumedStep(msgspec.Struct):
    """The cues of one step: a message of the agent and the calls that belong to it."""

    seq: int = 0
    """Number of its first event; 0 = of an earlier session."""
    fallbacks: int = 0
    """Phrases that put something in the place of evidence."""
    phrase: str = ""
    """The first of them with the words around it; else the phrase that says what could not be done."""
    new: float = 0.0
    """Weight of its tokens that occur nowhere before."""
    weight: float = 0.0
    """Weight of all its tokens."""
    entities: list[str] = []
    """The first new names, numbers and addresses, in alphabetical order, numbers of one or two digits last."""
    code: bool = False
    """True if it holds a code block."""
    called: bool = False
    unable: bool = False
    """True if it says that something could not be done."""
    restates: bool = False
    """True if it quotes the whole task."""
    english: bool = True
    silent: bool = False
    """True if it has neither a word nor a call."""

    @property
    def novelty(self) -> float:
        """Share of the step's weight that occurs nowhere before, in [0, 1); a few words say little: ``n / (w + 3)``."""
        return self.new / (self.weight + FEW)

    @property
    def briefs(self) -> bool:
        """True if it only hands the task on: quotes it whole, without code and without a call."""
        return self.restates and not self.code and not self.called

    @property
    def works_around(self) -> bool:
        """True if it says that something could not be done, and goes on with code or a call."""
        return self.unable and (self.code or self.called)

    @property
    def shows_cue(self) -> bool:
        """True if there is more to it than new words."""
        return not self.briefs and bool(self.fallbacks or self.works_around or self.entities or self.code)

    @property
    def value(self) -> float:
        """Degree to which the step rests on assumption, in [0, 1]; 0 for one that only hands the task on.

        ``(f / (f + 1) + 2 n / (n + 50) + 0.25 c) / 3.25`` with f fallback phrases (an inability that is worked around
        is one more), n weight of new tokens, c = 1 with a code block.
        """
        if self.briefs:
            return 0.0
        count = self.fallbacks + self.works_around
        fallback = count / (count + 1)
        new = self.new / (self.new + HALF_NEW)
        return (FALLBACK_WEIGHT * fallback + NEW_WEIGHT * new + CODE_WEIGHT * self.code) / TOTAL

    def reasons(self) -> list[str]:
        """Say in words what makes the step rest on assumption, the strongest first.

        Examples
        --------
        >>> AssumedStep(fallbacks=1, new=6.0, entities=["1,290"], code=True).reasons()
        ['puts an assumption in the place of evidence', 'nowhere before: 1,290', 'holds code']
        """
        if self.briefs:
            return ["only hands the task on"]
        told: list[str] = []
        if self.fallbacks:
            told.append("puts an assumption in the place of evidence")
        if self.works_around:
            told.append("works around what could not be done")
        if self.entities:
            told.append(f"nowhere before: {', '.join(map(_named, self.entities))}")
        elif self.new:
            told.append("new words, but no new number or address")
        if self.code:
            told.append("holds code")
        return told or ["nothing new"]


class AssumptionFacts(msgspec.Struct):
    r"""Memory of an agent by which its steps are judged; plain data, bounded, changed by its methods only.

    Examples
    --------
    >>> facts = AssumptionFacts()
    >>> facts.ask(TextAnalysis("How much does the annual pass of the museum cost in 2024?"))
    >>> facts.say(2, TextAnalysis("The page is empty.\nLet's assume that the pass costs $1,290."))
    >>> facts.step.phrase, facts.step.entities, round(facts.step.value, 2)
    ("Let's assume that the pass costs $1,290.", ['1,290'], 0.21)
    """

    seen: BloomWindow = msgspec.field(default_factory=BloomWindow)
    task: str = ""
    """The beginning of what was asked, words only."""
    step: AssumedStep | None = None
    """The newest step of the agent."""
    open: bool = False
    """True if a call now still belongs to that step."""

    def ask(self, text: TextAnalysis, *, anew: bool = True) -> None:
        """Take in what the user asks; ``anew``: it is the task, and no further request."""
        if anew or not self.task:
            self.task = _words(text.raw)
        self.read(text)

    def read(self, text: TextAnalysis) -> None:
        """Take in what the agent is told or shown: a user's word, a tool's result, a memory."""
        self.seen.add(text.part(MAX_CHARS).tokens)
        self.open = False

    def say(self, seq: int, text: TextAnalysis) -> None:
        """Begin a step with a message of the agent."""
        part = text.part(MAX_CHARS)
        code = _FENCE in part.raw and CODE.search(part.raw) is not None
        step = self.step = AssumedStep(seq, english=is_english(part.raw), code=code)
        step.silent = part.is_blank
        step.restates = len(self.task) >= LEAST_TASK and self._is_quoted(part.raw)
        self.open = True
        self._judge(step, part)

    def call(self, seq: int, text: TextAnalysis) -> None:
        """Take in a call, written as one text; it joins the message before it or begins a step."""
        if self.step is None or not self.open:
            self.step = AssumedStep(seq)
            self.open = True
        self.step.called, self.step.silent = True, False
        self._judge(self.step, text.part(MAX_CHARS))

    def renumber(self) -> None:
        """Let the next event be number 1."""
        if self.step is not None:
            self.step.seq = 0

    def _is_quoted(self, text: str) -> bool:
        """Tell whether a text holds the whole task."""
        return _rarest(self.task) in text.lower() and self.task in _words(text, len(text))

    def _judge(self, step: AssumedStep, part: TextAnalysis) -> None:
        text = part.raw
        found = fallbacks(text)
        unable = INABILITY.search(text) if may_hold(text, _INABILITY_CUES) else None
        if found and not step.fallbacks:
            step.phrase = quoted(text, found[0])
        elif unable is not None and not step.phrase:
            step.phrase = quoted(text, unable)
        step.fallbacks += len(found)
        step.unable = step.unable or unable is not None
        new = self.seen.add(part.tokens)
        step.new += mass(new)
        step.weight += mass(part.tokens)
        if len(step.entities) < MAX_ENTITIES:
            named = [token for token in new if weight(token) != 1.0]
            named.sort(key=lambda token: (weight(token) < 1.0, token))
            step.entities = [*step.entities, *named][:MAX_ENTITIES]


@read_once
def _rarest(task: str) -> str:
    """Return the longest word of a task: most texts lack it."""
    return max(task.split(), key=len)


def _named(entity: str) -> str:
    if len(entity) <= NAMED:
        return excerpt(entity, NAMED)
    half = NAMED // 2
    return f"{excerpt(entity[: half - 1], half)}…{excerpt(entity[-half:], half)}"


def _words(text: str, most: int = RESTATED) -> str:
    """Return the words of a text in lower case, as they are compared."""
    return _NO_WORD.sub(" ", text[: 2 * most]).strip().lower()[:most]  # signs between words fall away


class AssumptionDetector(EventDetector[AssumptionFacts]):
    """Judges each step of the agent by what it was told and shown before."""

    name, data_type = "unsupported_assumption", AssumptionFacts

    def on_goal(self, observed: Observed) -> None:
        """Take in the task."""
        self.data.ask(observed.text)

    def on_message(self, observed: Observed) -> None:
        """Take in what somebody says; the agent's message begins a step."""
        role = observed.event.role
        if role == "assistant":
            self.data.say(observed.seq, observed.text)
        elif role == "user":
            self.data.ask(observed.text, anew=False)
        else:
            self.data.read(observed.text)

    def on_tool_call(self, observed: Observed) -> None:
        """Take in a call of the step."""
        self.data.call(observed.seq, observed.text)

    def on_tool_result(self, observed: Observed) -> None:
        """Take in what a tool returned."""
        self.data.read(observed.text)

    def on_correction(self, observed: Observed) -> None:
        """Take in what the agent is told."""
        if not observed.event.removed:
            self.data.read(observed.text)

    on_memory = on_correction

    def on_outcome(self, observed: Observed) -> None:
        """End the step."""
        self.data.open = False

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.data.renumber()
