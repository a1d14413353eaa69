"""States by the classic router's scores, with its exact numbers, for who comes from there.

Values: ``self-improving-loop`` 0.1.1 (MIT), measured. Its scores are made of words in error texts, found inside other
words too: "generated" contains "rate" and "author" contains "auth". Nothing else here uses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coherence.guard.router import TABLE, Line, State

TARGET_S = 5.0
"""Seconds of a call at which efficiency is 0."""

FEW = 3
"""Calls from which something can have been learned, and failures in a row from which nothing was."""

WORDS = (
    ("route", "model", "provider", "tool", "schema", "json"),
    ("handoff", "sync", "context", "collab", "coordination"),
    ("quota", "rate", "429", "auth", "permission", "budget", "cost"),
)
"""Of lines 4, 5 and 6."""


def classic_state(traces: Sequence[Mapping[str, Any]], before_metrics: Mapping[str, float] | None = None) -> State:
    """Return the state by the classic six scores. A line moves only from yin to yang, and only below 0.45.

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
    >>> state = classic_state([{"success": False, "duration_sec": 1.0, "error": "rate limit"}] * 3)
    >>> state.code, state.moving, state.changed, state.policy
    ('011110', (1, 6), '111111', 'observe_and_bound')
    """
    metrics = before_metrics or {}
    count = len(traces)
    failed = [trace for trace in traces if not trace.get("success")]
    success = metrics.get("success_rate", (count - len(failed)) / count if count else 1.0)
    seconds = sum(trace.get("duration_sec") or 0.0 for trace in traces)
    average = metrics.get("avg_duration_sec", seconds / count if count else 0.0)
    efficiency = 1.0 if average <= 0 else min(max(1.0 - average / TARGET_S, 0.0), 1.0)
    learning = (0.85 if failed else 0.75) if count >= FEW else 0.5
    if metrics.get("consecutive_failures", 0) >= FEW:
        learning = 0.35
    texts = [_text(trace) for trace in failed]
    shares = (1.0 - sum(any(word in text for word in words) for text in texts) / max(count, 1) for words in WORDS)
    return State(tuple(map(Line, TABLE, (success, efficiency, learning, *shares))))


def _text(trace: Mapping[str, Any]) -> str:
    context = trace.get("context")
    pairs = [f"{key}={value}" for key, value in context.items()] if isinstance(context, Mapping) else []
    return " ".join([str(trace.get("error") or ""), str(trace.get("task") or ""), *pairs]).lower()
