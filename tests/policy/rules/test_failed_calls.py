"""Failing calls: shell commands again, one after another, across tools, and those that come back; and blind edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.events import Message, ToolCall, ToolResult
from coherence.core.protocols import Rule
from coherence.policy.rules.failed_calls import BashErrorStreak, BashRetry, ErrorCascade, RepeatedFailurePattern
from coherence.policy.rules.quality import BlindEdit
from coherence.state.reducer import AgentState

CALM = Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
DENIED = "PermissionError: access denied"
RETRY, STREAK, CASCADE, COMES_BACK, BLIND = (
    *(BashRetry(), BashErrorStreak(), ErrorCascade(), RepeatedFailurePattern()),
    BlindEdit(),
)


class Life:
    """Calls and results with event numbers: a call 1, 3, 5, …, its result 2, 4, 6, …"""

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

    def ran(self, command: str) -> Life:
        return self.did("Bash", command=command)

    def broke(self, *commands: str, error: str = DENIED) -> Life:
        """Run shell commands that fail."""
        for command in commands:
            self.failed("Bash", error, command=command)
        return self

    def asked(self) -> Life:
        return self.add(Message("user", "go on"))

    def seen(self, rule: Rule) -> Finding:
        finding = rule(self.state, None, CALM)
        assert finding is not None
        return finding


@pytest.mark.parametrize("rule", [RETRY, STREAK, CASCADE, COMES_BACK, BLIND], ids=lambda rule: rule.name)
def test_rules_of_calls_do_not_apply_before_the_first_and_are_quiet_after_one_that_works(rule: Rule) -> None:
    assert rule(AgentState(), None, CALM) is None
    found = Life().failed("a").failed("b").broke("make", "make", "make").ran("make").seen(rule)
    assert (found.active, found.score, found.why, found.evidence) == (False, 0.0, "", ())


@pytest.mark.parametrize(
    ("rule", "tools", "stages"),
    [  # active at half of the score, which is 1 at twice as many
        (
            RETRY,
            ["Bash"] * 4,
            [(False, "guide", 0.25), (True, "guide", 0.5), (True, "warn", 0.75), (True, "warn", 1.0)],
        ),
        (STREAK, ["Bash"] * 3, [(False, "guide", 0.5 / 3), (False, "guide", 1 / 3), (True, "guide", 0.5)]),
        (CASCADE, "aba", [(False, "guide", 0.0), (False, "guide", 1 / 3), (True, "guide", 0.5)]),
        (COMES_BACK, "aaaa", [(False, "guide", at / 8) for at in (1, 2, 3)] + [(True, "guide", 0.5)]),
    ],
    ids=lambda case: getattr(case, "name", ""),
)
def test_rules_of_failed_calls_rise_with_each_failure(
    rule: Rule, tools: str | list[str], stages: list[tuple[bool, str, object]]
) -> None:
    life = Life()
    found: list[tuple[bool, str, object]] = []
    for tool in tools:
        seen = life.failed(tool, command="pytest -q").seen(rule)
        found.append((seen.active, seen.severity, pytest.approx(seen.score)))
        assert seen.score == 0.0 or seen.evidence == tuple(range(2, life.seq + 1, 2))
    assert found == stages


@pytest.mark.parametrize(
    ("rule", "life", "why"),
    [
        (RETRY, lambda: Life().broke("a"), f'Bash failed once with this command: "{DENIED}"'),
        (
            RETRY,
            lambda: Life().broke("a", "a"),
            f'Bash returned the same error 2 times for the same command: "{DENIED}"',
        ),
        (
            RETRY,
            lambda: Life().broke("make", error="error: a is missing").broke("make", error="error: the disk is full"),
            'Bash failed 2 times with the same command, the last: "error: the disk is full"',
        ),
        (STREAK, lambda: Life().broke("a", "b", "c"), f'Bash returned the same error 3 times in a row: "{DENIED}"'),
        (
            STREAK,
            lambda: Life().broke("a", error="error: one").broke("b", "c", error="error: two"),
            'Bash failed 3 times in a row, with 2 different errors, the last: "error: two"',
        ),
        (STREAK, lambda: Life().broke("a", "b", "c", error=""), "Bash returned the same error 3 times in a row"),
        (
            CASCADE,
            lambda: Life().failed("a").failed("b").failed("c").failed("d").failed("e"),
            f'5 calls of 5 tools (a, b, c, …) failed in a row, the last: "{DENIED}"',
        ),
        (
            COMES_BACK,
            lambda: Life().failed("get_user").did("list").failed("get_user"),
            f'get_user returned the same error 2 times within 3 actions: "{DENIED}"',
        ),
        (
            COMES_BACK,
            lambda: Life().asked().asked().failed("a").asked().asked().failed("a").asked().asked().failed("a"),
            f'a returned the same error in 3 of the last 5 turns: "{DENIED}"',
        ),
    ],
)
def test_rules_of_failed_calls_say_what_failed_and_how(rule: Rule, life: Callable[[], Life], why: str) -> None:
    assert life().seen(rule).why == why


ONE, TWO = "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "7c9e6679-7425-40de-944b-e07fc1f90ae7"


@pytest.mark.parametrize(
    ("life", "tries"),
    [
        (lambda life: life.did("Edit", file_path="a.py"), 1),
        (lambda life: life.ran("pip install pyyaml"), 1),
        (lambda life: life.asked(), 1),
        (lambda life: life.broke("pytest", error="429 Too Many Requests, retry after 20 s"), 1),
        (lambda life: life.did("Read", "import yaml", file_path="a.py").broke("ls x", error="No such file"), 2),
    ],
)
def test_bash_retry_what_may_have_changed_something_ends_the_count(life: Callable[[Life], Life], tries: int) -> None:
    assert life(Life().broke("pytest")).broke("pytest").seen(RETRY).score == tries / 4


def test_bash_retry_counts_a_command_that_differs_in_an_id_and_no_other_waiting_or_limited_one() -> None:
    assert Life().broke(f"fetch {ONE}", f"fetch {TWO}").seen(RETRY).active
    assert not Life().broke("fetch 7", "fetch 8").seen(RETRY).active  # a number is meant
    assert Life().broke("sleep 5; curl a", "sleep 5; curl a").seen(RETRY).score == 0.0
    assert Life().broke("gh pr", "gh pr", error="API rate limit exceeded").seen(RETRY).score == 0.0
    assert Life().failed("Read", file_path="a").failed("Read", file_path="a").seen(RETRY).score == 0.0


def test_bash_error_streak_ends_with_any_other_action() -> None:
    assert Life().broke("a", "b").did("Read", file_path="a.py").broke("c").seen(STREAK).score == 0.5 / 3
    assert not Life().broke("a", "b").failed("Read", file_path="a.py").broke("c").seen(STREAK).active
    assert Life().broke(*"abcde").seen(STREAK).severity == "warn"
    assert len(Life().broke(*"abcdefghi").seen(STREAK).evidence) == 8  # of 9


def test_error_cascade_failures_of_one_tool_are_none() -> None:
    assert Life().broke(*"abcdefghi").seen(CASCADE).score == 0.0


def test_repeated_failure_pattern_a_failure_comes_back_whatever_works_between() -> None:
    life = Life()
    for _ in range(3):
        life.failed("get_user", "error: no user 17", id=17).did("list_users", n=life.seq)
    assert life.failed("list_users", "error: busy").seen(COMES_BACK).score == 0.5 / 4  # of another kind
    found = life.failed("get_user", "error: no user 18", id=18).seen(COMES_BACK)
    assert (found.active, found.severity, found.score, found.evidence) == (True, "guide", 0.5, (2, 6, 10, 16))


def test_repeated_failure_pattern_counts_the_last_eight_turns() -> None:
    life = Life()
    for _ in range(2):
        life.asked().failed("deploy").did("note")
    again = life.failed("deploy").seen(COMES_BACK)
    assert (again.active, again.score) == (False, 0.5 * 3 / 4)  # the third failure, in two turns
    assert life.asked().did("note").asked().failed("deploy").seen(COMES_BACK).active
    long_ago = Life()
    for _ in range(4):
        long_ago.asked().failed("deploy")
        for _ in range(12):
            long_ago.asked().did("note")
    assert not long_ago.asked().failed("deploy").seen(COMES_BACK).active


@pytest.mark.parametrize(
    ("errors", "active"),
    [
        ([f"FAILED: {failing} tests, 20 collected" for failing in (12, 11, 9, 8, 5, 4, 2, 1, 0)], False),  # progress
        ([f"FAILED: {failing} tests" for failing in (12, 11, 12, 12)], True),  # to and fro
        ([f"FAILED test_{name}" for name in ("alpha", "beta", "gamma", "delta", "omega")], False),
    ],
)
def test_repeated_failure_pattern_tests_that_fail_otherwise_each_time_are_work(errors: list[str], active: bool) -> None:
    life = Life()
    for at, error in enumerate(errors):
        life.did("Edit", file_path="a.py", old=at).failed("pytest", error)
    assert life.seen(COMES_BACK).active is active


def test_repeated_failure_pattern_an_error_without_words_counts_for_the_same_call_only() -> None:
    silent = "<returncode>2</returncode>\n<output>\n</output>"
    other, same = Life(), Life()
    for number in range(6):
        other.broke(f"grep x{number} a.py", error=silent)
        same.broke("grep x a.py", error=silent)
    assert other.seen(COMES_BACK).score == 0.5 / 4
    assert same.seen(COMES_BACK).active


@pytest.mark.parametrize(
    ("count", "error", "calls", "severity"),
    [
        (5, DENIED, 1, "guide"),
        (6, DENIED, 1, "warn"),
        (9, DENIED, 1, "warn"),
        (10, DENIED, 1, "block"),
        (10, DENIED, 5, "block"),
        (10, DENIED, 6, "warn"),  # something else is tried
        (12, "error: no user {}", 1, "warn"),  # a number moves to and fro
        *((12, outage, 1, "warn") for outage in ("429 Too Many Requests", "error: connection refused", "HTTP 503")),
    ],
)
def test_repeated_failure_pattern_blocks_ten_in_a_row_unless_a_service_is_to_blame(
    count: int, error: str, calls: int, severity: str
) -> None:
    life = Life()
    for number in range(count):
        life.failed("get_user", error.format(number * 7 % 5), id=number % calls)
    assert life.seen(COMES_BACK).severity == severity
    assert life.did("note").failed("get_user", error.format(0), id=0).seen(COMES_BACK).severity != "block"


@pytest.mark.parametrize(
    ("files", "severity", "score", "why"),
    [
        (["/src/app.py"], "guide", 0.5, "Edit changed /src/app.py, which was not read before"),
        (["/a", "/b"], "guide", 0.75, "read before; 2 files were changed so within 2 actions"),
        (["/a", "/b", "/c"], "warn", 1.0, "read before; 3 files were changed so within 3 actions"),
    ],
)
def test_blind_edit_of_a_file_never_read(files: list[str], severity: str, score: float, why: str) -> None:
    life = Life()
    for name in files:
        life.did("Edit", file_path=name, old_string="a", new_string="b")
    found = life.seen(BLIND)
    assert (found.severity, found.score, found.evidence) == (severity, score, tuple(range(2, life.seq + 1, 2)))
    assert found.why.endswith(why)


def test_blind_edit_is_none_after_a_look_where_it_failed_and_with_the_next_action() -> None:
    edit: dict[str, Any] = {"file_path": "/a", "old_string": "t", "new_string": "u"}
    assert Life().did("Read", "text", file_path="/a").did("Edit", **edit).seen(BLIND).score == 0.0
    assert Life().failed("Edit", **edit).seen(BLIND).score == 0.0
    assert Life().did("Write", file_path="/new.py", content="x").seen(BLIND).score == 0.0
    assert Life().did("Edit", **edit).did("Read", "text", file_path="/a").seen(BLIND).score == 0.0


@pytest.mark.parametrize("path", ["/tmp/\x1b[31mred\u202e.py", "/" + "a" * 900 + ".py", "/\ud800.py"])
def test_blind_edit_a_hostile_path_stands_harmlessly_in_a_sentence(path: str) -> None:
    life = Life().did("Edit", file_path="/x", old_string="t")
    life.state.facts.actions[-1].blind = path
    why = life.seen(BLIND).why
    assert len(why) < 260 and why.isprintable()


def test_found_events_of_an_earlier_session_are_no_evidence() -> None:
    life = Life().broke("make", "make")
    for action in life.state.facts.actions:
        action.seq = 0
    assert life.broke("make").seen(RETRY).evidence == (6,)
