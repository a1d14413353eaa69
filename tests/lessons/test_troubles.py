"""Little stories of agents: which of them teach something, and what."""

import json

import msgspec
import pytest

from coherence.core.events import ToolCall, ToolResult
from coherence.lessons.troubles import MAX_AGE, MAX_CALLS, MAX_OPEN, Troubles
from lessons.sessions import TYPE, YAML, Story


def test_troubles_a_command_between_failure_and_success_is_the_fix_and_stands_alone() -> None:
    story = Story().failed("python app.py").ran("pip install pyyaml").ran("python app.py")
    [lesson] = story.solved
    assert lesson.fix_text == "pip install pyyaml"
    assert lesson.error_text == YAML
    assert lesson.tool == "Bash"
    assert lesson.pattern == "ModuleNotFoundError"
    assert lesson.seqs == (2, 4, 6)
    assert story.troubles.open == []


@pytest.mark.parametrize(
    ("failing", "passing"),
    [
        ("pytest tests/a.py::test_x", "cd /repo && python -m pytest tests/a.py -q 2>&1"),
        ("npm test", "npm run test"),
        ("pip install a b", "pip install a b"),
        ("timeout 60 python3 app.py", "python3 app.py | tail -5"),
    ],
)
def test_troubles_the_same_intent_in_other_words_is_recognised(failing: str, passing: str) -> None:
    assert Story().failed(failing).edited("a.py", "x = 1", "x = 2").ran(passing).fixes[0].startswith("edited a.py")


@pytest.mark.parametrize(
    "between",
    [
        [],
        ["ls -la", "cat app.py", "git status", "grep -rn yaml .", "pip list", "which python", "python --version"],
        ["sleep 10"],
        ["pytest tests", "echo hello"],
    ],
)
def test_troubles_nothing_is_learnt_where_nothing_changed(between: list[str]) -> None:
    story = Story().failed("python app.py")
    for command in between:
        story.ran(command)
    assert story.ran("python app.py").fixes == []
    assert story.troubles.open == []


@pytest.mark.parametrize("success", ["python other.py", "ls", "pip install pyyaml", "pytest tests/a.py"])
def test_troubles_a_success_of_something_else_solves_nothing(success: str) -> None:
    story = Story().failed("python app.py").edited("app.py", "a", "b").ran(success)
    assert story.fixes == []
    assert len(story.troubles.open) == 1


def test_troubles_another_package_is_another_intent() -> None:
    assert Story().failed("pip install a", "ERROR: No matching distribution").ran("pip install z").fixes == []
    story = Story().failed("pip install a==9", "ERROR: No matching distribution found for a==9").ran("pip install a==1")
    assert story.fixes == ["pip install a==1"]
    assert story.solved[0].seqs == (2, 4)


def test_troubles_a_success_that_was_made_differently_is_the_fix() -> None:
    assert Story().failed("python app.py").ran("PYTHONPATH=src python app.py").fixes == ["PYTHONPATH=src python app.py"]
    assert Story().failed("pytest a.py").ran("python -m pytest a.py").fixes == ["python -m pytest a.py"]
    assert Story().failed("npm test").ran("cd frontend && npm test").fixes == ["cd frontend && npm test"]
    story = Story().failed("docker run -p 80:80 nginx", "Error: port is already allocated")
    assert story.ran("docker run -p 8080:80 nginx").fixes == ["docker run -p 8080:80 nginx"]


@pytest.mark.parametrize(
    ("failing", "passing"),
    [
        ("pytest a.py", "pytest -vv a.py"),
        ("pytest a.py::test_x", "pytest a.py::test_y --tb=short"),
        ("python app.py", "python app.py 2>&1 | tail -5"),
        ("python app.py", "cd /repo && python app.py"),
        ("npm start", "npm run start"),
    ],
)
def test_troubles_display_and_selection_are_no_fix(failing: str, passing: str) -> None:
    assert Story().failed(failing).ran(passing).fixes == []


def test_troubles_the_changes_since_the_last_failure_are_preferred() -> None:
    story = Story().failed("python app.py").ran("pip install yaml2").failed("python app.py").ran("pip install pyyaml")
    assert story.troubles.open[0].count == 2
    assert story.ran("python app.py").fixes == ["pip install pyyaml"]
    assert story.solved[0].seqs == (2, 8, 10)


def test_troubles_a_nested_trouble_has_its_own_fix_and_is_a_step_of_the_outer() -> None:
    story = Story().failed("python app.py").failed("pip install pyyaml", "ERROR: externally-managed-environment")
    story.ran("python -m venv .venv").ran("source .venv/bin/activate").ran("pip install pyyaml")
    activate = "ran `python -m venv .venv`; ran `source .venv/bin/activate`"
    assert story.fixes == [activate]
    story.ran("python app.py")
    assert story.fixes[1] == f"{activate}; ran `pip install pyyaml`"
    assert [lesson.pattern for lesson in story.solved] == ["pip install failed", "ModuleNotFoundError"]


def test_troubles_an_error_that_changed_leaves_the_older_the_changes_up_to_there_and_the_newer_those_since() -> None:
    story = Story().failed("python app.py").ran("pip install pyyaml").failed("python app.py", TYPE)
    story.edited("app.py", "1 + x", "1 + int(x)").ran("python app.py")
    assert story.fixes == [
        "pip install pyyaml",
        "edited app.py: `1 + x` -> `1 + int(x)`",
    ]


def test_troubles_of_many_changes_the_last_five_stay() -> None:
    story = Story().failed("python app.py")
    for number in range(8):
        story.edited("app.py", f"old{number}", f"new{number}")
    [fix] = story.ran("python app.py").fixes
    assert fix == "; ".join(f"edited app.py: `old{n}` -> `new{n}`" for n in range(3, 8))
    assert story.solved[0].seqs == (2, 10, 12, 14, 16, 18, 20)


@pytest.mark.parametrize(
    "result",
    [
        "Error 429: rate limit exceeded, retry after 20 seconds",
        "Too many requests",
        "",
        " \n ",
        "<returncode>1</returncode>\n<output>\n</output>",
        "Process exited with code 1",
        "The user doesn't want to proceed with this tool use. The tool use was rejected",
    ],
)
def test_troubles_limits_refusals_and_silence_are_no_errors_to_learn_from(result: str) -> None:
    story = Story().failed("python app.py", result).ran("pip install pyyaml").ran("python app.py")
    assert story.fixes == []


def test_troubles_a_search_that_finds_nothing_is_no_error() -> None:
    story = Story().failed("grep foo a.py", "grep: nothing found").edited("a.py", "bar", "foo").ran("grep foo a.py")
    assert story.fixes == []
    story = Story().failed("jq . a.json", "bash: jq: command not found").ran("apt-get install -y jq").ran("jq . a.json")
    assert story.fixes == ["apt-get install -y jq"]


def test_troubles_a_success_that_prints_a_failure_is_none() -> None:
    story = Story().failed("make", "x.c:3:5: error: unknown type name").edited("x.c", "u8", "char")
    assert story.ran("make", "x.c:4:1: error: expected ;").fixes == []
    story = Story().failed("pytest a.py", "E   assert 1 == 2").edited("a.py", "1", "2")
    assert story.ran("pytest a.py | tail -3", "==== 1 failed, 2 passed in 0.1s ====").fixes == []
    assert story.ran("pytest a.py | tail -3", "==== 3 passed in 0.1s ====").fixes == ["edited a.py: `1` -> `2`"]


def test_troubles_a_failure_behind_a_pipe_is_seen() -> None:
    story = Story().ran("python app.py 2>&1 | tail -5", YAML).ran("pip install pyyaml")
    assert story.ran("python app.py").fixes == ["pip install pyyaml"]
    # shown by a reader it is only text
    assert Story().ran("cat log.txt", YAML).troubles.open == []


def test_observe_result_a_result_without_a_call_teaches_nothing() -> None:
    story = Story().failed("python app.py")
    assert story.troubles.observe_result(9, ToolResult("boom: failed", error=True, call_id="?", tool_name="Bash")) == ()
    assert story.troubles.observe_result(10, ToolResult("ok", call_id="?", tool_name="Bash")) == ()
    assert len(story.troubles.open) == 1


def test_troubles_results_without_an_id_belong_to_the_last_call() -> None:
    troubles = Troubles()
    for command, error in (("python app.py", True), ("pip install pyyaml", False), ("python app.py", False)):
        troubles.observe_call(ToolCall("Bash", msgspec.Raw(json.dumps({"command": command}).encode()), "x"))
        solved = troubles.observe_result(2, ToolResult(YAML if error else "ok", error=error))
    assert [lesson.fix_text for lesson in solved] == ["pip install pyyaml"]


def test_renumber_events_of_an_earlier_session_are_not_named() -> None:
    story = Story()
    story.seq = 20
    story.failed("python app.py").ran("pip install pyyaml")
    story.troubles.renumber()
    story.seq = 0
    story.edited("app.py", "1", "2").ran("python app.py")
    assert story.fixes == ["ran `pip install pyyaml`; edited app.py: `1` -> `2`"]
    assert story.solved[0].seqs == (2, 4)  # the edit and the success of this session


def test_observe_call_what_waits_is_bounded_in_number_and_age() -> None:
    story = Story()
    for number in range(MAX_OPEN + 2):
        story.failed(f"python app_{chr(97 + number)}.py")
    assert len(story.troubles.open) == MAX_OPEN
    assert story.troubles.open[0].intent == "shell: python app_c.py"
    for _ in range(MAX_AGE + 1):
        story.ran("ls")
    assert story.troubles.open == []
    for number in range(MAX_CALLS + 5):
        story.troubles.observe_call(ToolCall("f", msgspec.Raw(b"{}"), str(number)))
    assert [call.id for call in story.troubles.calls] == [str(number) for number in range(5, MAX_CALLS + 5)]


def test_troubles_a_long_error_keeps_both_ends_and_a_long_fix_is_cut() -> None:
    error = f"first\n{'x' * 1_000_000}\nModuleNotFoundError: No module named 'yaml'"
    story = Story().failed("python app.py", error)
    for number in range(5):
        story.edited("app.py", f"{number}" + "o" * 500, f"{number}" + "n" * 500)
    [lesson] = story.ran("python app.py").solved
    assert lesson.error_text.startswith("first")
    assert lesson.error_text.endswith("'yaml'")
    assert len(lesson.error_text) <= 4_000
    assert len(lesson.fix_text) <= 600
    assert lesson.fix_text.count("edited app.py") == 5
