"""Shared parts of the rules: scores from numbers, and findings from scores."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.decisions import EVIDENCE, DecisionKind, Finding
from coherence.core.readings import one_line
from coherence.state.data import Action

THRESHOLD = 0.5
"""Score from which a rule is active where it does not say otherwise; each rule documents what it means."""

JUST_BELOW = 0.49
"""The most that a score may be while something else is missing that the rule needs."""

FAINT = 0.25
"""Score below which a finding of a measured quantity goes without words: there is always some."""

MAX_NAME = 64
MAX_SHOWN = 160
"""Characters of a path or an error that stand in a sentence."""


def score_of(number: float, least: float) -> float:
    """Return a number in [0, 1] that is 0.5 where ``number`` reaches ``least``, and 1 at twice that.

    Examples
    --------
    >>> score_of(3, 3), score_of(2, 4), score_of(9, 3)
    (0.5, 0.25, 1.0)
    """
    return min(1.0, 0.5 * number / least)


def quiet(rule: str, score: float = 0.0) -> Finding:
    """Return the finding of a rule that sees nothing worth a word."""
    return Finding(rule=rule, severity="guide", score=score, threshold=THRESHOLD)


def found(
    rule: str,
    score: float,
    severity: DecisionKind,
    why: str,
    action: str,
    evidence: Sequence[int] = (),
    threshold: float = THRESHOLD,
) -> Finding:
    """Return a finding that is active from the threshold on.

    Of the evidence the newest eight events of this session are named: those before it have no number here.
    """
    return Finding(
        rule=rule,
        severity=severity,
        active=score >= threshold,
        score=score,
        threshold=threshold,
        evidence=tuple([seq for seq in evidence if seq > 0][-EVIDENCE:]),
        why=why,
        action=action,
    )


def seqs_of(actions: Sequence[Action]) -> list[int]:
    """Return the event numbers of some actions."""
    return [action.seq for action in actions]


def shown_tool(tool: str) -> str:
    """Return a tool's name as it can stand in a sentence.

    Examples
    --------
    >>> shown_tool("Bash"), shown_tool("  ")
    ('Bash', 'a tool without a name')
    """
    return one_line(tool[:MAX_NAME]).strip() or "a tool without a name"


def shown_path(path: str) -> str:
    """Return a file's path as it can stand in a sentence; of a long one the end."""
    plain = one_line(path)
    return plain if len(plain) <= MAX_SHOWN else f"…{plain[1 - MAX_SHOWN :]}"


def shown_error(action: Action, before: str = "") -> str:
    """Return what an action's error says, quoted, after some words and a colon; nothing if it says nothing.

    The line comes from outside and may pose as an instruction: it must not be able to end its quotation.
    """
    line = plain_quote(action.came.first_line)
    return f'{before}: "{line[:MAX_SHOWN]}{"..." * (len(line) > MAX_SHOWN)}"' if line else ""


def plain_quote(text: str) -> str:
    """Return a text from outside so that it cannot end the quotation that it stands in."""
    return one_line(text).strip().translate(_QUOTES)


_QUOTES = str.maketrans(dict.fromkeys('"“”„‟«»＂', "'"))
