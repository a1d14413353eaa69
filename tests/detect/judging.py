"""Judgement of one answer by what was given, and an agent whose statements are judged, for the tests of values."""

from __future__ import annotations

import msgspec

from coherence.core.events import Event, Goal, Message, ToolCall, ToolResult
from coherence.detect.detector import Observed
from coherence.detect.extractors import BUILT_IN, DEFAULT
from coherence.detect.grounding import judge
from coherence.detect.grounding_state import GroundingAccount, GroundingDetector
from coherence.detect.sources import Given, take_source

CHOSEN = [BUILT_IN[name] for name in DEFAULT]


def given_by(*sources: str) -> Given:
    """Return what some texts give."""
    given = Given()
    for seq, text in enumerate(sources, 1):
        take_source(given, seq, text, CHOSEN)
    return given


def flaws(source: str, answer: str) -> list[str]:
    """Return the values of an answer that no source gives; ``||`` parts sources."""
    return [flaw.text for flaw in judge(given_by(*source.split("||")), answer, CHOSEN).grave]


class Agent:
    """An agent whose events a detector follows, numbered from 1."""

    def __init__(self, goal: str = "") -> None:
        self.detector, self.seq = GroundingDetector(DEFAULT), 0
        if goal:
            self.observe(Goal(goal))

    @property
    def account(self) -> GroundingAccount:
        """The account that the detector keeps."""
        return self.detector.data

    def observe(self, event: Event) -> None:
        """Let the detector take in an event."""
        self.seq += 1
        self.detector.observe(Observed.of(event, self.seq))

    def call(self, tool: str, **arguments: object) -> None:
        """Call a tool."""
        self.observe(ToolCall(tool, msgspec.Raw(msgspec.json.encode(arguments)), f"c{self.seq}"))

    def result(self, text: str, *, error: bool = False) -> None:
        """Take the result of the newest call."""
        self.observe(ToolResult(text, error=error))

    def says(self, text: str) -> list[tuple[str, str]]:
        """Say something, and return what is wrong with it."""
        self.observe(Message("assistant", text))
        assert self.account.answer is not None
        return [(flaw.flaw, flaw.text) for flaw in self.account.answer.flaws]
