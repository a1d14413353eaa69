from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Role, Step, TranscriptCall, TranscriptState

RUN: dict[str, Any] = {
    "id": "tau/10/0",
    "goal": "Change the reservation",
    "source": "tau",
    "steps": [
        {"i": 0, "role": "user", "content": "Change my reservation."},
        {
            "i": 1,
            "role": "assistant",
            "agent": "Desk",
            "content": "",
            "tool_calls": [{"name": "get", "arguments": {"id": "H9"}}, {"name": "user", "arguments": None}],
        },
        {"i": 2, "role": "tool", "tool_name": "get", "content": "", "tool_result": "one way", "is_error": False},
        {"i": 3, "role": "tool", "tool_name": "user", "content": "Error: unknown user", "is_error": True},
        {"i": 4, "role": "assistant", "content": "Done."},
    ],
    "memories": ["Mia flies from MIA"],
    "labels": {"success": False},
    "meta": 3,
}


def write(folder: Path, *values: Any, indent: int | None = None) -> Path:
    path = folder / "some.jsonl"
    path.write_text("\n".join(json.dumps(value, indent=indent) for value in values), encoding="utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_a_run_gives_its_steps(tmp_path: Path, indent: int | None) -> None:
    [run] = read_transcripts(write(tmp_path, RUN, indent=indent))
    assert run.steps == (
        Step(role="user", content="Change my reservation."),
        Step(role="assistant", agent="Desk", tool_calls=(TranscriptCall("get", {"id": "H9"}), TranscriptCall("user"))),
        Step(role="tool", content="one way", tool_name="get"),
        Step(role="tool", content="Error: unknown user", tool_name="user", is_error=True),
        Step(role="assistant", content="Done."),
    )
    assert (run.id, run.goal, run.memories) == ("tau/10/0", "Change the reservation", ((0, "Mia flies from MIA"),))
    assert (run.format, run.warnings) == ("runs", ())


def test_read_runs_the_system_text_is_no_step(tmp_path: Path) -> None:
    told, silent = read_transcripts(write(tmp_path, {**RUN, "system": "Refund nothing."}, {**RUN, "id": "b"}))
    assert (told.system, silent.system) == ("Refund nothing.", "")
    assert told.steps == silent.steps


def test_a_system_message_in_mid_run_is_a_step_and_no_request(tmp_path: Path) -> None:
    said = [("user", "Change my seat."), ("assistant", "Which?"), ("system", "Be brief."), ("assistant", "Done.")]
    steps = [{"i": at, "role": role, "content": text} for at, (role, text) in enumerate(said)]
    [run] = read_transcripts(write(tmp_path, {**RUN, "goal": "", "steps": steps}))
    assert [(step.role, step.content) for step in run.steps] == said
    state = TranscriptState(run)
    while state.advance():
        pass
    assert list(state.get_goals()) == ["Change my seat."]


def test_success_labels_change_nothing_but_how_the_run_ended(tmp_path: Path) -> None:
    [run] = read_transcripts(write(tmp_path, RUN))
    bare = {key: value for key, value in RUN.items() if key not in ("labels", "meta", "source")}
    [other] = read_transcripts(write(tmp_path, bare))
    assert (run.success, other.success) == (False, None)
    assert (run.outcome, run.went_wrong, other.outcome, other.went_wrong) == ("failed", True, "", None)
    assert msgspec.structs.replace(run, success=None, outcome="", went_wrong=None) == other


@pytest.mark.parametrize(
    ("labels", "outcome", "went_wrong", "step"),
    [
        ({"success": True}, "good", False, None),
        ({"success": False}, "failed", True, None),
        ({"success": True, "hijacked": True, "hijack_step": 3}, "hijacked at step 3", True, 3),
        ({"hijacked": True, "hijack_step": True}, "hijacked", True, None),
        ({"derailed": True, "onset_step": 0}, "derailed at step 0", True, 0),
        ({"derailed": True, "onset_step": 9}, "derailed at step 9", True, None),  # the run has steps 0 to 4
        ({"derailed": False, "onset_step": 2}, "good", False, None),
        ({"success": False, "error_step": 4}, "failed at step 4", True, 4),
        ({"success": None, "hijacked": False}, "", None, None),
    ],
)
def test_outcome_what_labels_say_of_the_ending(
    tmp_path: Path, labels: object, outcome: str, went_wrong: bool | None, step: int | None
) -> None:
    [run] = read_transcripts(write(tmp_path, RUN | {"labels": labels}))
    assert (run.outcome, run.went_wrong, run.off_course) == (outcome, went_wrong, step)


@pytest.mark.parametrize(
    ("given", "group"), [("airline-7", "airline-7"), (7, "7"), (True, ""), (None, ""), (["a"], ""), ({"name": "a"}, "")]
)
def test_group_is_the_task_where_it_is_a_name_or_a_number(tmp_path: Path, given: object, group: str) -> None:
    named, bare = read_transcripts(write(tmp_path, RUN | {"group": given}, RUN | {"id": "another"}))
    assert (named.group, bare.group) == (group, "")


@pytest.mark.parametrize(
    ("labels", "warnings"),
    [
        ({"sucess": True}, ["labels.sucess is not read; success is"]),
        (
            {"Success": True, "error_stepp": 1},
            ["labels.Success is not", "labels.error_stepp is not read; error_step is"],
        ),
        ({"success": "yes"}, ["labels.success is 'yes', neither true nor false; not read"]),
        ({"success": 1}, ["labels.success is 1, neither"]),
        (["success"], ["labels is no object"]),
        ({"success": "x" * 1_000_000, "y" * 1_000_000: 1}, ["labels.success is 'xxx"]),
        ({"success": None}, []),
        (None, []),
        (3, ["labels is no object"]),
        ({"success": True, "reward": 1, "step": 2, "hijacked": "unknown to this reader"}, []),
    ],
)
def test_runs_slips_in_labels_are_warned_of(tmp_path: Path, labels: object, warnings: list[str]) -> None:
    [run] = read_transcripts(write(tmp_path, RUN | {"labels": labels}))
    assert run.success is (True if isinstance(labels, dict) and labels.get("success") is True else None)
    assert len(run.warnings) == len(warnings)
    assert all(said.startswith(begin) and len(said) < 200 for said, begin in zip(run.warnings, warnings, strict=True))


def test_runs_without_ids_take_the_files_stem(tmp_path: Path) -> None:
    steps = [{"role": "user", "content": "hi"}]
    runs = read_transcripts(write(tmp_path, {"steps": steps}, {"steps": steps, "id": ""}, {"steps": steps, "id": None}))
    assert [run.id for run in runs] == ["some", "some#2", "some#3"]
    assert not any(run.warnings for run in runs)


def test_runs_repeated_ids_get_a_suffix_that_is_free(tmp_path: Path) -> None:
    runs = read_transcripts(write(tmp_path, *(RUN | {"id": id} for id in ("a", "a#2", "a", 5, "a"))))
    assert [run.id for run in runs] == ["a", "a#2", "a#3", "5", "a#4"]
    assert [run.warnings for run in runs] == [
        (),
        (),
        ("the id 'a' comes again; the run is called 'a#3'",),
        (),
        ("the id 'a' comes again; the run is called 'a#4'",),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.builds(TranscriptCall, st.text(), JSON, st.none() | st.text())
ROLES: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant", "tool"])
STEPS = st.builds(
    Step,
    role=ROLES,
    content=st.text(),
    tool_calls=st.lists(CALLS, max_size=3).map(tuple),
    tool_name=st.none() | st.text(),
    is_error=st.booleans(),
    agent=st.none() | st.text(),
)


def to_dict(step: Step) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in step.tool_calls]
    plain = {"role": step.role, "agent": step.agent, "tool_calls": calls, "tool_name": step.tool_name}
    said = {"tool_result" if step.role == "tool" else "content": step.content}
    return plain | said | {"is_error": step.is_error}


@given(steps=st.lists(STEPS, min_size=1, max_size=5), goal=st.text(), memories=st.lists(st.text(), max_size=3))
def test_runs_a_run_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], goal: str, memories: list[str]
) -> None:
    value = {"id": "r", "goal": goal, "steps": [to_dict(step) for step in steps], "memories": memories}
    [run] = read_transcripts(write(tmp_path_factory.mktemp("runs"), value))
    assert (run.steps, run.goal, run.memories) == (tuple(steps), goal, tuple((0, memory) for memory in memories))


@pytest.mark.parametrize(
    ("told", "ts"),
    [
        (12.5, 12.5),
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T00:01:00", 60.0),
        ("noon", None),
        (True, None),
        (-1, None),
        (1e15, None),
        ([], None),
        (None, None),
    ],
)
def test_a_step_tells_when_it_was_done_and_how_long_it_took_where_that_is_a_time(
    tmp_path: Path, told: object, ts: float | None
) -> None:
    step = {"role": "assistant", "content": "a", "ts": told, "latency_s": told}
    [run] = read_transcripts(write(tmp_path, {"id": "r", "goal": "g", "steps": [step]}))
    assert (run.steps[0].ts, run.steps[0].latency_s) == (ts, ts)
