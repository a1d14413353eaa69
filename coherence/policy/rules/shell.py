"""Rules about shell commands: the same failing command again, and one failing command after another."""

from __future__ import annotations

from coherence.core.decisions import Appraisal, Finding
from coherence.core.readings import Reading
from coherence.core.validation import check_count
from coherence.policy.rules.finding_builders import found, quiet, score_of, seqs_of, shown_error, shown_tool
from coherence.state.data import Action
from coherence.state.reducer import AgentState


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
