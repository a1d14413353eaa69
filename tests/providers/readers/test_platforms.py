"""Exports of Langfuse, Phoenix and LangSmith give the runs that the same spans give by OpenTelemetry."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutated_files import mutated, read_or_refuse
from property_sizes import examples

from coherence.core.errors import TranscriptError
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript

DATA = Path(__file__).parents[2] / "data"
FILES = {
    "langfuse_observations.json": ("langfuse", "lf-3"),
    "langfuse_enriched.jsonl": ("langfuse", "lf-3"),
    "langfuse_trace.json": ("langfuse", "lf-3"),
    "phoenix_spans.json": ("phoenix", "sess-9"),
    "phoenix_dataframe.jsonl": ("phoenix", "sess-9"),
    "langsmith_langchain.jsonl": ("langsmith", "thread-7"),
    "langsmith_openai.json": ("langsmith", "sess-3"),
}
SAME = {"langfuse": "langfuse.otlp.json", "phoenix": "openinference.otlp.json"}
"""Format -> a file of the same spans as OTLP."""

Told: TypeAlias = tuple[str, str, list[str], bool]

ASKED: Told = ("user", "Find why the login test fails and fix it.", [], False)
RAN: Told = ("assistant", "I run the login test first.", ['run_tests({"path": "test_login.py"})'], False)
FAILED: Told = ("tool", "FAILED test_login.py::test_token - KeyError: 'exp'", [], False)
EDITED: Told = ("assistant", "The token has no expiry. I add it in auth.py.", ['edit({"path": "auth.py"})'], False)
DONE: Told = ("assistant", "auth.py cannot be written; the token needs an exp claim.", [], False)


def told(run: Transcript) -> list[Told]:
    return [(step.role, step.content, list(map(str, step.tool_calls)), step.is_error) for step in run.steps]


def only(path: Path, format: str | None = None) -> Transcript:
    [run] = read_transcripts(path, format)
    assert run.warnings == ()
    return run


@pytest.mark.parametrize("name", list(FILES))
def test_read_transcripts_reads_the_run_that_a_platform_has_kept(name: str) -> None:
    format, id = FILES[name]
    run = only(DATA / "platforms" / name)
    assert (run.format, run.id, run.system) == (format, id, "You fix tests.")
    assert told(run)[:4] == [ASKED, RAN, FAILED, EDITED]
    denied, done = told(run)[4:]
    assert denied[0] == "tool" and "auth.py is read-only" in denied[1] and "Traceback" not in denied[1] and denied[3]
    assert done == DONE
    tokens = [(step.usage.tokens_in, step.usage.tokens_out) for step in run.steps if step.usage is not None]
    assert tokens == [(100, 20), (150, 30), (200, 10)]
    assert all(step.ts is not None and step.ts > 1.7e9 for step in run.steps)


@pytest.mark.parametrize("name", [name for name, (format, _) in FILES.items() if format in SAME])
def test_read_transcripts_tells_of_an_export_what_the_spans_themselves_tell(name: str) -> None:
    run, spans = only(DATA / "platforms" / name), only(DATA / "otlp" / SAME[FILES[name][0]])
    assert (told(run), run.goal, run.system) == (told(spans), spans.goal, spans.system)
    assert [(step.usage, step.agent) for step in run.steps] == [(step.usage, step.agent) for step in spans.steps]
    for step, other in zip(run.steps, spans.steps, strict=True):
        assert step.latency_s == pytest.approx(other.latency_s, abs=0.001)  # the platforms keep milliseconds


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_read_langfuse_takes_a_list_a_trace_beside_its_observations_and_a_session(tmp_path: Path) -> None:
    trace = json.loads((DATA / "platforms" / "langfuse_trace.json").read_text())
    observations = trace.pop("observations")
    forms = [
        {"trace": trace, "observations": observations},
        {"id": "lf-3", "traces": [{**trace, "observations": observations}]},
        [{**each, "sessionId": "lf-3"} for each in observations],
    ]
    expected = told(only(DATA / "platforms" / "langfuse_trace.json"))
    for form in forms:
        run = only(write(tmp_path / "a.json", form))
        assert (run.format, run.id, told(run)) == ("langfuse", "lf-3", expected)


def test_read_langfuse_uses_the_attributes_that_the_instrumentation_wrote(tmp_path: Path) -> None:
    base = {"traceId": "t", "startTime": "2025-01-01T00:00:00Z", "endTime": "2025-01-01T00:00:01Z"}
    written = {"gen_ai.agent.name": "fixer", "gen_ai.tool.call.id": "c1"}
    found = read_transcripts(
        write(
            tmp_path / "a.json",
            [
                {**base, "id": "1", "type": "GENERATION", "input": "Look.", "output": "I look."},
                {**base, "id": "2", "type": "TOOL", "name": "ls", "input": {"path": "."}, "output": "a.py"}
                | {"metadata": {"attributes": written}},
                {**base, "id": "3", "type": "TOOL", "name": "cat", "input": {"path": "a.py"}}
                | {"output": {"type": "tool", "content": "1 line", "tool_call_id": "c2"}},
            ],
        )
    )
    calls = {call.id: str(call) for run in found for step in run.steps for call in step.tool_calls}
    assert calls == {"c1": 'ls({"path": "."})', "c2": 'cat({"path": "a.py"})'}
    assert [run.id for run in found] == ["t/main", "t/fixer"]


def test_read_phoenix_takes_nested_attributes_and_a_trace_of_spans(tmp_path: Path) -> None:
    rest = json.loads((DATA / "platforms" / "phoenix_spans.json").read_text())["data"]
    for span in rest:
        nested: dict[str, Any] = {}
        for name, value in span["attributes"].items():
            *path, last = name.split(".")
            node = nested
            for key in path:
                node = node.setdefault(key, {})
            node[last] = value
        span["attributes"] = nested
    run = only(write(tmp_path / "a.json", {"traceId": "t", "spans": rest}))
    assert told(run) == told(only(DATA / "platforms" / "phoenix_spans.json"))


def test_read_langsmith_takes_a_tree_of_runs_each_run_once(tmp_path: Path) -> None:
    lines = (DATA / "platforms" / "langsmith_langchain.jsonl").read_text().splitlines()
    root, *children = map(json.loads, lines)
    root["child_runs"] = children
    run = only(write(tmp_path / "a.json", {"runs": [root, *children]}))
    assert told(run) == told(only(DATA / "platforms" / "langsmith_langchain.jsonl"))


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        ({"prompts": ["Say hi."]}, {"generations": [[{"text": "Hi."}]]}, [("user", "Say hi."), ("assistant", "Hi.")]),
        (
            {"messages": [{"role": "user", "content": "Say hi."}], "system": "Be short."},
            {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]},
            [("user", "Say hi."), ("assistant", "Hi.")],
        ),
        (
            {"input": [{"role": "user", "content": "Say hi."}], "instructions": "Be short."},
            {"object": "response", "output": [{"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "Hi."}]}]},
            [("user", "Say hi."), ("assistant", "Hi.")],
        ),
        (
            {"messages": [[{"type": "human", "data": {"content": "Say hi."}}]]},
            {"generations": [[{"text": "Hi.", "message": {"type": "ai", "data": {"content": "Hi."}}}]]},
            [("user", "Say hi."), ("assistant", "Hi.")],
        ),
    ],
)  # fmt: skip
def test_read_langsmith_reads_what_completions_and_clients_were_asked(
    tmp_path: Path, inputs: Any, outputs: Any, expected: list[tuple[str, str]]
) -> None:
    record = {"id": "r", "trace_id": "t", "run_type": "llm", "inputs": inputs, "outputs": outputs}
    run = only(write(tmp_path / "a.json", [record]))
    assert [(step.role, step.content) for step in run.steps] == expected
    assert run.system == ("Be short." if len(inputs) > 1 else "")


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"input": "{'path': 'a.py', 'lines': (1, 2)}"}, '{"path": "a.py", "lines": [1, 2]}'),
        ({"input": '{"path": "a.py"}'}, '{"path": "a.py"}'),
        ({"input": {"path": "a.py"}}, '{"path": "a.py"}'),
        ({"input": "{'path': {1, 2}}"}, "{'path': {1, 2}}"),
        ({"input": "{" * 9_000}, "{" * 9_000),
    ],
)
def test_read_langsmith_reads_arguments_that_python_wrote(tmp_path: Path, given: Any, arguments: str) -> None:
    record = {"id": "r", "trace_id": "t", "run_type": "tool", "name": "ls", "inputs": given, "outputs": {"output": "x"}}
    [call] = only(write(tmp_path / "a.json", [record])).steps[0].tool_calls
    assert call.arguments == (json.loads(arguments) if arguments[1] == '"' else arguments)


@pytest.mark.parametrize(
    ("format", "value", "why"),
    [
        ("langfuse", [7], "a record is a int, expected observations"),
        ("langfuse", [{"type": "SPAN", "traceId": "t"}], "in the observations (1 span), expected observations"),
        ("phoenix", [{"context": {}}], "in the spans (0 spans), expected spans"),
        ("langsmith", [{"run_type": "chain", "id": "r", "parent_run_id": "p"}], "in the runs (1 span), expected runs"),
    ],
)
def test_read_transcripts_says_what_a_file_of_a_platform_lacks(
    tmp_path: Path, format: str, value: Any, why: str
) -> None:
    with pytest.raises(TranscriptError) as caught:
        read_transcripts(write(tmp_path / "a.json", value), format)
    assert why in str(caught.value)


SAMPLES = [DATA / "platforms" / name for name in FILES]


@examples(300)
@given(st.integers(0, 2**32))
def test_read_transcripts_never_crashes_on_a_damaged_export(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    read_or_refuse(tmp_path_factory.getbasetemp() / "mutated.json", mutated(random.Random(seed), SAMPLES))


@pytest.mark.slow
def test_read_transcripts_never_crashes_on_ten_thousand_damaged_exports(tmp_path: Path) -> None:
    for seed in range(10_000):
        read_or_refuse(tmp_path / "mutated.json", mutated(random.Random(seed), SAMPLES))
