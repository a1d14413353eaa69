"""Cascades across tools, failures that come back, and files that are changed unseen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.events import Message, ToolCall, ToolResult
from coherence.core.protocols import Rule
from coherence.policy.rules.failed_calls import ErrorCascade, RepeatedFailurePattern
from coherence.policy.rules.quality import BlindEdit
from coherence.state.reducer import AgentState

CALM = Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
DENIED = "PermissionError: access denied"


class Life:
    def __init__(self) -> None:
        self.state = AgentState()
        self.seq = 0

    def add(self, event: Message | ToolCall | ToolResult) -> Life:
        self.seq += 1
        self.state.fold(self.seq, float(self.seq), event)
        return self

    def did(self, tool: str, result: str = "ok", *, error: bool = False, **arguments: object) -> Life:
        self.add(ToolCall(tool, msgspec.Raw(msgspec.json.encode(arguments)), str(self.seq)))
        return self.add(ToolResult(result, error=error))

    def failed(self, tool: str, result: str = DENIED, **arguments: object) -> Life:
        return self.did(tool, result, error=True, **arguments)

    def asked(self) -> Life:
        return self.add(Message("user", "go on"))

    def seen_by(self, rule: Rule) -> Finding:
        finding = rule(self.state, None, CALM)
        assert finding is not None
        return finding


def cascade(tools: Sequence[str]) -> Finding:
    life = Life()
    for tool in tools:
        life.failed(tool)
    return life.seen_by(ErrorCascade())


def test_error_patterns_without_actions_none_applies() -> None:
    for rule in (ErrorCascade(), RepeatedFailurePattern(), BlindEdit()):
        assert rule(AgentState(), None, CALM) is None


def test_error_patterns_three_failures_of_two_tools_are_a_cascade() -> None:
    found = cascade(["Read", "Bash", "Read"])
    assert (found.active, found.severity, found.score, found.evidence) == (True, "guide", 0.5, (2, 4, 6))
    assert found.why == f'3 calls of 2 tools (Read, Bash) failed in a row, the last: "{DENIED}"'
    assert cascade("abcde").severity == "warn"
    assert "5 calls of 5 tools (a, b, c, …)" in cascade("abcde").why


def test_error_patterns_two_failures_or_one_tool_are_no_cascade() -> None:
    assert (cascade(["Read", "Bash"]).active, cascade(["Read", "Bash"]).score) == (False, 0.5 * 2 / 3)
    assert cascade(["Bash"] * 9).score == 0.0


def test_error_patterns_a_call_that_works_ends_a_cascade() -> None:
    life = Life().failed("a").failed("b").failed("c")
    assert life.seen_by(ErrorCascade()).active
    assert life.did("a").seen_by(ErrorCascade()).score == 0.0


def test_error_patterns_a_failure_comes_back_whatever_works_between() -> None:
    life = Life()
    for _ in range(3):
        life.failed("get_user", "error: no user 17", id=17).did("list_users", n=life.seq)
    nearly = life.failed("list_users", "error: busy").seen_by(RepeatedFailurePattern())
    assert (nearly.active, nearly.score) == (False, 0.5 / 4)  # the newest failure is of another kind
    found = life.failed("get_user", "error: no user 18", id=18).seen_by(RepeatedFailurePattern())
    assert (found.active, found.severity, found.score) == (True, "guide", 0.5)
    assert found.why == 'get_user returned the same error 4 times within 8 actions: "error: no user 18"'
    assert found.evidence == (2, 6, 10, 16)
    life.did("list_users")
    assert life.seen_by(RepeatedFailurePattern()).score == 0.0


def test_error_patterns_a_failure_in_three_of_the_last_turns_comes_back() -> None:
    life = Life()
    for _ in range(2):
        life.asked().failed("deploy", "error: no credentials").did("note")
    again = life.failed("deploy", "error: no credentials").seen_by(RepeatedFailurePattern())
    assert (again.active, again.score) == (False, 0.5 * 3 / 4)  # the third failure, in two turns
    life.asked().did("note")
    found = life.asked().failed("deploy", "error: no credentials").seen_by(RepeatedFailurePattern())
    assert found.active
    few = Life()
    for _ in range(3):
        few.asked().asked().failed("deploy", "error: no credentials")
    found = few.seen_by(RepeatedFailurePattern())
    assert (found.active, found.score, found.evidence) == (True, 0.5, (4, 8, 12))  # 3 turns; 3 failures alone: 0.375
    assert found.why == 'deploy returned the same error in 3 of the last 5 turns: "error: no credentials"'


def test_error_patterns_turns_long_ago_do_not_count() -> None:
    life = Life()
    for _ in range(4):
        life.asked().failed("deploy", "error: no credentials")
        for _ in range(12):
            life.asked().did("note")
    assert not life.asked().failed("deploy", "error: no credentials").seen_by(RepeatedFailurePattern()).active


def test_error_patterns_tests_that_fail_otherwise_each_time_are_work() -> None:
    life = Life()
    for failing in (12, 11, 9, 8, 5, 4, 2, 1):  # one number moves one way
        life.failed("pytest", f"FAILED: {failing} tests, 20 collected").did("Edit", file_path="a.py", old=failing)
        assert not life.state.facts.actions[-1].error
    assert life.failed("pytest", "FAILED: 0 tests, 20 collected").seen_by(RepeatedFailurePattern()).score == 0.5 / 4
    words = Life()
    for name in ("alpha", "beta", "gamma", "delta", "omega"):
        words.failed("pytest", f"FAILED test_{name}")
    assert words.seen_by(RepeatedFailurePattern()).score == 0.5 / 4


def test_error_patterns_tests_that_go_on_failing_alike_are_found_in_spite_of_edits() -> None:
    life = Life()
    for edit, failing in enumerate((12, 11, 12, 12)):  # to and fro
        life.did("Edit", file_path="a.py", old=edit).failed("pytest", f"FAILED: {failing} tests")
    assert life.seen_by(RepeatedFailurePattern()).active


def test_error_patterns_an_error_without_words_counts_for_the_same_call_only() -> None:
    other, same = Life(), Life()
    for number in range(6):
        other.failed("bash", "<returncode>2</returncode>\n<output>\n</output>", command=f"grep x{number} a.py")
        same.failed("bash", "<returncode>2</returncode>\n<output>\n</output>", command="grep x a.py")
    assert other.seen_by(RepeatedFailurePattern()).score == 0.5 / 4
    assert same.seen_by(RepeatedFailurePattern()).active


def after(count: int, error: str, *, different: int = 1, between: bool = False) -> str:
    """Return what is asked for after so many failures, of so many different calls, with a call that works between."""
    life = Life()
    for number in range(count):
        if between and number == count - 1:
            life.did("note")
        life.failed("get_user", error.format(number * 7 % 5), id=number % different)
    return life.seen_by(RepeatedFailurePattern()).severity


def test_error_patterns_it_blocks_where_ten_in_a_row_fail_alike() -> None:
    assert [after(count, DENIED) for count in (5, 6, 9, 10)] == ["guide", "warn", "warn", "block"]
    assert after(10, DENIED, different=5) == "block"


def test_error_patterns_it_does_not_block_where_anything_else_is_tried_or_a_service_is_to_blame() -> None:
    assert after(10, DENIED, different=6) == "warn"
    assert after(12, DENIED, between=True) == "warn"
    assert after(12, "error: no user {}") == "warn"  # a number moves to and fro
    for outage in ("429 Too Many Requests", "error: connection refused", "HTTP 503 from upstream", "ReadTimeout"):
        assert after(12, outage) == "warn", outage


def blind(*names: str) -> Finding:
    life = Life()
    for name in names:
        life.did("Edit", file_path=name, old_string="a", new_string="b")
    return life.seen_by(BlindEdit())


def test_error_patterns_an_edit_of_a_file_never_read_is_blind() -> None:
    found = blind("/src/app.py")
    assert (found.active, found.severity, found.score, found.evidence) == (True, "guide", 0.5, (2,))
    assert found.why == "Edit changed /src/app.py, which was not read before"
    more = blind("/a", "/b", "/c")
    assert (more.severity, more.score, more.evidence) == ("warn", 1.0, (2, 4, 6))
    assert more.why.endswith("; 3 files were changed so within 3 actions")
    assert blind("/a", "/b").score == 0.75


def test_an_edit_after_a_look_a_failed_one_and_the_next_action_are_not_blind() -> None:
    read = Life().did("Read", "text", file_path="/a").did("Edit", file_path="/a", old_string="t", new_string="u")
    assert read.seen_by(BlindEdit()).score == 0.0
    assert Life().failed("Edit", file_path="/a", old_string="t").seen_by(BlindEdit()).score == 0.0
    assert Life().did("Write", file_path="/new.py", content="x").seen_by(BlindEdit()).score == 0.0
    after = Life().did("Edit", file_path="/a", old_string="t").did("Read", "text", file_path="/a")
    assert after.seen_by(BlindEdit()).score == 0.0


@pytest.mark.parametrize("path", ["/tmp/\x1b[31mred\u202e.py", "/" + "a" * 900 + ".py", "/\ud800.py"])
def test_error_patterns_a_hostile_path_stands_harmlessly_in_a_sentence(path: str) -> None:
    life = Life()
    life.did("Edit", file_path="/x", old_string="t")
    life.state.facts.actions[-1].blind = path
    why = life.seen_by(BlindEdit()).why
    assert len(why) < 260 and why.isprintable()
