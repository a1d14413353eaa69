"""Cues that a service agent is failing its task: judged here, and why ``outcome_risk`` shows no number.

A *service agent* talks with a user over several turns, in English prose, and reads and writes records with its tools:
bookings, orders, accounts.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.readings import excerpt
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.english import are_english, english_words
from coherence.detect.text_analysis import TextAnalysis

MAX_CHARS = 4_000
"""Characters of a message that are looked at, half from each end."""

SHORT_TURN, LONG_TURN = 15, 60
"""Words of the user's longest turn up to which it counts as 0, and from which as 1."""

HALF_SEARCH = 4
"""Calls of the tool called just before that count half."""

_UNABLE = lazy_regex(
    r"(?=[cdinuwCDINUW])\b(?i:(?:unable to|cannot|can[’']t|can not|could not|couldn[’']t|unfortunately"
    r"|(?:not|isn[’']t) (?:able|possible|allowed|permitted|eligible|available)|won[’']t be able"
    r"|don[’']t have the ability)\b)"
)
_IDENTIFIER = lazy_regex(r"\b(?=[A-Za-z_-]{0,30}\d)(?=[\d_-]{0,30}[A-Za-z])[A-Za-z\d_-]{5,40}\b")
_NAME_PART = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_RECORD_VERBS = (
    "add assign book cancel change check close create delete exchange fetch find get issue list look lookup modify "
    "open order pay query refund register remove reserve retrieve return schedule search send set show submit transfer "
    "update view"
)
RECORD_VERBS = frozenset(_RECORD_VERBS.split())
"""First words of the names of tools that read and write records."""

_OTHER_WORK = (
    "bash browse browser cmd command directory exec execute file files folder git glob grep internet interpreter "
    "notebook patch python repl script shell terminal url web webpage"
)
OTHER_WORK = frozenset(_OTHER_WORK.split())
"""Words in the names of tools that run code, or work on files or web pages."""

OTHER_TOOLS = frozenset({"edit", "ls", "multiedit", "read", "run_code", "str_replace_editor", "task", "write"})
"""Whole names of such tools."""


@lru_cache(maxsize=512)
def _name_parts(tool: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in _NAME_PART.findall(tool))


class ServiceCues(msgspec.Struct):
    """Counts over one task of an agent; plain data of a fixed size, changed by its methods only.

    Examples
    --------
    >>> cues = ServiceCues()
    >>> cues.talk("user", TextAnalysis("Please move my booking H9ZU1C to Friday, and add a bag."))
    >>> cues.talk("assistant", TextAnalysis("I am sorry, a booking of this fare cannot be changed."))
    >>> cues.talk("user", TextAnalysis("Then please cancel it and tell me what I get back."))
    >>> cues.other_kind()
    ''
    >>> cues.asked, cues.unrefused, cues.searching
    (0.0, 0.25, 0.0)
    """

    turns: int = 0
    """Messages of the user."""
    longest: int = 0
    """Words of the longest of them."""
    replies: int = 0
    """Messages of the agent that no call follows."""
    refusals: int = 0
    """Those of them that say that something cannot be done."""
    again: int = 0
    """Calls of the tool that was called just before."""
    records: int = 0
    """Calls of tools that read or write records, and turns in which the user named a record."""
    code: int = 0
    """Replies that hold code."""
    words: int = 0
    english: int = 0
    """Weight of the frequent English ones among the words."""
    other_tool: str = ""
    """The first tool called that another kind of agent has."""
    tool: str = ""
    """The tool called last."""
    waiting: bool = False
    """True while a call waits for its result; a further one is parallel to it."""
    replied: bool = False
    """True if the newest event is a reply, which a call would turn into a remark."""
    refused: bool = False
    """True if that reply is a refusal."""
    over: bool = False
    """True once the task has ended; the next event begins another."""

    def begin(self) -> None:
        """Begin another task."""
        fresh = ServiceCues()
        for field in self.__struct_fields__:
            setattr(self, field, getattr(fresh, field))

    def talk(self, role: str, said: TextAnalysis) -> None:
        """Take in a message."""
        if self.over:
            self.begin()
        part = said.part(MAX_CHARS)
        text = part.raw
        self.waiting = self.replied = False
        if role not in ("user", "assistant") or part.is_blank:
            return
        words, english = english_words(text)
        self.words += words
        self.english += english
        if role == "user":
            self.turns += 1
            self.longest = max(self.longest, len(text.split()))
            self.records += _IDENTIFIER.search(text) is not None
            return
        self.replied, self.refused = True, _UNABLE.search(text) is not None
        self.replies += 1
        self.refusals += self.refused
        self.code += "```" in text

    def call(self, tool: str) -> None:
        """Take in a call."""
        if self.over:
            self.begin()
        if self.replied:
            self.replies -= 1
            self.refusals -= self.refused
        self.again += tool == self.tool and not self.waiting
        self.tool, self.waiting, self.replied = tool[:100], True, False
        parts = _name_parts(self.tool)
        if tool.lower() in OTHER_TOOLS or not OTHER_WORK.isdisjoint(parts):
            self.other_tool = self.other_tool or self.tool
        elif parts and parts[0] in RECORD_VERBS:
            self.records += 1

    def other_kind(self) -> str:
        """Say why this run is not, or not yet, known to be a service agent's; empty if it is."""
        if self.other_tool:
            return f"its tools run code or work on files or web pages ({excerpt(self.other_tool, 40)})"
        if self.code:
            return "its replies hold code"
        if self.turns < 2:
            return "no user has taken part in several turns"
        if not self.replies:
            return "it has not replied to the user in words"
        if not self.records:
            return "no record was named, read or written"
        if not are_english(self.words, self.english):
            return "the talk is not in English"
        return ""

    @property
    def asked(self) -> float:
        """Amount that the user asked for at once, in [0, 1]: the logarithm of the words of the longest turn."""
        return min(max(log(max(self.longest, 1) / SHORT_TURN) / log(LONG_TURN / SHORT_TURN), 0.0), 1.0)

    @property
    def unrefused(self) -> float:
        """The share of replies, in [0, 1], that refuse nothing: a refusal by policy is often what the task wants.

        One more reply is counted that is half a refusal, so that the first reply does not decide.
        """
        return 1.0 - (self.refusals + 0.5) / (self.replies + 1)

    @property
    def searching(self) -> float:
        """Rate at which the agent calls one tool again and again, in [0, 1)."""
        return self.again / (self.again + HALF_SEARCH)

    @property
    def score(self) -> float:
        """The mean of the three cues, in [0, 1]."""
        return (self.asked + self.unrefused + self.searching) / 3


SLOPE, MIDDLE = 7.0, 0.42
"""The map from the cues' mean to an estimate, ``1 / (1 + exp(-SLOPE (score - MIDDLE)))``, fitted on labelled runs."""


def estimate(cues: ServiceCues) -> float | None:
    """Return the chance that the task will have failed, by the cues; ``None`` for any agent but a service agent."""
    return None if cues.other_kind() else 1.0 / (1.0 + exp(-SLOPE * (cues.score - MIDDLE)))


class ServiceDetector(EventDetector[ServiceCues]):
    """Counts the cues of a service agent over its task."""

    name, data_type = "outcome_risk", ServiceCues

    def on_goal(self, observed: Observed) -> None:
        """Begin a task where the goal is another one."""
        if observed.new_goal:
            self.data.begin()

    def on_message(self, observed: Observed) -> None:
        """Take in what somebody says."""
        self.data.talk(observed.event.role, observed.text)

    def on_tool_call(self, observed: Observed) -> None:
        """Take in a call."""
        self.data.call(observed.event.tool_name)

    def on_tool_result(self, observed: Observed) -> None:
        """End a call."""
        self.data.waiting = self.data.replied = False

    def on_outcome(self, observed: Observed) -> None:
        """Take in that the task has ended; what comes next begins another."""
        self.data.over = True
