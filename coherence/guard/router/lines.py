"""Six lines, each in [0, 1], from what is measured of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Literal, TypeAlias, get_args

import msgspec

LineName: TypeAlias = Literal["stability", "efficiency", "learning", "routing", "collaboration", "governance"]
"""What a line is about, from the first (the lowest bit of a code is its first character) to the sixth."""

LINES: tuple[LineName, ...] = get_args(LineName)

Measures: TypeAlias = Mapping[str, float | None]
"""Name -> value; ``None`` = unknown."""


class Term(msgspec.Struct, frozen=True):
    """What one measure adds to its line: 1 at ``good`` and beyond, 0 at ``bad`` and beyond, straight between them."""

    good: float
    bad: float

    def score(self, value: float) -> float:
        """Return the term's score in [0, 1].

        Examples
        --------
        >>> Term(good=0.0, bad=0.5).score(0.125), Term(good=0.3, bad=0.0).score(0.9)
        (0.75, 1.0)
        """
        return min(max((value - self.bad) / (self.good - self.bad), 0.0), 1.0)


TERMS: dict[LineName, dict[str, Term]] = {
    "stability": {
        "success_rate": Term(1.0, 0.0),
        "consecutive_failures": Term(0.0, 5.0),
        "error_rate": Term(0.0, 0.5),
        "pressure": Term(0.25, 0.75),  # the edges of observe and of block
        "coherence_index": Term(0.6, 0.2),  # yellow and better; the middle of red
    },
    "efficiency": {
        "latency_ratio": Term(1.0, 2.0),
        "cost_ratio": Term(1.0, 2.0),
        "repetition": Term(0.3, 0.8),
        "context_exhaustion": Term(0.8, 0.95),  # where the rule of this name begins, and where it warns
        "cost_spiral": Term(0.25, 0.75),
    },
    "learning": {
        "unused_output": Term(0.8, 1.3),  # good runs reach 1: alone it is no reason for caution
        "bash_retry": Term(0.25, 0.75),
        "repeated_failure_pattern": Term(0.25, 0.75),
        "quality_decline_no_recovery": Term(0.25, 0.75),
    },
    "routing": {
        "goal_coherence": Term(0.3, 0.0),  # the usual: 24 shipped runs lie between 0.33 and 0.77 (5 to 95 %)
        "uncertainty": Term(0.2, 0.6),  # they lie between 0 and 0.13
        "scope_drift_warn": Term(0.25, 0.75),
    },
    "collaboration": {
        "received_pressure": Term(0.25, 0.75),
        "ungrounded_answer": Term(0.25, 0.75),
        "procedural_warning": Term(0.25, 0.75),
    },
    "governance": {
        "cost": Term(0.8, 1.0),  # shares of a budget: from the warning to the limit
        "token_usage": Term(0.8, 1.0),
        "budget": Term(0.8, 1.0),
        "goal_hijack": Term(0.2, 0.4),  # around the shipped threshold of 0.25
        "unsupported_assumption": Term(0.5, 1.0),
    },
}
"""Line -> measure -> how it counts. No measure belongs to two lines, so that no line follows from another.

Measures are those of a reading, the appraisal's pressure and scores of rules (active from 0.5 on), as
:func:`~coherence.guard.router.measures.measures_of` collects them, and what a guard counts: ``success_rate``,
``consecutive_failures``, ``latency_ratio`` and ``cost_ratio`` (now to before).

Grounding counts as the score of ``ungrounded_answer``: remarks on the way name much that no tool showed. A trust
weight is no term: it says how much one agent relies on another and not how well that goes. What comes of it is
``received_pressure``.
"""

KNOWN: frozenset[str] = frozenset(name for terms in TERMS.values() for name in terms)
"""Names of all measures that count."""


def known_measures(measures: Measures) -> dict[str, float]:
    """Return the measures that count and are finite numbers; anything else is unknown.

    Examples
    --------
    >>> known_measures({"error_rate": 0.2, "cost": None, "pressure": float("nan"), "colour": 1.0})
    {'error_rate': 0.2}
    """
    found = {}
    for name in sorted(KNOWN):
        value = measures.get(name)
        if isinstance(value, int | float) and abs(value) <= 1e18 and isfinite(value):
            found[name] = float(value)
    return found


def line_score(line: LineName, measures: Measures) -> float | None:
    """Return how good a line is, in [0, 1]: half the mean and half the worst of its known terms.

    The worst counts as much as all together: five things that go well do not hide one that has failed. With one term
    at 0 a line is at most 0.5 and never yang. ``None`` = no term is known.

    Examples
    --------
    >>> line_score("stability", {"success_rate": 0.9, "error_rate": 0.1})  # terms 0.9 and 0.8
    0.825
    >>> line_score("stability", {"goal_coherence": 0.0}) is None
    True
    """
    known = known_measures(measures)
    scores = [term.score(known[name]) for name, term in TERMS[line].items() if name in known]
    if not scores:
        return None
    return round(0.5 * sum(scores) / len(scores) + 0.5 * min(scores), 9)


def line_scores(measures: Measures) -> tuple[float | None, ...]:
    """Return the six scores, the first line first."""
    return tuple(line_score(line, measures) for line in LINES)


def trends(earlier: Measures, later: Measures) -> tuple[float | None, ...]:
    """Return how each line changed from one window to the next, in [-1, 1]; only what is known in both is compared.

    Examples
    --------
    >>> trends({"error_rate": 0.0, "pressure": 0.9}, {"error_rate": 0.2})[:2]  # 1 to 0.6, and nothing to compare
    (-0.4, None)
    """
    before, now = known_measures(earlier), known_measures(later)
    both = before.keys() & now.keys()
    old = line_scores({name: before[name] for name in sorted(both)})
    new = line_scores({name: now[name] for name in sorted(both)})
    return tuple(
        None if was is None or score is None else round(score - was, 9) for was, score in zip(old, new, strict=True)
    )
