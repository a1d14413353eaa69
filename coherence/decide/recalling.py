"""What is remembered of an error: lessons that were found for it, what was told of them, and whether that helped."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from coherence.events import Event, Goal, Message, Outcome, Recalled, ToolCall, ToolResult
from coherence.findings import Finding, Guidance
from coherence.lessons.solving import Solved, Trouble, Troubles
from coherence.records import one_line

RULE = "known_error"
LEAST = 0.5
"""Similarity from which a lesson is worth interrupting an agent."""

SHOWN = 160
"""Characters of a fix that are quoted."""

PATIENCE = 10
"""Tool results after which what was told is no longer held against what happens."""

MAX_TIPS = 8


class Tip(msgspec.Struct):
    """A lesson whose fix a firing tells."""

    lesson: int
    firing: str
    intent: str
    """What the failed call was for."""
    signature: bytes
    """Of the error."""
    count: int
    """How often the error had come."""
    changes: int
    """What had been changed since it came."""
    results: int
    """Tool results before it."""
    delivered: bool = False


class Judged(msgspec.Struct, frozen=True):
    """What became of a lesson that an agent was told."""

    lesson: int
    helped: bool
    firing: str


class Recollection(msgspec.Struct):
    """What is remembered of errors between events; changed only by folding."""

    troubles: Troubles = msgspec.field(default_factory=Troubles)
    looked: int = 0
    """Number of the error's event that was looked up last."""
    recalled: tuple[Recalled, ...] = ()
    """What was found for it, until the next tool result."""
    tips: list[Tip] = []

    def observe(self, seq: int, event: Event) -> list[Solved | Judged]:
        """Take in an event that is no tick; return what it teaches.

        A lesson that reached the agent has helped if the failed call's intent then succeeds, and has failed if the same
        error comes again although something was changed; after ten tool results nobody can tell any more.
        """
        if type(event) is ToolCall:
            self.troubles.observe_call(seq, event)
        elif type(event) is ToolResult:
            self.recalled = ()
            solved = self.troubles.observe_result(seq, event)
            return [*solved, *self._judge(error=event.error)]
        elif type(event) is Message and event.firing is not None:
            for tip in self.tips:
                tip.delivered = tip.delivered or tip.firing == event.firing
        elif type(event) is Goal or type(event) is Outcome:
            self.troubles.end_task()
            self.recalled, self.tips = (), []
        return []

    def recall(self, seq: int, recalled: tuple[Recalled, ...]) -> None:
        """Take in what was found for the error of event ``seq``."""
        self.looked, self.recalled = seq, recalled

    def tell(self, guidance: Guidance) -> None:
        """Take in that a firing tells a lesson."""
        newest = self.troubles.open[-1] if self.troubles.open else None
        if guidance.lesson is None or guidance.arm != "treatment" or newest is None:
            return
        if newest.results != self.troubles.results:  # the newest error is none that waits for a fix
            return
        tip = Tip(
            lesson=guidance.lesson,
            firing=guidance.id,
            intent=newest.intent,
            signature=newest.signature,
            count=newest.count,
            changes=_changes(newest),
            results=self.troubles.results,
        )
        self.tips = [*self.tips, tip][-MAX_TIPS:]

    def _judge(self, *, error: bool) -> list[Judged]:
        judged: list[Judged] = []
        left: list[Tip] = []
        for tip in self.tips:
            same = (
                trouble
                for trouble in self.troubles.open
                if (trouble.intent, trouble.signature) == (tip.intent, tip.signature)
            )
            trouble = next(same, None)
            if trouble is None:
                if not error and tip.delivered:
                    judged.append(Judged(tip.lesson, helped=True, firing=tip.firing))
            elif tip.delivered and trouble.count > tip.count and _changes(trouble) > tip.changes:
                judged.append(Judged(tip.lesson, helped=False, firing=tip.firing))
            elif self.troubles.results - tip.results < PATIENCE:
                left.append(tip)
        self.tips = left
        return judged

    def renumber(self) -> None:
        """Forget event numbers: the state of one session begins another."""
        self.troubles.renumber()
        self.looked = 0
        self.recalled = ()


def _changes(trouble: Trouble) -> int:
    return len(trouble.steps) + trouble.more


def known_error(recalled: tuple[Recalled, ...], seq: int) -> Finding | None:
    """Return the finding that the newest error was fixed before, ``None`` if nothing is known of it.

    Parameters
    ----------
    recalled : tuple of Recalled
        What was found, the likeliest first.
    seq : int
        Number of the error's event.
    """
    if not recalled:
        return None
    best = recalled[0]
    return Finding(
        rule=RULE,
        severity="guide",
        active=True,
        score=best.similarity,
        threshold=LEAST,
        evidence=(seq,) if seq else (),
        why=f"an error like this was seen before, and {solved(best)}",
        action="see whether that fits here before trying something else",
    )


def solved(found: Recalled) -> str:
    """Return when and how a lesson's error was fixed, and its record.

    Examples
    --------
    >>> solved(Recalled(lesson=1, similarity=0.9, fix="pip install pyyaml", ts=1_790_000_000.0, helped=3, failed=1))
    'on 2026-09-21 it was solved by: pip install pyyaml (told again, this helped 3 of 4 times)'
    """
    fix = one_line(found.fix).strip()
    fix = fix if len(fix) <= SHOWN else f"{fix[: SHOWN - 1]}…"
    told = found.helped + found.failed
    record = f" (told again, this helped {found.helped} of {told} times)" if told else ""
    taken = " (with this error's names put in)" if found.refilled else ""
    return f"on {_day(found.ts)} it was solved by: {fix}{taken}{record}"


def _day(ts: float) -> str:
    try:
        return datetime.fromtimestamp(ts, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "an unknown day"
