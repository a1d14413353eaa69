"""Loops: what is one, from when, and how much it may ask for."""

import json
from collections.abc import Callable, Sequence
from itertools import count
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.events import Compaction, Message, ToolCall, ToolResult
from coherence.detect.fingerprints import trace_call, trace_result
from coherence.policy.rules.failed_calls import CallStep
from coherence.policy.rules.loops import Loop, RepeatedToolCallLoop, find_loop, steps_of
from coherence.state.reducer import AgentState

RULE = RepeatedToolCallLoop()
CALM = Appraisal(seq=1, pressure=0.0, mode=Mode.OBSERVE)
ASKED = count(1)


def step(tool: str, arguments: object, result: str | None = "", error: bool = False, **more: object) -> CallStep:
    """Return one step; ``result=None`` = none came."""
    came = None if result is None else trace_result(result, error=error)
    made = trace_call(tool, json.dumps(arguments).encode())
    return CallStep(next(ASKED), tool, made, **{"ts": 0.0, "came": came, **more})  # type: ignore[arg-type]


def bash(command: str, result: str | None = "ok", **more: object) -> CallStep:
    return step("Bash", {"command": command}, result, **more)  # type: ignore[arg-type]


def asked(steps: list[CallStep]) -> str:
    """Return what the rule asks for after the last step; continue where it is not active."""
    loop = find_loop(steps[-30:])
    return RULE.severity(loop) if loop is not None and loop.amount >= RULE.guide else "continue"


def worst(steps: list[CallStep]) -> str:
    """Return the most severe that the rule asks for at any step."""
    order = ["continue", "guide", "warn", "block"]
    return max((asked(steps[:end]) for end in range(1, len(steps) + 1)), key=order.index)


def amounts(steps: list[CallStep]) -> list[float]:
    """Return the amount after each step, 0 = no loop."""
    loops = [find_loop(steps[max(0, end - 30) : end]) for end in range(1, len(steps) + 1)]
    return [0.0 if loop is None else loop.amount for loop in loops]


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


def turns(rounds: int, make: Callable[[int], list[CallStep]]) -> list[CallStep]:
    """Return the steps of some rounds of work."""
    return [each for at in range(rounds) for each in make(at)]


def edit(at: int) -> CallStep:
    return step("Edit", {"file_path": "a.py", "old_string": f"x{at}", "new_string": f"y{at}"}, "edited")


HEALTHY: dict[str, list[CallStep]] = {
    "a period of six": [bash(f"cat {at % 6}.py", str(at % 6)) for at in range(30)],
    "another number in the arguments": [step("get_item", {"id": at}, "not there") for at in range(30)],
    "another file": [step("Read", {"file_path": f"/src/f{at}.py"}, "") for at in range(30)],
    "other results": [step("next_mail", {}, word) for word in "ant bee cat dog elk fox gnu hen ibis jay".split()],
    "a number in the middle of a result moves": [
        bash("stats", " ".join(str(at if column == 9 else column) for column in range(20))) for at in range(10)
    ],
    "fixing and testing": turns(12, lambda at: [edit(at), bash("pytest", "2 failed")]),
    "git status now and then": turns(
        12, lambda at: [bash(f"cat {at}.py", f"text {at}"), bash(f"make {at}"), bash("git status", "clean")]
    ),
    "two unrelated calls in five": turns(
        6, lambda at: [*[bash("make", "failed")] * 3, bash(f"echo {at}", str(at)), bash(f"cat {at}", f"text {at}")]
    ),
    "a write in between": [*[bash("make", "failed")] * 4, edit(0), *[bash("make", "failed")] * 4],
    "another result in between": [*[bash("make", "failed")] * 4, bash("make", "built"), *[bash("make", "failed")] * 4],
    "pages": [step("list", {"page": at}, "an item") for at in range(30)],
    "a reread after each compaction": [step("Read", {"path": "/plan"}, "plan", compacted=True) for _ in range(30)],
    "unfinished work": [bash("kubectl get pods", "pending") for _ in range(9)],
    "a gauge": [step("read_sensor", {}, "21.5 °C") for _ in range(9)],
    "edits without arguments": [step("Edit", {"text": ""}, "The file was updated.") for _ in range(20)],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_find_loop_finds_nothing_to_say_of_healthy_work(name: str) -> None:
    assert worst(HEALTHY[name]) == "continue"


LOOPS: dict[str, list[CallStep]] = {
    "ids and times in the arguments": [
        step("fetch", {"id": str(UUID(int=at + 2**90)), "at": f"2026-01-02T03:04:{at:02}Z"}, "not there")
        for at in range(10)
    ],
    "display names": [step("noop", {"description": f"try {at}"}, "done") for at in range(10)],
    "timings, ids and times in the results": [
        bash(
            "pytest", f"3 failed in {at / 7:.2f}s at 2026-01-02 03:04:{at:02} (0x7f{at:04x}ab, {UUID(int=2**90 + at)})"
        )
        for at in range(10)
    ],
    "white space and the order of keys": [
        step("Bash", ({"command": "ls  -la", "cwd": "/a"}, {"cwd": "/a", "command": "ls -la"})[at % 2], "a.py")
        for at in range(9)
    ],
    "a number of attempts that rises": [bash("make", f"attempt {at}: failed") for at in range(9)],
    "the newest call still runs": [*[bash("ls", "a.py")] * 9, bash("ls", None)],
    "a status that does not change": [bash("git status", "clean") for _ in range(9)],
    "four seconds apart": [bash("kubectl get pods", "No resources", ts=4.0 * at) for at in range(9)],
    "six seconds apart, five of them the call's own": [
        bash("npm test", "failed", ts=6.0 * at, duration_s=5.0) for at in range(9)
    ],
    "the same page": [step("Read", {"path": "/a", "limit": 50}, "text") for _ in range(9)],
}


@pytest.mark.parametrize("name", LOOPS)
def test_severity_of_equal_calls_with_equal_results_is_a_block_whatever_else_changes(name: str) -> None:
    assert asked(LOOPS[name]) == "block"


def test_find_loop_a_count_that_falls_is_progress_until_it_stands_still() -> None:
    steps = [bash("pytest", f"{left} failing, 3 passed") for left in range(20, 5, -1)]
    assert worst(steps) == "continue"
    still = [bash("pytest", "6 failing, 3 passed") for _ in range(4)]
    # With the last of the falling ones, which had 6 too, the fourth makes 5.
    assert [asked(steps + still[:end]) for end in (3, 4)] == ["continue", "guide"]


def test_find_loop_a_count_that_goes_back_and_forth_is_none_but_never_blocks() -> None:
    lefts = [12, 11, 13, 12, 14, 11, 13, 11, 12, 14, 12, 13]
    steps = [bash("pytest", f"{left} failing") for left in lefts]
    assert worst(steps) == "warn"
    loop = find_loop(steps)
    assert loop is not None
    assert not loop.still


def test_find_loop_one_unrelated_call_in_five_is_passed_over() -> None:
    steps = []
    for at in range(6):
        steps += [bash("make", "failed"), bash("make", "failed"), bash("make", "failed"), bash("make", "failed")]
        steps.append(bash(f"echo {at}", str(at)))
    assert asked(steps[:4]) == "continue"
    assert asked(steps[:-1]) == "block"


def test_find_loop_calls_without_results_are_guided_and_never_blocked() -> None:
    steps = [bash("ls", None) for _ in range(30)]
    assert asked(steps[:5]) == "guide"
    assert worst(steps) == "warn"


def test_find_loop_a_call_without_a_result_hides_no_change_and_no_noise() -> None:
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


SHAPES: dict[str, Callable[[int], CallStep]] = {
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
def test_find_loop_known_shapes_bring_a_warning_at_most(name: str) -> None:
    steps = [SHAPES[name](at) for at in range(40)]
    assert worst(steps) in ("continue", "guide", "warn")
    assert worst(steps[:4]) == "continue"


@pytest.mark.parametrize("name", ["sleep and status", "a job's status", "empty commands", "rate limit"])
def test_find_loop_waiting_has_twice_the_time(name: str) -> None:
    steps = [SHAPES[name](at) for at in range(10)]
    assert asked(steps[:9]) == "continue"
    assert asked(steps) == "guide"


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
