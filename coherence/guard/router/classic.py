"""The classic router's six scores and states, with its exact numbers, for who comes from there.

Values: ``self-improving-loop`` 0.1.1 (MIT), measured. Its scores are made of words in error texts, found inside other
words too: "generated" contains "rate" and "author" contains "auth". Nothing else here uses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from coherence.guard.router.lines import LINES
from coherence.guard.router.states import NAMES

YANG = 0.60
MOVING = 0.45
TARGET_S = 5.0
"""Seconds of a call at which efficiency is 0."""

FEW = 3
"""Calls from which something can have been learned, and failures in a row from which nothing was."""

MAX_TEXT = 100_000
"""Characters of an error, a task or a context's entry that are looked at."""

WORDS = (
    ("route", "model", "provider", "tool", "schema", "json"),
    ("handoff", "sync", "context", "collab", "coordination"),
    ("quota", "rate", "429", "auth", "permission", "budget", "cost"),
)
"""Of lines 4, 5 and 6."""


class ClassicState(msgspec.Struct, frozen=True):
    """A state by the classic rules: a line moves only from yin to yang, and only where its score is below 0.45."""

    scores: tuple[float, ...]

    @property
    def code(self) -> str:
        """Six bits, the first line first."""
        return "".join(str(int(score >= YANG)) for score in self.scores)

    @property
    def moving(self) -> tuple[int, ...]:
        """Numbers of the moving lines, from 1 to 6."""
        return tuple(number for number, score in enumerate(self.scores, 1) if score < MOVING)

    @property
    def changed(self) -> str:
        """The code with the moving lines turned."""
        return "".join(str(int(score >= YANG or score < MOVING)) for score in self.scores)

    @property
    def name(self) -> str:
        """The state's name, or ``mixed``."""
        return NAMES.get(self.code, "mixed")


def classic_state(lines: Sequence[tuple[int, float]]) -> ClassicState:
    """Return the state of six lines, each a number from 1 to 6 and a score.

    Raises
    ------
    ValueError
        For other than the six lines, each once.
    """
    if sorted(number for number, _ in lines) != list(range(1, len(LINES) + 1)):
        raise ValueError(f"lines must be the lines 1 to {len(LINES)}, each once, not {[number for number, _ in lines]}")
    return ClassicState(tuple(score for _, score in sorted(lines)))


def classic_lines(
    traces: Sequence[Mapping[str, Any]], before_metrics: Mapping[str, float] | None = None
) -> tuple[tuple[int, float], ...]:
    """Return the classic six lines: number and score, in [0, 1].

    Success rate; 1 - mean seconds / 5; 0.5, 0.75 from three calls on, 0.85 if one of them failed, 0.35 after three
    failures in a row; and for each of the lines 4 to 6 the share of calls that did not fail with one of its words.

    Parameters
    ----------
    traces : sequence of mapping
        Calls with ``success``, ``duration_sec``, ``error``, ``task`` and ``context``.
    before_metrics : mapping, optional
        ``success_rate``, ``avg_duration_sec``, ``consecutive_failures``; default: those of ``traces`` and 0.

    Examples
    --------
    >>> state = classic_state(classic_lines([{"success": False, "duration_sec": 1.0, "error": "rate limit"}] * 3))
    >>> state.code, state.moving, state.changed
    ('011110', (1, 6), '111111')
    """
    metrics = before_metrics or {}
    count = len(traces)
    failed = [trace for trace in traces if not trace.get("success")]
    success = metrics.get("success_rate", (count - len(failed)) / count if count else 1.0)
    average = metrics.get(
        "avg_duration_sec", sum(trace.get("duration_sec") or 0.0 for trace in traces) / count if count else 0.0
    )
    efficiency = 1.0 if average <= 0 else min(max(1.0 - average / TARGET_S, 0.0), 1.0)
    learning = (0.85 if failed else 0.75) if count >= FEW else 0.5
    if metrics.get("consecutive_failures", 0) >= FEW:
        learning = 0.35
    texts = [_text(trace) for trace in failed]
    shares = (1.0 - sum(any(word in text for word in words) for text in texts) / max(count, 1) for words in WORDS)
    return tuple(enumerate((success, efficiency, learning, *shares), 1))


def _text(trace: Mapping[str, Any]) -> str:
    context = trace.get("context")
    pairs = [f"{key}={value}" for key, value in context.items()] if isinstance(context, Mapping) else []
    parts = (str(trace.get("error") or ""), str(trace.get("task") or ""), *pairs)
    return " ".join(part[:MAX_TEXT] for part in parts).lower()
