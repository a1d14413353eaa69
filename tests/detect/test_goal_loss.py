"""Goals that do not survive a summary of the conversation."""

from __future__ import annotations

import pytest

from coherence.core.events import Compaction, Event, Goal, Message
from coherence.detect.detector import Observed
from coherence.detect.goal_loss import FOUND_AGAIN, KEPT, GoalLossDetector

GOAL = Goal("Reschedule the dental check-up of Emma to 20 May at ten and tell her sister")
EMPTY = "Context was compacted. Several tools were called and returned results."


def after(*events: Event) -> float | None:
    detector = GoalLossDetector()
    for seq, event in enumerate((GOAL, *events), 1):
        detector.observe(Observed.of(event, seq))
    return detector.data.value


def test_goal_loss_a_summary_without_the_goal_loses_it_and_one_with_it_does_not() -> None:
    assert after(Message("assistant", "I look at the calendar.")) is None
    assert after(Compaction(EMPTY)) == 1.0
    assert after(Compaction(f"Task: {GOAL.text}. Done: read the calendar.")) == 0.0


def test_goal_loss_a_system_message_in_mid_run_counts_if_it_speaks_of_a_summary() -> None:
    said = Message("assistant", "I look at the calendar.")
    assert after(Message("system", EMPTY)) is None, "what stands before the first step is the prompt"
    assert after(said, Message("system", EMPTY)) == 1.0
    assert after(said, Message("system", "Answer in short sentences.")) is None


def test_goal_loss_fades_by_steps_that_show_the_goal() -> None:
    lost = Compaction(EMPTY)
    assert after(lost, Message("assistant", "A recipe for potatoes with rosemary.")) == pytest.approx(KEPT)
    back = Message("assistant", "Reschedule the dental check-up of Emma.")
    assert after(lost, back) == pytest.approx(FOUND_AGAIN)
    assert after(lost, Message("user", "Please go on.")) == 0.0, "the user has taken over"


def test_goal_loss_another_goal_begins_anew() -> None:
    assert after(Compaction(EMPTY), Goal("Write the minutes")) is None
