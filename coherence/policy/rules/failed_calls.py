"""Rules about failing calls: shell retries, error streaks, cascades across tools, failures that come back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from coherence.core.decisions import Appraisal, DecisionKind, Finding
from coherence.core.lazy import lazy_regex
from coherence.core.readings import Reading
from coherence.core.validation import check_count
from coherence.detect.fingerprints import CallTrace, ResultTrace
from coherence.policy.rules.finding_builders import found, quiet, score_of, seqs_of, shown_error, shown_tool
from coherence.state.data import Action, Facts
from coherence.state.reducer import AgentState

APART_S = 5.0
"""Idle seconds between calls from which repeating them counts as polling."""


class Repeatable(Protocol):
    """One call, and its result if it has come: the material by which a repeat is judged."""

    @property
    def seq(self) -> int:
        """Number of the event."""
        ...

    @property
    def tool(self) -> str:
        """The tool's name."""
        ...

    @property
    def made(self) -> CallTrace:
        """Record of the call."""
        ...

    @property
    def came(self) -> ResultTrace | None:
        """Record of the result; ``None`` = it has not come."""
        ...

    @property
    def ts(self) -> float:
        """Time of the call, in seconds."""
        ...

    @property
    def duration_s(self) -> float | None:
        """Duration of the call; ``None`` = unknown."""
        ...

    @property
    def compacted(self) -> bool:
        """True if the context was shortened between this call and the one before."""
        ...


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


def known_shape(steps: Sequence[Repeatable], period: int) -> KnownShape | None:
    """Return the way of working that the steps of a loop look like, ``None`` if they look like none.

    Parameters
    ----------
    steps : sequence of Repeatable
        The calls of the loop, oldest first, two at least.
    period : int
        Calls in one round.
    """
    if any(step.made.waits or (step.came is not None and step.came.pending) for step in steps[-period:]):
        return WAITING
    if any(step.came is not None and step.came.rate_limited for step in steps[-period:]):
        return RATE_LIMIT
    pages = [step.made for step in steps[-period:] if step.made.page]
    if len({made.exact for made in pages}) > len({made.page for made in pages}):
        return PAGES
    idle = [after.ts - before.ts - (before.duration_s or 0.0) for before, after in pairwise(steps)]
    from statistics import median  # loaded by the first retry

    return SPACED if median(idle) >= APART_S else None


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


class ErrorCascade:
    """Calls of at least two different tools failed, one after another.

    The score is 0.5 at ``guide`` failures in a row and 1 at twice that; 0 while they are all of one tool. ``None``
    before the first action.

    Parameters
    ----------
    guide : int
        Failures in a row from which it is active, 2 or more.
    warn : int
        Failures in a row from which it asks to warn.

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

    def __init__(self, *, guide: int = 3, warn: int = 5) -> None:
        self.guide = check_count("guide", guide, least=2, most=30)
        self.warn = check_count("warn", warn, least=2, most=31)
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest actions."""
        facts = state.facts
        if not facts.actions:
            return None
        if facts.error_streak < 2:
            return self._quiet
        failed = facts.actions[-facts.error_streak :]
        tools = list(dict.fromkeys(action.tool for action in failed))
        if len(tools) < 2:
            return self._quiet
        count = len(failed)
        named = ", ".join(map(shown_tool, tools[:3])) + ", …" * (len(tools) > 3)
        return found(
            self.name,
            score_of(count, self.guide),
            "warn" if count >= self.warn else "guide",
            f"{count} calls of {len(tools)} tools ({named}) failed in a row{shown_error(failed[-1], ', the last')}",
            "find out what the failing calls have in common: a path, a permission, a service that is down",
            seqs_of(failed),
        )


class RepeatedFailurePattern:
    """The newest action failed in a way that is known by now: the same tool, the same error but for its numbers.

    It counts how often that happened among the last 30 actions, and in how many of the last eight turns, whatever
    worked between. Where a number in the error moves one way (12 failing, 11 failing) only what stands still counts.
    An error that says nothing but that there was one counts for the same call only. The score is 0.5 at ``guide``
    failures or ``turns`` turns, and 1 at twice that. ``None`` before the first action.

    Parameters
    ----------
    guide : int
        Failures of one kind from which it is active, 2 or more.
    turns : int
        Turns with a failure of one kind from which it is active, 2 or more.
    warn : int
        Failures from which it asks to warn.
    block : int
        Failures in a row, with nothing between, of at most half as many different calls, from which it asks to block.
        Not in an outage or under a rate limit: there the agent is not lost, the service is.

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

    def __init__(self, *, guide: int = 4, turns: int = 3, warn: int = 6, block: int = 10) -> None:
        self.guide = check_count("guide", guide, least=2, most=30)
        self.turns = check_count("turns", turns, least=2, most=NEAR_TURNS)
        self.warn = check_count("warn", warn, least=2, most=31)
        self.block = check_count("block", block, least=2, most=31)
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest action."""
        facts = state.facts
        if not facts.actions:
            return None
        last = facts.actions[-1]
        if not last.error:
            return self._quiet
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


class BashRetry:
    """The newest action is a shell command that failed, and it failed before in the same words.

    Ids, timestamps and temporary paths do not make a command another one. Tries count back to where something may have
    changed: a call that worked and was no mere look (another command, an edit), another request of the user, a rate
    limit. A command that waits is no retry. The score is 0.5 at ``guide`` failed tries and 1 at twice that. ``None``
    before the first action.

    Parameters
    ----------
    guide : int
        Failed tries, the first one included, from which it is active; 2 or more.
    warn : int
        Failed tries from which it asks to warn.

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

    def __init__(self, *, guide: int = 2, warn: int = 3) -> None:
        self.guide = check_count("guide", guide, least=2, most=30)
        self.warn = check_count("warn", warn, least=2, most=31)
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest action."""
        actions = state.facts.actions
        if not actions:
            return None
        last = actions[-1]
        if not last.error or last.made.access != "shell" or last.made.waits or last.came.rate_limited:
            return self._quiet
        tries = _tries(actions)
        count, tool, error = len(tries), shown_tool(last.tool), shown_error(last)
        same = len({action.came.masked for action in tries}) == 1
        if count == 1:
            why = f"{tool} failed once with this command{error}"
        elif same:
            why = f"{tool} returned the same error {count} times for the same command{error}"
        else:
            why = f"{tool} failed {count} times with the same command{shown_error(last, ', the last')}"
        return found(
            self.name,
            score_of(count, self.guide),
            "warn" if count >= self.warn else "guide",
            why,
            "look at what the error names before the command is run again",
            seqs_of(tries),
        )


def _tries(actions: list[Action]) -> list[Action]:
    """Return the failed tries of the newest command, oldest first, since anything may have changed."""
    last = actions[-1]
    tries = []
    for action in reversed(actions):
        if action.turn != last.turn or action.came.rate_limited:
            break
        if action.error:
            if action.made.masked == last.made.masked:
                tries.append(action)
        elif action.made.access not in ("read", "search"):
            break
    return tries[::-1]


class BashErrorStreak:
    """The newest actions, whatever their tool, are shell commands that failed, one after another.

    The score is 0.5 at ``guide`` of them and 1 at twice that. ``None`` before the first action.

    Parameters
    ----------
    guide : int
        Failures in a row from which it is active.
    warn : int
        Failures in a row from which it asks to warn.

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

    def __init__(self, *, guide: int = 3, warn: int = 5) -> None:
        self.guide = check_count("guide", guide, least=1, most=30)
        self.warn = check_count("warn", warn, least=1, most=31)
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest actions."""
        actions = state.facts.actions
        if not actions:
            return None
        count = 0
        for action in reversed(actions):
            if not action.error or action.made.access != "shell":
                break
            count += 1
        if not count:
            return self._quiet
        failed = actions[-count:]
        kinds = len({action.came.masked for action in failed})
        tool, error = shown_tool(failed[-1].tool), shown_error(failed[-1])
        if count == 1:
            why = f"{tool} failed once{error}"
        elif kinds == 1:
            why = f"{tool} returned the same error {count} times in a row{error}"
        else:
            last = shown_error(failed[-1], ", the last")
            why = f"{tool} failed {count} times in a row, with {kinds} different errors{last}"
        return found(
            self.name,
            score_of(count, self.guide),
            "warn" if count >= self.warn else "guide",
            why,
            "look at the files and logs that the errors name before the next command",
            seqs_of(failed),
        )
