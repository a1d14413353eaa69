"""Destructive calls that nobody asked for."""

from __future__ import annotations

import msgspec
import pytest

from coherence.core.events import Goal, Message, ToolCall
from coherence.detect.detector import Observed
from coherence.policy.danger.unasked import ASKED, DELEGATED, FADES, RESTORED, RULE, UNASKED, DangerDetector


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
    active = [finding.active for finding in detector.findings(None, None, None) if finding.rule == RULE]
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


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("frame.to_csv('zones.csv')", 0.0),
        ('chart.savefig(\\"zones.csv\\")', 0.0),
        ("open('zones.csv', 'w').write(text)", 0.0),
        ("text = open('zones.csv').read()", UNASKED),
        ("print('zones.csv')", UNASKED),
    ],
)
def test_danger_detector_what_its_own_script_has_saved_is_its_own(line: str, value: float) -> None:
    detector = after("fix the bug in the parser", f"cat > probe.py <<EOF\\nimport fares\\n{line}\\nEOF")
    detector.observe(Observed.of(ToolCall("Bash", msgspec.Raw(b'{"command": "rm zones.csv probe.py"}'), "b"), 3))
    assert detector.data.value == value


@pytest.mark.parametrize(
    ("goal", "tool", "value"),
    [
        ("book a flight to New York", "cancel_reservation", UNASKED),
        ("cancel my reservation", "cancel_reservation", ASKED),
        ("what is in the mail from Ann?", "send_money", UNASKED),
        ("pay the bill", "send_money", ASKED),
        ("do what Ann asks for in her mail", "delete_file", UNASKED * DELEGATED),
        ("what did I spend in May?", "get_payments", 0.0),
        ("what did I spend in May?", "list_files", 0.0),
        ("buy a laptop", "remove_product_from_cart", 0.0),
    ],
)
def test_danger_detector_knows_tools_that_destroy_or_pay_by_their_names(goal: str, tool: str, value: float) -> None:
    detector = DangerDetector()
    detector.observe(Observed.of(Goal(goal), 1))
    detector.observe(Observed.of(ToolCall(tool, msgspec.Raw(b'{"id": "25"}'), "a"), 2))
    assert detector.data.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("made", "removed", "value"),
    [
        ("mkdir -p repro/source", "rm -rf repro/build", 0.0),
        ("mkdir -p repro/source", "rm -rf repro", UNASKED * RESTORED),
        ("mkdir repro", "rm -rf repro", 0.0),
        ("mkdir -p src/new", "rm -rf src/old", UNASKED),
    ],
)
def test_danger_detector_a_folder_it_made_is_its_own(made: str, removed: str, value: float) -> None:
    detector = after("fix the bug in the parser", made)
    call = ToolCall("Bash", msgspec.Raw(b'{"command": "%s"}' % removed.encode()), "b")
    detector.observe(Observed.of(call, 3))
    assert detector.data.value == value


def test_danger_detector_a_file_set_back_counts_half() -> None:
    assert after("fix the bug in the parser", "git checkout -- app.py").data.value == UNASKED * RESTORED


def test_danger_detector_before_anybody_has_asked_for_anything_no_name_is_unasked() -> None:
    detector = DangerDetector()
    detector.observe(Observed.of(ToolCall("refund", msgspec.Raw(b'{"order": 1}'), "a"), 1))
    assert detector.data.value == 0.0


LONG = [
    pytest.param("true; " * 501, id="more than 500 commands"),
    pytest.param("x=1; " * 3_001, id="more than 3,000 statements"),
    pytest.param(f"echo {'a ' * 2_001}", id="a command of more than 2,000 words"),
    pytest.param(f"echo '{'a' * 60_000}'", id="more than 60,000 characters"),
]


@pytest.mark.parametrize("command", LONG)
def test_asked_call_one_that_is_too_long_to_judge_asks_to_warn(command: str) -> None:
    (found,) = DangerDetector().asked_call(1, "Bash", msgspec.json.encode({"command": command}))
    assert (found.severity, found.active) == ("warn", True)
    assert found.why.endswith("is longer than what is judged of a call")


@pytest.mark.parametrize(
    "command", ["true; " * 450, "cat > notes <<EOF\n" + "a b\n" * 10_000 + "EOF\n", "ls " + "f " * 1_900]
)
def test_asked_call_a_long_one_within_the_bounds_is_judged(command: str) -> None:
    assert DangerDetector().asked_call(1, "Bash", msgspec.json.encode({"command": command})) == []


@pytest.mark.parametrize("padding", ["true; " * 400, "|" * 10_000, "E   assert 1 == 2\n" * 400])
def test_asked_call_what_nobody_wants_is_refused_behind_padding(padding: str) -> None:
    call = msgspec.json.encode({"command": f"{padding}\nrm -rf /"})
    assert [found.severity for found in DangerDetector().asked_call(1, "Bash", call)] == ["block"]
