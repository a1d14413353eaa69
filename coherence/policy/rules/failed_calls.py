"""Rules about failing calls: shell retries, error streaks, cascades across tools, failures that come back."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from coherence.core.decisions import Appraisal, DecisionKind, Finding
from coherence.core.lazy import lazy_regex
from coherence.core.readings import Reading
from coherence.detect.fingerprints import CallTrace, ResultTrace
from coherence.policy.rules.finding_builders import found, quiet, score_of, seqs_of, shown_error, shown_tool
from coherence.state.data import Action, Facts
from coherence.state.reducer import AgentState

APART_S = 5.0
"""Idle seconds between calls from which repeating them counts as polling."""


class CallStep(NamedTuple):
    """A call, and its result if it has come."""

    seq: int
    tool: str
    made: CallTrace
    ts: float
    came: ResultTrace | None = None
    duration_s: float | None = None
    compacted: bool = False


Step: TypeAlias = Action | CallStep
"""One step of an agent: most have a result."""


class KnownShape(NamedTuple):
    """A way of working that repeats calls. It asks for a warning at most."""

    name: str
    advice: str
    patient: bool = False
    """True if twice as many repeats are usual."""


WAITING = KnownShape("it waits for something", "wait longer between two calls, or do something else until then", True)
RATE_LIMIT = KnownShape("a rate limit holds it up", "wait as long as the limit lasts, or use another way", True)
SPACED = KnownShape(f"the calls are {APART_S:g} s or more apart", "ask less often, or say what is waited for")
PAGES = KnownShape("it goes through parts of one thing", "write down what was found before going on")
COMPACTED = KnownShape("the context was shortened in between", "keep in the summary what these calls found")


def known_shape(steps: Sequence[Step], period: int) -> KnownShape | None:
    """Return the way of working that the steps of a loop look like, ``None`` if they look like none.

    Parameters
    ----------
    steps : sequence of Step
        The calls of the loop, oldest first, two at least.
    period : int
        Calls in one round.
    """
    if any(step.made.waits or (step.came is not None and step.came.pending) for step in steps[-period:]):
        return WAITING
    if any(step.came is not None and step.came.rate_limited for step in steps[-period:]):
        return RATE_LIMIT
    pages = [step.made for step in steps[-period:] if step.made.page]
    # More calls than things: some are parts of one thing.
    if len({made.exact for made in pages}) > len({made.page for made in pages}):
        return PAGES
    idle = [after.ts - before.ts - (before.duration_s or 0.0) for before, after in pairwise(steps)]
    return SPACED if np.median(idle) >= APART_S else None


NEAR_TURNS = 8
"""The newest turns in which a failure that comes back counts."""

MOVING = 3
"""Different values of a number from which one tells that it moves one way."""

_WORD = lazy_regex(r"[^\W\d_]{2,}")
_EMPTY_WORDS = frozenset(
    _WORD.findall(
        "exit code exitcode exited returncode return returned rc status error errors failed failure execution command "
        "process output with non zero nonzero none null"
    )
)
_OUTAGE = lazy_regex(
    r"connection (?:refused|reset|aborted|error|timed out)|timed?[ -]?out|unavailable|bad gateway|temporary failure|"
    r"unreachable|could not resolve|getaddrinfo|econn|etimedout|\b50[234]\b",
    re.IGNORECASE,
)


class FailedCalls(ABC):
    """Rule about failed actions: the score is 0.5 at ``guide`` of them and 1 at twice that.

    ``None`` before the first action. The names of rules, their limits and their advice are attributes of the class.
    """

    name: ClassVar[str]
    steady = True
    guide: ClassVar[int] = 3
    """Failures from which it is active."""
    warn: ClassVar[int] = 5
    """Failures from which it asks to warn."""
    advice: ClassVar[str]

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest actions."""
        if not state.facts.actions:
            return None
        failed = self.failed(state.facts)
        if not failed:
            return quiet(self.name)
        return found(
            self.name,
            score_of(len(failed), self.guide),
            "warn" if len(failed) >= self.warn else "guide",
            self.why(failed),
            self.advice,
            seqs_of(failed),
        )

    @abstractmethod
    def failed(self, facts: Facts) -> list[Action]:
        """Return the failed actions that count, oldest first."""

    @abstractmethod
    def why(self, failed: list[Action]) -> str:
        """Return the sentence about them."""


def _last_while(actions: Sequence[Action], test: Callable[[Action], bool]) -> list[Action]:
    """Return the newest actions, one after another, that pass a test; oldest first."""
    return list(takewhile(test, reversed(actions)))[::-1]


class ErrorCascade(FailedCalls):
    """Calls of at least two different tools failed, one after another; the score is 0 while they are all of one tool.

    Examples
    --------
    >>> from coherence.core.events import ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> for seq, tool in enumerate(("Read", "Edit", "Read"), 1):
    ...     state.fold(seq, 0.0, ToolResult("EACCES: permission denied", error=True, tool_name=tool))
    >>> print(ErrorCascade()(state, None, calm))
    error_cascade: 3 calls of 2 tools (Read, Edit) failed in a row, the last: "EACCES: permission denied"
    """

    name = "error_cascade"
    advice = "find out what the failing calls have in common: a path, a permission, a service that is down"

    def failed(self, facts: Facts) -> list[Action]:
        """Return the failures in a row; none if they are of one tool."""
        failed = facts.actions[-facts.error_streak :] if facts.error_streak else []
        return failed if len({action.tool for action in failed}) > 1 else []

    def why(self, failed: list[Action]) -> str:
        """Name the tools, and the last error."""
        tools = list(dict.fromkeys(action.tool for action in failed))
        named = ", ".join(map(shown_tool, tools[:3])) + ", …" * (len(tools) > 3)
        last = shown_error(failed[-1], ", the last")
        return f"{len(failed)} calls of {len(tools)} tools ({named}) failed in a row{last}"


class RepeatedFailurePattern:
    """The newest action failed in a way that is known by now: the same tool, the same error but for its numbers.

    It counts how often that happened among the last 30 actions, and in how many of the last eight turns, whatever
    worked between. Where a number in the error moves one way (12 failing, 11 failing) only what stands still counts.
    An error that says nothing but that there was one counts for the same call only. The score is 0.5 at four failures
    or three turns, and 1 at twice that. It asks to warn from six failures on, and to block at ten in a row of at most
    five different calls; not in an outage or under a rate limit: there the agent is not lost, the service is. ``None``
    before the first action.

    Examples
    --------
    >>> from coherence.core.events import ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> for seq in range(1, 8):
    ...     error = seq % 2 == 1
    ...     state.fold(seq, 0.0, ToolResult("no such user" if error else "ok", error=error, tool_name="find_user"))
    >>> print(RepeatedFailurePattern()(state, None, calm))
    repeated_failure_pattern: find_user returned the same error 4 times within 7 actions: "no such user"
    """

    name = "repeated_failure_pattern"
    steady = True
    guide, turns, warn, block = 4, 3, 6, 10
    """Failures, and turns with one, from which it is active; failures from which it asks to warn, and to block."""

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest action."""
        facts = state.facts
        if not facts.actions:
            return None
        last = facts.actions[-1]
        if not last.error:
            return quiet(self.name)
        same = _alike(facts.actions)
        turns = _turns(facts, last)
        in_turns = 0 if _says_nothing(last) else len(turns)
        score = max(score_of(len(same), self.guide), score_of(in_turns, self.turns) if in_turns > 1 else 0.0)
        tool, error = shown_tool(last.tool), shown_error(last)
        if in_turns > 1 and score > score_of(len(same), self.guide):
            why = f"{tool} returned the same error in {in_turns} of the last {_span(turns)} turns{error}"
        elif len(same) > 1:
            among = len(facts.actions) - next(at for at, action in enumerate(facts.actions) if action is same[0])
            why = f"{tool} returned the same error {len(same)} times within {among} actions{error}"
        else:
            why = f"{tool} failed once in this way{error}"
        return found(
            self.name,
            score,
            self._severity(same, facts.actions),
            why,
            "deal with the cause of this error before any call that needs the same thing",
            seqs_of(same) if len(same) > 1 else _earlier(facts),
        )

    def _severity(self, same: list[Action], actions: list[Action]) -> DecisionKind:
        if len(same) < self.warn:
            return "guide"
        last = actions[-1]
        if last.came.rate_limited or _OUTAGE.search(last.came.first_line) or len(same) < self.block:
            return "warn"
        newest = actions[-self.block :]
        in_a_row = all(one is other for one, other in zip(newest, same[-self.block :], strict=True))
        calls = len({action.made.masked for action in newest})
        # Many calls with one error may be a search that finds nothing; few of them, over and over, get nowhere.
        return "block" if in_a_row and _stand_still(newest) and 2 * calls <= self.block else "warn"


def _alike(actions: list[Action]) -> list[Action]:
    """Return the actions that failed as the newest one did, without those before a number moved on."""
    last = actions[-1]
    same = [
        action
        for action in actions
        if action.error and action.tool == last.tool and action.came.masked == last.came.masked
    ]
    if _says_nothing(last):
        same = [action for action in same if action.made.masked == last.made.masked]
    if len(same) > 2 and _moves_one_way(same):
        same = [action for action in same if action.came.counts == last.came.counts]
    return same


def _moves_one_way(actions: list[Action]) -> bool:
    rows = [action.came.counts for action in actions]
    columns = list(zip(*rows, strict=False))
    return any(
        len(set(column)) >= MOVING
        and (all(one <= two for one, two in pairwise(column)) or all(one >= two for one, two in pairwise(column)))
        for column in columns
    )


def _stand_still(actions: list[Action]) -> bool:
    """Tell whether the numbers in equal errors stand still, too."""
    return len({action.came.counts for action in actions}) == 1


def _says_nothing(action: Action) -> bool:
    return all(word.lower() in _EMPTY_WORDS for word in _WORD.findall(action.came.first_line))


def _turns(facts: Facts, last: Action) -> list[int]:
    """Return the newest turns in which the newest failure happened; it is the one noted last."""
    if not facts.failures:
        return []
    failure = next(reversed(facts.failures.values()))
    return [turn for turn in failure.turns if last.turn - turn < NEAR_TURNS]


def _span(turns: list[int]) -> int:
    return turns[-1] - turns[0] + 1


def _earlier(facts: Facts) -> list[int]:
    return next(reversed(facts.failures.values())).seqs if facts.failures else []


def _said(failed: list[Action], same: str, other: str) -> str:
    """Return the sentence about failed actions that had one error, or several."""
    count, tool = len(failed), shown_tool(failed[-1].tool)
    kinds = len({action.came.masked for action in failed})
    if kinds == 1:
        return f"{tool} returned the same error {count} times {same}{shown_error(failed[-1])}"
    return f"{tool} failed {count} times {other.format(kinds)}{shown_error(failed[-1], ', the last')}"


class BashRetry(FailedCalls):
    """The newest action is a shell command that failed, and it failed before in the same words.

    Ids, timestamps and temporary paths do not make a command another one. Tries count back to where something may have
    changed: a call that worked and was no mere look (another command, an edit), another request of the user, a rate
    limit. A command that waits is no retry.

    Examples
    --------
    >>> import msgspec
    >>> from coherence.core.events import ToolCall, ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> for seq in (1, 3):
    ...     state.fold(seq, 0.0, ToolCall("bash", msgspec.Raw(b'{"command": "npx tsc"}'), "1"))
    ...     state.fold(seq + 1, 0.0, ToolResult("sh: 1: npx: not found", error=True))
    >>> print(BashRetry()(state, None, calm))
    bash_retry: bash returned the same error 2 times for the same command: "sh: 1: npx: not found"
    """

    name = "bash_retry"
    guide, warn = 2, 3
    advice = "look at what the error names before the command is run again"

    def failed(self, facts: Facts) -> list[Action]:
        """Return the failed tries of the newest command since anything may have changed."""
        last = facts.actions[-1]
        if not last.error or last.made.access != "shell" or last.made.waits or last.came.rate_limited:
            return []
        since = _last_while(
            facts.actions,
            lambda action: (
                action.turn == last.turn
                and not action.came.rate_limited
                and (action.error or action.made.access in ("read", "search"))
            ),
        )
        return [action for action in since if action.error and action.made.masked == last.made.masked]

    def why(self, failed: list[Action]) -> str:
        """Say how often the command failed, and the last error."""
        if len(failed) == 1:
            return f"{shown_tool(failed[-1].tool)} failed once with this command{shown_error(failed[-1])}"
        return _said(failed, "for the same command", "with the same command")


class BashErrorStreak(FailedCalls):
    """The newest actions, whatever their tool, are shell commands that failed, one after another.

    Examples
    --------
    >>> import msgspec
    >>> from coherence.core.events import ToolCall, ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> for seq, error in ((1, "no such file: a.py"), (3, "no such file: b.py"), (5, "fatal: not a git repository")):
    ...     state.fold(seq, 0.0, ToolCall("bash", msgspec.Raw(b'{"command": "ls"}'), "1"))
    ...     state.fold(seq + 1, 0.0, ToolResult(error, error=True))
    >>> print(BashErrorStreak()(state, None, calm))
    bash_error_streak: bash failed 3 times in a row, with 3 different errors, the last: "fatal: not a git repository"
    """

    name = "bash_error_streak"
    advice = "look at the files and logs that the errors name before the next command"

    def failed(self, facts: Facts) -> list[Action]:
        """Return the shell commands that failed in a row."""
        return _last_while(facts.actions, lambda action: action.error and action.made.access == "shell")

    def why(self, failed: list[Action]) -> str:
        """Say how many failed, and the last error."""
        if len(failed) == 1:
            return f"{shown_tool(failed[-1].tool)} failed once{shown_error(failed[-1])}"
        return _said(failed, "in a row", "in a row, with {} different errors")
