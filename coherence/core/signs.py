"""Meanings of the signs of the light, in words for people."""

from __future__ import annotations

from collections.abc import Mapping

SAYS: Mapping[str, str] = {
    "novelty": "the newest step is about things that nobody has spoken of",
    "novelty.change": "the newest steps turn to things that nobody has spoken of",
    "step_drift.change": "the newest steps have less to do with what was asked than this run's steps had before",
    "stall": "the newest actions repeat each other and bring nothing new",
    "identical_calls": "the same call came to the same result again",
    "reversal": "the newest calls change the same thing again, or take a change back",
    "failure_streak": "the newest calls failed",
    "breakdown": "the newest text has lost its thread",
    "goal_hijack": "a call does not fit what the user asked for",
    "rule.destructive_unasked": "a call destroys something, and nobody asked for that",
    "rule.contradicted_claim": "the newest message, or a text that a call writes, is contradicted by the run's results",
    "rule.broken_constraint": "the newest call does what somebody has forbidden",
    "rule.ungrounded_writing": "the newest call writes down what nothing has shown",
    "unknown_id": "a call refers to something by an id that nothing has given",
    "goal_loss": "the summary that took the place of the conversation does not hold the goal",
    "rule.ungrounded_answer": "an answer holds what nothing has shown",
    "unsupported_assumption": "the newest step rests on what nobody has said or shown",
    "cost_surge": "the newest model calls take far more than is usual in this run",
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
