"""Loops: what is one, from when, and how much it may ask for."""

import json
import pickle
from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.events import Compaction, Message, ToolCall, ToolResult
from coherence.detect.fingerprints import CallTrace, ResultTrace, trace_call, trace_result
from coherence.policy.rules.loops import Loop, RepeatedToolCallLoop, find_loop, steps_of
from coherence.state.reducer import AgentState

RULE = RepeatedToolCallLoop()
CALM = Appraisal(seq=1, pressure=0.0, mode=Mode.OBSERVE)
ASKED = count(1)


class Step(NamedTuple):
    """A call and its result, as the rule is shown them."""

    seq: int
    tool: str
    made: CallTrace
    came: ResultTrace | None
    ts: float = 0.0
    duration_s: float | None = None
    compacted: bool = False


def step(tool: str, arguments: object, result: str | None = "", error: bool = False, **more: object) -> Step:
    """Return one step; ``result=None`` = none came."""
    came = None if result is None else trace_result(result, error=error)
    return Step(next(ASKED), tool, trace_call(tool, json.dumps(arguments).encode()), came, **more)  # type: ignore[arg-type]


def bash(command: str, result: str | None = "ok", **more: object) -> Step:
    return step("Bash", {"command": command}, result, **more)  # type: ignore[arg-type]


def asked(steps: list[Step]) -> str:
    """Return what the rule asks for after the last step; continue where it is not active."""
    loop = find_loop(steps[-30:])
    return RULE.severity(loop) if loop is not None and RULE.is_active(loop) else "continue"


def worst(steps: list[Step]) -> str:
    """Return the most severe that the rule asks for at any step."""
    order = ["continue", "guide", "warn", "block"]
    return max((asked(steps[:end]) for end in range(1, len(steps) + 1)), key=order.index)


def amounts(steps: list[Step]) -> list[float]:
    """Return the amount after each step, 0 = no loop."""
    loops = [find_loop(steps[max(0, end - 30) : end]) for end in range(1, len(steps) + 1)]
    return [0.0 if loop is None else loop.amount for loop in loops]


# What is a loop


def test_find_loop_one_call_is_a_loop_at_the_third_and_rises_to_a_block() -> None:
    steps = [bash("ls", "a.py\nb.py") for _ in range(10)]
    assert amounts(steps)[:5] == [0, 0, 3, 4, 5]
    # guide from 5, warn from 7, block from 9
    stages = ["continue"] * 4 + ["guide"] * 2 + ["warn"] * 2 + ["block"] * 2
    assert [asked(steps[:end]) for end in range(1, 11)] == stages


@pytest.mark.parametrize(
    ("period", "guide", "block"),
    # n / p + min(p, 3) - 1 reaches 5 and 9 at: p = 2: 8, 16; p = 3: 9, 21; p = 4: 12, 28
    [(2, 8, 16), (3, 9, 21), (4, 12, 28)],
)
def test_find_loop_a_cycle_rises_likewise(period: int, guide: int, block: int) -> None:
    steps = [step("Read", {"file_path": f"/src/{at % period}.py"}, f"text {at % period}") for at in range(30)]
    assert asked(steps[: guide - 1]) == "continue"
    assert asked(steps[:guide]) == "guide"
    assert asked(steps[: block - 1]) == "warn"
    assert asked(steps[:block]) == "block"
    loop = find_loop(steps)
    assert loop is not None
    assert loop.period == period


def test_is_active_a_period_of_six_is_none() -> None:
    assert worst([bash(f"cat {at % 6}.py", str(at % 6)) for at in range(30)]) == "continue"


def test_is_active_ids_that_change_do_not_hide_a_loop() -> None:
    steps = [
        step("fetch", {"id": str(UUID(int=at + 2**90)), "at": f"2026-01-02T03:04:{at:02}Z"}, "not there")
        for at in range(10)
    ]
    assert asked(steps[:6]) == "guide"
    assert asked(steps) == "block"


@pytest.mark.parametrize("name", [{"description": "try {}"}, {"title": "try {}"}, {"explanation": "because {}"}])
def test_is_active_a_display_name_that_changes_does_not_hide_a_loop(name: dict[str, str]) -> None:
    steps = [step("noop", {key: text.format(at) for key, text in name.items()}, "done") for at in range(10)]
    assert asked(steps) == "block"


def test_is_active_numbers_and_file_names_in_arguments_are_other_calls() -> None:
    assert worst([step("get_item", {"id": at}, "not there") for at in range(30)]) == "continue"
    assert worst([step("Read", {"file_path": f"/src/f{at}.py"}, "") for at in range(30)]) == "continue"


def test_is_active_timings_ids_and_times_in_results_do_not_hide_a_loop() -> None:
    steps = [
        bash(
            "pytest", f"3 failed in {at / 7:.2f}s at 2026-01-02 03:04:{at:02} (0x7f{at:04x}ab, {UUID(int=2**90 + at)})"
        )
        for at in range(10)
    ]
    assert asked(steps) == "block"


def test_is_active_white_space_and_the_order_of_keys_do_not_hide_a_loop() -> None:
    made = [
        {"command": "ls  -la", "cwd": "/a"},
        {"cwd": "/a", "command": "ls -la"},
        {"cwd": "/a", "command": "ls   -la"},
    ]
    assert asked([step("Bash", made[at % 3], "a.py") for at in range(9)]) == "block"


# What is progress


def test_is_active_other_results_are_progress() -> None:
    words = "ant bee cat dog elk fox gnu hen ibis jay".split()
    assert worst([step("next_mail", {}, word) for word in words]) == "continue"


def test_is_active_a_count_that_falls_is_progress_until_it_stands_still() -> None:
    steps = [bash("pytest", f"{left} failing, 3 passed") for left in range(20, 5, -1)]
    assert worst(steps) == "continue"
    still = [bash("pytest", "6 failing, 3 passed") for _ in range(4)]
    # With the last of the falling ones, which had 6 too, the fourth makes 5.
    assert [asked(steps + still[:end]) for end in (3, 4)] == ["continue", "guide"]


def test_is_active_a_number_of_attempts_that_rises_is_none() -> None:
    assert asked([bash("make", f"attempt {at}: failed") for at in range(9)]) == "block"


def test_find_loop_a_count_that_goes_back_and_forth_is_none_but_never_blocks() -> None:
    lefts = [12, 11, 13, 12, 14, 11, 13, 11, 12, 14, 12, 13]
    steps = [bash("pytest", f"{left} failing") for left in lefts]
    assert worst(steps) == "warn"
    loop = find_loop(steps)
    assert loop is not None
    assert not loop.still


def test_is_active_results_that_alternate_are_a_cycle() -> None:
    steps = [bash("toggle", "on" if at % 2 else "off") for at in range(16)]
    assert asked(steps[:8]) == "guide"
    assert asked(steps) == "block"


def test_is_active_a_number_in_the_middle_of_a_long_result_counts() -> None:
    rows = [" ".join(str(at if column == 9 else column) for column in range(20)) for at in range(10)]
    assert worst([bash("stats", row) for row in rows]) == "continue"


def test_is_active_fixing_and_testing_is_healthy() -> None:
    steps = []
    for at in range(12):
        steps.append(step("Edit", {"file_path": "a.py", "old_string": f"x{at}", "new_string": f"y{at}"}, "edited"))
        steps.append(bash("pytest", "2 failed"))
    assert worst(steps) == "continue"


def test_is_active_git_status_now_and_then_is_healthy() -> None:
    steps = []
    for at in range(12):
        steps += [bash(f"cat {at}.py", f"text {at}"), bash(f"make {at}"), bash("git status", "clean")]
    assert worst(steps) == "continue"


def test_is_active_six_times_ls_is_guided_and_not_blocked() -> None:
    assert worst([bash("ls", "a.py") for _ in range(6)]) == "guide"


# Noise


def test_is_active_one_unrelated_call_in_five_is_passed_over() -> None:
    steps = []
    for at in range(6):
        steps += [bash("make", "failed"), bash("make", "failed"), bash("make", "failed"), bash("make", "failed")]
        steps.append(bash(f"echo {at}", str(at)))
    assert asked(steps[:4]) == "continue"
    assert asked(steps[:-1]) == "block"


def test_is_active_two_in_five_are_not() -> None:
    steps = []
    for at in range(6):
        steps += [bash("make", "failed"), bash("make", "failed"), bash("make", "failed")]
        steps += [bash(f"echo {at}", str(at)), bash(f"cat {at}", f"text {at}")]
    assert worst(steps) == "continue"


def test_is_active_a_write_is_no_noise() -> None:
    steps = [bash("make", "failed") for _ in range(4)]
    steps.append(step("Write", {"file_path": "a.py", "content": "x"}, "written"))
    steps += [bash("make", "failed") for _ in range(4)]
    assert asked(steps) == "continue"


def test_is_active_the_same_call_with_another_result_is_no_noise() -> None:
    steps = [bash("make", "failed") for _ in range(4)] + [bash("make", "built")] + [bash("make", "failed")] * 4
    assert asked(steps) == "continue"


# Unknown results


def test_is_active_calls_without_results_are_guided_and_never_blocked() -> None:
    steps = [bash("ls", None) for _ in range(30)]
    assert asked(steps[:5]) == "guide"
    assert worst(steps) == "warn"


def test_is_active_the_newest_call_may_still_be_running() -> None:
    steps = [bash("ls", "a.py") for _ in range(9)] + [bash("ls", None)]
    assert asked(steps) == "block"


def test_is_active_a_call_without_a_result_hides_no_change_and_no_noise() -> None:
    changed = [*[bash("ls", "b.py")] * 4, bash("ls", None), bash("ls", "a.py"), bash("ls", None)]
    assert asked(changed) == "continue"
    unsure = [*[bash("ls", None)] * 4, bash("pwd", "/"), *[bash("ls", None)] * 4]
    assert asked(unsure) == "continue"
    assert asked([*[bash("ls", "")] * 4, bash("pwd", "/"), *[bash("ls", "")] * 4]) == "warn"


def test_find_loop_a_compaction_takes_one_off() -> None:
    steps = [bash("ls", compacted=at == 2) for at in range(9)]
    assert amounts(steps)[-1] == 8
    # Where it lies before the first of the calls, it is none of theirs.
    assert amounts([bash("ls", compacted=at == 0) for at in range(9)])[-1] == 9


# Known shapes


SHAPES: dict[str, Callable[[int], Step]] = {
    "sleep and status": lambda at: bash("sleep 10; systemctl status web", "starting"),
    "a job's status": lambda at: step("get_job_status", {"id": 7}, "running"),
    "polling by action": lambda at: step("process", {"action": "poll", "id": "p1"}, "running"),
    "empty commands": lambda at: step("execute_bash", {"command": ""}, ""),
    "rate limit": lambda at: step("ask", {"q": "x"}, "429 Too Many Requests", error=True),
    "every five minutes": lambda at: bash("kubectl get pods", "pending", ts=300.0 * at),
    "six seconds apart": lambda at: bash("kubectl get pods", "pending", ts=7.0 * at, duration_s=1.0),
    "after each compaction": lambda at: step("Read", {"file_path": "/plan.md"}, "plan", compacted=at % 3 == 0),
    "four pages again and again": lambda at: step("list", {"page": at % 4}, "abcd"[at % 4]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_is_active_known_shapes_bring_a_warning_at_most(name: str) -> None:
    steps = [SHAPES[name](at) for at in range(40)]
    assert worst(steps) in ("continue", "guide", "warn")
    assert worst(steps[:4]) == "continue"


@pytest.mark.parametrize("name", ["sleep and status", "a job's status", "empty commands", "rate limit"])
def test_is_active_waiting_has_twice_the_time(name: str) -> None:
    steps = [SHAPES[name](at) for at in range(10)]
    assert asked(steps[:9]) == "continue"
    assert asked(steps) == "guide"


def test_is_active_near_misses_of_known_shapes_block() -> None:
    assert asked([bash("git status", "clean") for _ in range(9)]) == "block"
    assert asked([bash("kubectl get pods", "No resources", ts=4.0 * at) for at in range(9)]) == "block"
    # Six seconds apart, of which the call itself takes five: nobody waits.
    assert asked([bash("npm test", "failed", ts=6.0 * at, duration_s=5.0) for at in range(9)]) == "block"
    assert asked([step("Read", {"path": "/a", "limit": 50}, "text") for _ in range(9)]) == "block"


def test_is_active_unfinished_work_gauges_and_calls_without_arguments_are_no_loop() -> None:
    assert asked([bash("kubectl get pods", "pending") for _ in range(9)]) == "continue"
    assert asked([step("read_sensor", {}, "21.5 °C") for _ in range(9)]) == "continue"
    assert asked([step("Edit", {"text": ""}, "The file was updated.") for _ in range(20)]) == "continue"


def test_is_active_pages_and_rereads_are_quiet() -> None:
    assert worst([step("list", {"page": at}, "an item") for at in range(30)]) == "continue"
    assert worst([step("Read", {"file_path": "/plan.md"}, "plan", compacted=True) for _ in range(30)]) == "continue"


# As a rule


def lived(events: Sequence[object]) -> Finding | None:
    state = AgentState()
    for seq, event in enumerate(events, 1):
        state.fold(seq, 0.0, event)  # type: ignore[arg-type]
    return RULE(state, None, CALM)


def call(at: int, command: str) -> ToolCall:
    return ToolCall("Bash", Raw(json.dumps({"command": command}).encode()), str(at))


def test_severity_the_finding_names_tool_count_and_events_across_turns() -> None:
    events: list[object] = []
    for at in range(6):
        events += [Message("user", f"again {at}"), Message("assistant", f"thought {at}"), call(at, "ls")]
        events.append(ToolResult("a.py", call_id=str(at)))
    finding = lived(events)
    assert finding is not None
    assert (finding.rule, finding.severity, finding.active) == ("repeated_tool_call_loop", "guide", True)
    assert (finding.score, finding.threshold) == (0.6, 0.5)  # 6 of 5 at half
    assert finding.evidence == (4, 8, 12, 16, 20, 24)
    assert finding.why == "Bash was called 6 times with the same arguments and the same result"
    assert finding.action


def test_severity_below_the_threshold_it_is_told_and_not_active() -> None:
    events = [event for at in range(3) for event in (call(at, "ls"), ToolResult("a.py", call_id=str(at)))]
    finding = lived(events)
    assert finding is not None
    assert (finding.severity, finding.active, finding.score) == ("guide", False, 0.3)  # 3 of 5 at half
    assert lived(events[:4]) is None
    assert lived([]) is None


def test_severity_a_host_that_reports_calls_only_is_guided() -> None:
    finding = lived([call(at, "ls") for at in range(9)])
    assert finding is not None
    assert (finding.severity, finding.active) == ("warn", True)
    assert finding.why.endswith("the same arguments and no result yet")


def test_severity_a_known_shape_is_named() -> None:
    events = [event for at in range(20) for event in (call(at, "sleep 5"), ToolResult("", call_id=str(at)))]
    finding = lived(events)
    assert finding is not None
    assert finding.severity == "warn"
    assert finding.why.endswith("it waits for something")
    assert lived([*events[:20], Compaction("summary"), *events[20:]]) is not None


def test_steps_of_a_cycle_names_its_tools() -> None:
    steps = [step("Read" if at % 2 else "Grep", {"path": "a"}, "text") for at in range(8)]
    state = AgentState()
    for at in range(8):
        state.fold(2 * at + 1, 0.0, ToolCall(steps[at].tool, Raw(b'{"path": "a"}'), str(at)))
        state.fold(2 * at + 2, 0.0, ToolResult("text", call_id=str(at)))
    finding = RULE(state, None, CALM)
    assert finding is not None
    assert finding.why.startswith("the same 2 calls of Grep, Read came in turn, 8 calls, each with the same arguments")
    assert len(steps_of(state.facts)) == 8


def test_repeated_tool_call_loop_stages_are_checked_and_used() -> None:
    steps = [bash("ls") for _ in range(4)]
    loop = find_loop(steps)
    assert loop is not None
    assert RepeatedToolCallLoop(guide=3, warn=4, block=4).severity(loop) == "block"
    for wrong in ({"guide": 2}, {"guide": 8}, {"warn": 10}):
        with pytest.raises(ValueError, match="must be"):
            RepeatedToolCallLoop(**wrong)
    assert pickle.loads(pickle.dumps(RULE)).guide == 5


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz1"), st.booleans(), st.booleans()), max_size=40))
def test_whatever_comes_the_loop_is_made_of_equal_steps(drawn: list[tuple[str, str, bool, bool]]) -> None:
    steps = [step(tool, {}, result, error, compacted=gone) for tool, result, error, gone in drawn]
    loop = find_loop(steps[-30:])
    if loop is None:
        return
    assert isinstance(loop, Loop)
    assert loop.steps[-1] is steps[-1]
    for before, after in zip(loop.steps, loop.steps[loop.period :], strict=False):
        assert (before.tool, before.made.masked) == (after.tool, after.made.masked)
        assert before.came is not None
        assert after.came is not None
        assert before.came.masked == after.came.masked
    assert find_loop(steps[-30:]) == loop
