"""What the signs of the light mean, in words for people."""

from __future__ import annotations

from collections.abc import Mapping

SAYS: Mapping[str, str] = {
    "novelty": "the newest step is about things that nobody has spoken of",
    "novelty.change": "the newest steps turn to things that nobody has spoken of",
    "goal_drift.change": "recent texts move away from the goal",
    "goal_coherence.change": "what is said has less to do with the goal than before",
    "drift.change": "texts and tools move away from what was asked",
    "stall": "the newest actions repeat each other and bring nothing new",
    "failure_streak": "the newest calls failed",
    "breakdown": "the newest text has lost its thread",
    "goal_hijack": "a call does not fit what the user asked for",
    "rule.destructive_unasked": "a call destroys something, and nobody asked for that",
    "spending": "a model call costs far more than is usual in this run",
}
"""Sign -> what it means, for people."""


def said(sign: str) -> str:
    """Return what a sign means, in a sentence for people; its name where nothing is known of it.

    Examples
    --------
    >>> said("failure_streak")
    'the newest calls failed'
    """
    return SAYS.get(sign, sign)
