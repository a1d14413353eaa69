"""Failing shell commands: the same one again, and one after another."""

from __future__ import annotations

import msgspec
import pytest

from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.events import Message, ToolCall, ToolResult
from coherence.policy.rules.failed_calls import BashErrorStreak, BashRetry
from coherence.state.reducer import AgentState

CALM = Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
NO_YAML = "ModuleNotFoundError: No module named 'yaml'"


class Life:
    """Calls and results with event numbers: a call 1, 3, 5, …, its result 2, 4, 6, …"""

    def __init__(self) -> None:
        self.state = AgentState()
        self.seq = 0

    def add(self, event: Message | ToolCall | ToolResult) -> None:
        self.seq += 1
        self.state.fold(self.seq, float(self.seq), event)

    def did(self, tool: str, arguments: object, result: str, *, error: bool = False) -> Life:
        self.add(ToolCall(tool, msgspec.Raw(msgspec.json.encode(arguments)), str(self.seq)))
        self.add(ToolResult(result, error=error))
        return self

    def failed(self, command: str, error: str = NO_YAML) -> Life:
        return self.did("Bash", {"command": command}, error, error=True)

    def worked(self, command: str) -> Life:
        return self.did("Bash", {"command": command}, "ok")

    def retry(self) -> Finding:
        finding = BashRetry()(self.state, None, CALM)
        assert finding is not None
        return finding

    def streak(self) -> Finding:
        finding = BashErrorStreak()(self.state, None, CALM)
        assert finding is not None
        return finding


def test_shell_without_actions_neither_applies() -> None:
    assert BashRetry()(AgentState(), None, CALM) is None
    assert BashErrorStreak()(AgentState(), None, CALM) is None


def test_shell_the_first_retry_that_fails_guides_and_the_second_warns() -> None:
    life = Life().failed("pytest -q")
    once = life.retry()
    assert (once.active, once.score, once.why) == (False, 0.25, f'Bash failed once with this command: "{NO_YAML}"')
    twice = life.failed("pytest -q").retry()
    assert (twice.active, twice.severity, twice.score) == (True, "guide", 0.5)  # 2 of 2 tries
    assert twice.why == f'Bash returned the same error 2 times for the same command: "{NO_YAML}"'
    assert twice.evidence == (2, 4)
    thrice = life.failed("pytest -q").retry()
    assert (thrice.severity, thrice.score) == ("warn", 0.75)


def test_shell_a_command_that_differs_only_in_an_id_is_the_same_one() -> None:
    one, two = "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
    assert Life().failed(f"fetch {one}").failed(f"fetch {two}").retry().active
    assert not Life().failed("fetch 7").failed("fetch 8").retry().active  # a number is meant


def test_shell_errors_that_differ_are_told_so() -> None:
    life = Life().failed("make", "error: a is missing").failed("make", "error: the disk is full")
    assert life.retry().why == 'Bash failed 2 times with the same command, the last: "error: the disk is full"'


@pytest.mark.parametrize(
    "between",
    [
        lambda life: life.did("Edit", {"file_path": "a.py"}, "ok"),
        lambda life: life.worked("pip install pyyaml"),
        lambda life: life.add(Message("user", "try again, it should work now")),
        lambda life: life.failed("pytest -q", "429 Too Many Requests, retry after 20 s"),
    ],
)
def test_shell_what_may_have_changed_something_ends_the_count(between: object) -> None:
    life = Life().failed("pytest -q")
    assert callable(between)
    between(life)
    found = life.failed("pytest -q").retry()
    assert (found.active, found.score) == (False, 0.25)


def test_shell_a_look_between_does_not_end_the_count() -> None:
    life = Life().failed("pytest -q").did("Read", {"file_path": "a.py"}, "import yaml").failed("ls x", "No such file")
    assert life.failed("pytest -q").retry().evidence == (2, 8)


def test_shell_waiting_and_rate_limits_are_no_retries() -> None:
    waiting = Life().failed("sleep 5; curl localhost", "curl: (7) refused").failed("sleep 5; curl localhost", "(7)")
    limited = Life().failed("gh pr list", "API rate limit exceeded").failed("gh pr list", "API rate limit exceeded")
    assert waiting.retry().score == limited.retry().score == 0.0


def test_shell_a_failing_call_of_another_tool_is_none_of_the_shells() -> None:
    life = Life().did("Read", {"file_path": "a"}, NO_YAML, error=True).did("Read", {"file_path": "a"}, "x", error=True)
    assert life.retry().score == life.streak().score == 0.0


def test_shell_both_are_quiet_again_once_a_command_works() -> None:
    life = Life().failed("make").failed("make").failed("make")
    assert life.retry().active and life.streak().active
    life.worked("make")
    for found in (life.retry(), life.streak()):
        assert (found.active, found.score, found.why, found.evidence) == (False, 0.0, "", ())


def test_shell_three_failing_commands_in_a_row_guide_and_five_warn() -> None:
    life = Life().failed("a").failed("b")
    assert (life.streak().active, life.streak().score) == (False, 0.5 * 2 / 3)
    life.failed("c")
    assert (life.streak().active, life.streak().severity, life.streak().score) == (True, "guide", 0.5)
    assert life.streak().why == f'Bash returned the same error 3 times in a row: "{NO_YAML}"'
    assert life.failed("d").streak().severity == "guide"
    assert life.failed("e").streak().severity == "warn"
    assert life.streak().evidence == (2, 4, 6, 8, 10)
    assert len(life.failed("f").failed("g").failed("h").failed("i").streak().evidence) == 8  # of 9


def test_shell_any_other_action_ends_a_streak() -> None:
    life = Life().failed("a").failed("b").did("Read", {"file_path": "a.py"}, "text").failed("c")
    assert life.streak().score == 0.5 / 3
    life = Life().failed("a").failed("b").did("Read", {"file_path": "a.py"}, "gone", error=True).failed("c")
    assert not life.streak().active


def test_shell_a_streak_of_other_errors_names_the_last() -> None:
    life = Life().failed("a", "error: one").failed("b", "error: two").failed("c", "error: two")
    assert life.streak().why == 'Bash failed 3 times in a row, with 2 different errors, the last: "error: two"'
    silent = Life().failed("a", "").failed("b", "").failed("c", "")
    assert silent.streak().why == "Bash returned the same error 3 times in a row"


def test_events_of_an_earlier_session_are_no_evidence() -> None:
    life = Life().failed("make").failed("make")
    for action in life.state.facts.actions:
        action.seq = 0
    assert life.failed("make").retry().evidence == (6,)
