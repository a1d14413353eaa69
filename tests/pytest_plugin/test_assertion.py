"""The assertion on a run: what passes, what fails, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coherence import Monitor, assert_coherent
from coherence.core.readings import Band
from coherence.providers import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.pytest_plugin.assertion import faults_of, scored_runs
from coherence.pytest_plugin.rule_names import SHORT, rules_meant
from coherence.report.live import scored_monitor
from coherence.report.score import score_transcript

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"

CALL = {"id": "1", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "List the files"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "a.txt b.txt"},
    {"role": "assistant", "content": "There are two files: a.txt and b.txt."},
]


def looping(m: Monitor, times: int = 5) -> None:
    for _ in range(times):
        m.message("assistant", "I run the tests.")
        m.tool_result("ImportError: no module x", error=True, call=m.tool_call("Bash", {"command": "pytest -q"}))


def monitor(**options: Any) -> Monitor:
    return Monitor(goal="make the tests pass", embedder=False, source="test", **options)


def failure(run: Any, **wanted: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        assert_coherent(run, **wanted)
    return str(raised.value)


def test_assert_coherent_names_light_step_cause_evidence_and_strip() -> None:
    with monitor(agent="builder", session="s") as m:
        looping(m)
        lines = failure(m).splitlines()
    # 5 messages and 5 results are 10 steps, counted from 0; the third failure in a row, at step 5, is the first orange
    assert lines[0].startswith("run 'builder/s' is orange after step 5 of 10, worse than light='yellow'")
    assert lines[1].startswith("  cause: ")
    assert lines[2].startswith("  decision: warn, index 0.")
    assert "  step 5 (tool Bash, failed): ImportError: no module x" in lines
    assert lines[-1].startswith("  lights: ██") and len(lines[-1]) == len("  lights: ") + 10


def test_assert_coherent_a_worse_light_passes_where_it_is_allowed() -> None:
    with monitor() as m:
        looping(m)
        assert_coherent(m, light="orange")
        assert_coherent(m, light="red")


def test_assert_coherent_a_finding_fails_under_any_light() -> None:
    with monitor() as m:
        looping(m)
        said = failure(m, light="red", no=["loop", "hijack"])
    # the loop rule fires at the fifth equal call, whose result is step 9
    assert "has the finding repeated_tool_call_loop (loop) after step 9, which no= forbids" in said
    assert "goal_hijack" not in said
    assert said.count("\n  step ") == 4, "no more than four steps are quoted"


def test_assert_coherent_a_refused_call_is_red() -> None:
    with monitor() as m:
        m.message("assistant", "I clean up.")
        assert m.check("Bash", {"command": "rm -rf /"}) == "block"
        assert "is red after step 0 of 1" in failure(m, light="orange")
        assert "harmful_call (harm)" in failure(m, light="red", no=["harm"])
        m.message("user", "Then list the files.")
        run = scored_monitor(m)
    assert run is not None
    assert run.lights[1] is not Band.RED, "a step after it is judged by itself"


@pytest.mark.parametrize("steps", range(4))
def test_assert_coherent_a_short_healthy_run_never_fails(steps: int) -> None:
    with monitor() as m:
        m.message("user", "List the files")
        for number in range(steps):
            m.tool_result(f"{number}.txt", call=m.tool_call("Bash", {"command": f"ls {number}"}))
        assert_coherent(m, light="green", no=["loop", "errors", "drift"])
    assert_coherent(CHAT[: steps + 1])


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_faults_of_the_beginnings_of_real_good_runs_are_none(steps: int) -> None:
    runs = [each for path in sorted(DATA.glob("*.gz")) for each in read_transcripts(path) if each.went_wrong is False]
    assert len(runs) >= 4
    for transcript in runs:
        begun = msgspec.structs.replace(transcript, steps=transcript.steps[:steps])
        assert faults_of(score_transcript(begun, embedder=HashingEmbedder()), Band.YELLOW, rules_meant(SHORT)) == []


def test_assert_coherent_known_fails_where_nothing_could_be_measured() -> None:
    with monitor() as m:
        assert failure(m, known=True) == "the run has no step, and known=True asks for a light"
        m.message("user", "List the files")
        assert_coherent(m)
        assert "could not be measured at any step" in failure(m, known=True)
        m.message("assistant", "There are two.")
        assert_coherent(m, known=True)


def test_assert_coherent_a_closed_monitor_is_judged_as_before() -> None:
    with monitor() as m:
        looping(m)
        before = failure(m)
    assert failure(m) == before


def test_assert_coherent_takes_messages_files_and_stores(tmp_path: Path) -> None:
    with monitor(store=tmp_path / "runs.db", session="bad") as m:
        looping(m)
    steps: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for _ in range(7):
        steps += [
            {"role": "assistant", "content": "", "tool_calls": [{"name": "Bash", "arguments": {"command": "ls"}}]},
            {"role": "tool", "content": "no such file", "tool_name": "Bash", "is_error": True},
        ]
    good = {"id": "good", "goal": "go", "steps": steps[:1]}
    lines = [json.dumps(each) for each in (good, {"id": "bad", "goal": "go", "steps": steps})]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines))
    assert "run 'main/bad' is" in failure(tmp_path / "runs.db")
    said = failure(str(tmp_path / "runs.jsonl"), no=["retry"])
    assert "run 'bad' is" in said and "bash_retry (retry)" in said and "good" not in said
    assert "  step 2 (tool Bash, failed): no such file" in said
    assert_coherent(CHAT, known=True)


@pytest.mark.parametrize(
    ("wanted", "kind", "says"),
    [
        ({"no": ["lop"]}, ValueError, "no rule is called 'lop'; short names: budget, constraint, .* rules: bash_error"),
        ({"no": "loop"}, TypeError, r"write no=\['loop'\]"),
        ({"light": "blue"}, ValueError, "light must be one of green, yellow, orange, red, not 'blue'"),
        ({"run": 7}, TypeError, "a Monitor, a path or a list of messages, not int"),
        ({"run": "none.jsonl"}, ValueError, "none.jsonl: "),
        ({"run": [{"what": 1}]}, ValueError, "messages: unknown format, expected one of export"),
        ({"run": [{"role": "user", "content": object()}]}, ValueError, "expected messages that JSON can hold"),
    ],
)
def test_assert_coherent_bad_arguments_are_no_failed_assertion(
    wanted: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        assert_coherent(**{"run": CHAT, **wanted})


def test_faults_of_tells_no_more_than_a_line_of_a_long_text() -> None:
    with monitor() as m:
        for _ in range(7):
            m.tool_result("x\n" * 5_000, error=True, call=m.tool_call("Bash", {"command": "ls"}))
        (run,) = scored_runs(m)
    said = "\n".join(faults_of(run, Band.GREEN, {}))
    assert max(map(len, said.splitlines())) < 300
