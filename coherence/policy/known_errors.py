"""Memory of an error: lessons that were found for it, those that the agent received, and whether they helped."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from coherence.core.decisions import Finding, Guidance
from coherence.core.events import Recalled, ToolResult
from coherence.core.lazy import lazy_regex
from coherence.core.readings import one_line
from coherence.lessons.troubles import Solved, Troubles

RULE = "known_error"
LEAST = 0.5
"""Similarity from which a lesson is worth interrupting an agent."""

SHOWN = 160
"""Characters of a fix that are quoted."""

PATIENCE = 10
"""Tool results after which a delivered lesson is no longer judged."""

MAX_TIPS = 8
MAX_RECALLED = 8
"""Lessons of the newest errors together."""

MOSTLY = 0.75
"""Share of a fix's words from which it counts as done."""

_WORD = lazy_regex(r"\w[\w.-]*\w|\w")


class Tip(msgspec.Struct):
    """A lesson whose fix a firing tells."""

    lesson: int
    firing: str
    intent: str
    """Purpose of the failed call."""
    signature: bytes
    slots: list[str]
    """Of the error, with its signature."""
    fix: str
    guess: bool
    """True if the fix was one for other names, so that a failure says nothing of the lesson."""
    count: int
    """Number of times that the error had come."""
    results: int
    """Tool results before it."""
    delivered: bool = False


class LessonOutcome(msgspec.Struct, frozen=True):
    """Outcome of a lesson that an agent received."""

    lesson: int
    helped: bool
    firing: str


class Recollection(msgspec.Struct):
    """Memory of errors between events; changed only by folding."""

    troubles: Troubles = msgspec.field(default_factory=Troubles)
    looked: int = 0
    """Number of the newest result when errors were looked up last."""
    recalled: tuple[Recalled, ...] = ()
    """Lessons for them, those of the newest error's first, until the result of a call that was made after them."""
    told: list[int] = []
    """Those of these errors of which a firing has told."""
    tips: list[Tip] = []

    def add_result(self, seq: int, result: ToolResult, called: int) -> list[Solved | LessonOutcome]:
        """Take in a result, with the number of its call; return what it teaches.

        A lesson that reached the agent is judged by what the agent did: it has helped if the error is solved by what
        the lesson said, and has failed if the same error comes again after that was done. If the agent did something
        else, the lesson is not scored, and after ten tool results nobody can tell any more.
        """
        if called > self.looked:  # of a parallel call, it says nothing about what was recalled
            self.recalled, self.told = (), []
        solved = self.troubles.observe_result(seq, result)
        return [*solved, *self._judge(solved)]

    def mark_delivered(self, firing: str) -> None:
        """Take in that a firing has reached the agent."""
        for tip in self.tips:
            tip.delivered = tip.delivered or tip.firing == firing

    def end_task(self) -> None:
        """Forget the errors of a task that has ended."""
        self.troubles.end_task()
        self.recalled, self.told, self.tips = (), [], []

    def recall(self, seq: int, recalled: tuple[Recalled, ...]) -> None:
        """Take in what was found for errors up to the result of event ``seq``."""
        errors = {found.error for found in recalled}
        older = (found for found in self.recalled if found.error not in errors)
        self.looked, self.recalled = seq, (*recalled, *older)[:MAX_RECALLED]

    @property
    def best(self) -> Recalled | None:
        """Lesson to send next: the likeliest of the newest error without one, or else of any."""
        untold = (found for found in self.recalled if found.error not in self.told)
        return next(untold, self.recalled[0] if self.recalled else None)

    @property
    def all_told(self) -> bool:
        """True if a lesson was sent for every error here."""
        return all(found.error in self.told for found in self.recalled)

    def tell(self, guidance: Guidance) -> None:
        """Take in that a firing tells a lesson."""
        best = self.best
        if guidance.lesson is None or best is None:
            return
        about = {found.error for found in self.recalled} if guidance.pattern == RULE else {best.error}
        self.told = sorted({*self.told, *about})
        newest = next((open for open in self.troubles.open if open.newest == best.error), None)
        if guidance.arm != "treatment" or newest is None:  # or the error is none that waits for a fix
            return
        tip = Tip(
            lesson=guidance.lesson,
            firing=guidance.id,
            intent=newest.intent,
            signature=newest.signature,
            slots=newest.slots,
            fix=best.fix[:SHOWN],
            guess=best.refilled,
            count=newest.count,
            results=self.troubles.results,
        )
        self.tips = [*self.tips, tip][-MAX_TIPS:]

    def _judge(self, solved: tuple[Solved, ...]) -> list[LessonOutcome]:
        judged: list[LessonOutcome] = []
        left: list[Tip] = []
        for tip in self.tips:
            about = (tip.intent, tip.signature, tip.slots)
            same = (open for open in self.troubles.open if (open.intent, open.signature, open.slots) == about)
            trouble = next(same, None)
            if trouble is None:
                if tip.delivered and any(did(tip.fix, lesson.fix_text) for lesson in solved):
                    judged.append(LessonOutcome(tip.lesson, helped=True, firing=tip.firing))
            elif trouble.count > tip.count and any(did(tip.fix, step.text) for step in trouble.steps):
                if tip.delivered and not tip.guess:
                    judged.append(LessonOutcome(tip.lesson, helped=False, firing=tip.firing))
            elif self.troubles.results - tip.results < PATIENCE:
                left.append(tip)
        self.tips = left
        return judged

    def renumber(self) -> None:
        """Forget event numbers: the state of one session begins another."""
        self.troubles.renumber()
        self.looked = 0
        self.recalled, self.told = (), []


def did(fix: str, text: str) -> bool:
    """Tell whether what was done is, or contains, most of what a fix says.

    Examples
    --------
    >>> did("pip install pyyaml", "ran `pip install pyyaml==6.0`"), did("pip install pyyaml", "pip install numpy")
    (True, False)
    """
    wanted, done = (set(_WORD.findall(each.lower())) for each in (fix, text))
    return bool(wanted) and len(wanted & done) >= MOSTLY * len(wanted)


def known_error(recollection: Recollection) -> Finding | None:
    """Return the finding that the newest errors were fixed before, ``None`` if nothing is known of them."""
    best = recollection.best
    if best is None:
        return None
    why = f"an error like this was seen before, and {solved(best)}"
    other = next((found for found in recollection.recalled if found.error != best.error), None)
    if other is not None:
        why += f"; of another error beside it is known that {solved(other)}"
    return Finding(
        rule=RULE,
        severity="guide",
        active=True,
        score=best.similarity,
        threshold=LEAST,
        evidence=(best.error,) if best.error else (),
        why=why,
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
    if found.refilled:
        return f"on {_day(found.ts)} one with another name was solved in a way that would here be: {fix}{record}"
    return f"on {_day(found.ts)} it was solved by: {fix}{record}"


def _day(ts: float) -> str:
    try:
        return datetime.fromtimestamp(ts, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "an unknown day"
