"""Questions to the person at the client: which refusals are put to them, and what their answer teaches."""

from __future__ import annotations

from typing import Any, NamedTuple

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Decision
from coherence.core.readings import excerpt
from coherence.integrations.daemon.hook import call_key
from coherence.integrations.host_session import MAX_CONTEXT, REFUSED, Answer, Payload, explained, refusal, text_of
from coherence.monitor.monitor import Monitor
from coherence.policy.budgets import PER_TOOL, is_budget
from coherence.policy.one_call import OF_ONE_CALL

ASKING_MODES = frozenset({"default", "acceptEdits", "plan", "auto"})
"""Permission modes in which the client shows a question of a hook to a person; without one it denies the call."""

CERTAIN = ("forbidden_call", "broken_constraint")
"""Rules that refuse what the user has forbidden, as budgets do: there is nothing to ask."""

OF_CHECKS = ("destructive_call", "check_failed")
"""Further rules that are about one call."""

BY_USER = " Only the user can let it through, here or by: coherence unblock"

MAX_ASKED = 64
"""Questions that wait for an answer, and calls that a person has refused."""


class _Question(NamedTuple):
    decision: Decision
    key: str


class Questions:
    """Put doubts about calls to the person, and learn from the answers.

    The client tells no hook what was answered: a call that has a result was let through, and the transcript shows the
    call that was refused.

    Parameters
    ----------
    monitor : Monitor
        Of the main agent: a subagent may work where nobody looks.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._asked: dict[str, _Question] = {}
        """Id of a call -> the question about it."""
        self._refused: dict[str, None] = {}
        """Keys of calls that a person has refused."""

    def answer(self, payload: Payload, decision: Decision) -> Answer:
        """Return the answer to a call that the decision refuses: a question, or where there is none, a refusal."""
        key, call = _key(payload), text_of(payload, "tool_use_id")
        if not _is_asked(payload, decision) or key in self._refused:
            return denial(decision, self._monitor)
        if call:
            self._asked[call] = _Question(decision, key)
            _shrink(self._asked)
        return _answer("ask", question(decision, self._monitor))

    def let_through(self, call: str) -> None:
        """Take in that a call ran, before it is recorded: where it was asked about, the refusal was a false alarm."""
        found = self._asked.pop(call, None)
        if found is not None:
            self._monitor.unblock("the user let the call through", decision=found.decision)

    def refused(self, call: str) -> bool:
        """Take in that the person refused a call; return whether it was asked about."""
        found = self._asked.pop(call, None)
        if found is None:
            return False
        self._monitor.confirm(found.decision, "the user refused the call, too")
        self._refused[found.key] = None
        _shrink(self._refused)
        return True


def _is_asked(payload: Payload, decision: Decision) -> bool:
    """Tell whether a person sees a question, and the refusal is a doubt."""
    if text_of(payload, "agent_id") or text_of(payload, "permission_mode") not in ASKING_MODES:
        return False
    rules = [finding.rule for finding in decision.findings if finding.acts == "block"]
    return not any(rule in CERTAIN or is_budget(rule) for rule in rules)


def refuses_all(decision: Decision, config: MonitorConfig) -> bool:
    """Tell whether a decision refuses each call from now on, rather than one.

    Examples
    --------
    >>> from coherence.core.decisions import Finding
    >>> spent = Finding(rule="budget.calls", severity="block", active=True, score=1.0, threshold=1.0)
    >>> refuses_all(Decision(seq=1, kind="block", findings=(spent,)), MonitorConfig())
    True
    """
    rules = [finding.rule for finding in decision.findings if finding.acts == "block"]
    if any(is_budget(rule) and not rule.partition(".")[2].startswith(PER_TOOL) for rule in rules):
        return True
    standing = [rule for rule in rules if not is_budget(rule) and rule not in (*OF_ONE_CALL, *OF_CHECKS)]
    return config.block == "all" and bool(standing)


def _key(payload: Payload) -> str:
    try:
        return call_key(dict(payload))
    except (TypeError, ValueError, RecursionError):
        return ""


def _shrink(kept: dict[str, Any]) -> None:
    while len(kept) > MAX_ASKED:
        del kept[next(iter(kept))]


def question(decision: Decision, monitor: Monitor) -> str:
    """Return why a call is refused, in words for the person, and for the agent where nobody is there.

    Examples
    --------
    >>> message = "it wipes a disk. Only this call is refused; m.unblock() ..."
    >>> with Monitor(embedder=False) as monitor:
    ...     question(Decision(seq=1, kind="block", message=message), monitor).partition(" Only ")[0]
    'coherence refused this call: it wipes a disk.'
    """
    doubt = decision.message.partition(" Only this call is refused;")[0].partition(" It stays refused until")[0]
    rest = BY_USER + explained(decision, monitor)
    return excerpt(f"{REFUSED}: {doubt}", MAX_CONTEXT - len(rest)) + rest


def denial(decision: Decision, monitor: Monitor) -> Answer:
    """Return the answer that refuses a call."""
    return _answer("deny", refusal(decision, monitor))


def _answer(kind: str, reason: str) -> Answer:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": kind,
            "permissionDecisionReason": reason,
        }
    }
