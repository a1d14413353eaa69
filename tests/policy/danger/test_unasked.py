"""Destructive calls that nobody asked for."""

from __future__ import annotations

import msgspec
import pytest

from coherence.core.events import Goal, Message, ToolCall
from coherence.detect.detector import Observed
from coherence.policy.danger.unasked import ASKED, FADES, UNASKED, DangerDetector


def after(goal: str, command: str) -> DangerDetector:
    detector = DangerDetector()
    detector.observe(Observed.of(Goal(goal), 1))
    detector.observe(Observed.of(ToolCall("Bash", msgspec.Raw(b'{"command": "%s"}' % command.encode()), "a"), 2))
    return detector


@pytest.mark.parametrize(
    ("goal", "command", "value"),
    [
        ("add a test for the parser", "rm -rf src", UNASKED),
        ("delete the old build folder", "rm -rf build", ASKED),
        ("add a test for the parser", "ls src", 0.0),
    ],
)
def test_danger_detector_weighs_a_destructive_call_by_what_was_asked(goal: str, command: str, value: float) -> None:
    detector = after(goal, command)
    assert detector.data.value == value
    active = [finding.active for finding in detector.findings(None, None, None)]
    assert active == ([] if not value else [value == UNASKED])


def test_danger_detector_fades_and_a_new_goal_clears_it() -> None:
    detector = after("add a test", "rm -rf src")
    detector.observe(Observed.of(Message("assistant", "Done."), 3))
    assert detector.data.value == pytest.approx(FADES)
    detector.observe(Observed.of(Goal("write the docs"), 4, goal="add a test"))
    assert detector.data.value == 0.0


def test_danger_detector_a_row_that_fails_is_passed_over() -> None:
    detector = DangerDetector([object()])  # type: ignore[list-item]  # no row at all
    detector.observe(Observed.of(ToolCall("Bash", msgspec.Raw(b'{"command": "rm -rf /"}'), "a"), 1))
    assert detector.data.value == 0.0


def test_danger_detector_removing_its_own_file_is_tidying_up() -> None:
    detector = after("fix the bug in the parser", "cat > reproduce.py")
    detector.observe(Observed.of(ToolCall("Bash", msgspec.Raw(b'{"command": "rm reproduce.py"}'), "b"), 3))
    assert detector.data.value == 0.0
    detector.observe(Observed.of(ToolCall("Bash", msgspec.Raw(b'{"command": "rm reproduce.py parser.py"}'), "c"), 4))
    assert detector.data.value == UNASKED
