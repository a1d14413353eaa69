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
from coherence.core.readings import Counters
from coherence.providers.readers import read_transcripts
from coherence.providers.readers.otlp import read_requests
from coherence.providers.transcript import Step, Transcript

SAMPLES = Path(__file__).parents[2] / "data" / "otlp"
FILES = sorted(SAMPLES.glob("*.otlp.json*"))

Told: TypeAlias = tuple[str, str, list[str], bool]

ASKED = "Find why the login test fails and fix it."
RAN: Told = ("assistant", "I run the login test first.", ['run_tests({"path": "test_login.py"})'], False)
FAILED: Told = ("tool", "FAILED test_login.py::test_token - KeyError: 'exp'", [], False)
EDITED: Told = ("assistant", "The token has no expiry. I add it in auth.py.", ['edit({"path": "auth.py"})'], False)
DENIED = "PermissionError: auth.py is read-only"
DONE: Told = ("assistant", "auth.py cannot be written; the token needs an exp claim.", [], False)


def only(name: str) -> Transcript:
    [found] = read_transcripts(SAMPLES / name)
    assert found.format == "otlp"
    assert found.warnings == ()
    return found


def told(steps: tuple[Step, ...]) -> list[Told]:
    return [(step.role, step.content, list(map(str, step.tool_calls)), step.is_error) for step in steps]


def attribute(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}


def span(
    name: str, at: int, *, id: str = "", parent: str = "", trace: str = "t", took: int = 1, **attributes: str | int
) -> Any:
    """A span that ends at a second; ``__`` in the name of an attribute is a dot."""
    given = [attribute(key.replace("__", "."), value) for key, value in attributes.items()]
    times = {"startTimeUnixNano": str((at - took) * 10**9), "endTimeUnixNano": str(at * 10**9)}
    return {"name": name, "traceId": trace, "spanId": id, "parentSpanId": parent, "attributes": given, **times}


def request(*spans: Any, scope: str = "demo") -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def write(folder: Path, *requests: Any) -> Path:
    path = folder / "run.otlp.json"
    path.write_text("\n".join(map(json.dumps, requests)))
    return path


def messages(*texts: str) -> str:
    """User and assistant in turns."""
    roles = ("user", "assistant")
    return json.dumps([{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("name", "id", "fails"),
    [
        ("semconv.otlp.json", "conv-1", True),
        ("semconv_events.otlp.json", "conv-1", True),
        # without spans of tools nothing says that a call failed
        ("semconv_old.otlp.json", "00000000000000000000000000000001", False),
        ("openllmetry.otlp.json", "sess-7", True),
        ("openinference.otlp.json", "sess-9", True),
        ("langfuse.otlp.json", "lf-3", True),
    ],
)
def test_read_otlp_gives_the_same_run_for_every_instrumentation(name: str, id: str, *, fails: bool) -> None:
    run = only(name)
    assert run.id == id
    assert run.system == "You fix tests."
    assert told(run.steps) == [("user", ASKED, [], False), RAN, FAILED, EDITED, ("tool", DENIED, [], fails), DONE]
    assert [step.tool_name for step in run.steps] == [None, None, "run_tests", None, "edit", None]
    cost = 0.002 if name == "langfuse.otlp.json" else None
    assert [step.usage for step in run.steps if step.role == "assistant"] == [
        Counters(tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost)
        for tokens_in, tokens_out in ((100, 20), (150, 30), (200, 10))
    ]


def test_read_otlp_reads_the_example_of_the_documentation() -> None:
    example = Path(__file__).parents[3] / "examples" / "telemetry.otlp.json"
    assert example.read_bytes() == (SAMPLES / "openinference.otlp.json").read_bytes()


def test_read_otlp_without_content_keeps_calls_errors_and_tokens() -> None:
    run = only("without_content.otlp.json")
    assert told(run.steps) == [
        ("assistant", "", ["run_tests(null)"], False),
        ("tool", "", [], False),
        ("assistant", "", ["edit(null)"], False),
        ("tool", "PermissionError", [], True),
        ("assistant", "", [], False),
    ]
    assert sum(step.usage.tokens_in or 0 for step in run.steps if step.usage is not None) == 100 + 150 + 200


def test_read_otlp_reads_what_claude_code_exports() -> None:
    run = only("claude_code.otlp.jsonl")
    assert told(run.steps) == [
        ("user", "Run hello.py and say what it prints.", [], False),
        (
            "assistant",
            "I run the file first.",
            ['Bash({"command": "python3 hello.py", "description": "Run it"})'],
            False,
        ),
        ("tool", "hello", [], False),  # which its span tells
        ("assistant", "", ['Read({"file_path": "/project/missing.py"})'], False),
        ("tool", "File does not exist. Note: your current working directory is /project.", [], True),
        ("assistant", "It prints hello; missing.py does not exist.", [], False),
    ]
    assert run.steps[1].usage == Counters(tokens_in=12318, tokens_out=48, cost_usd=0.050232000000000006)


@pytest.mark.parametrize(("line", "answer"), [(0, ""), (1, "It prints hello; missing.py does not exist.")])
def test_read_otlp_reads_claude_codes_traces_or_logs_alone(tmp_path: Path, line: int, answer: str) -> None:
    whole = (SAMPLES / "claude_code.otlp.jsonl").read_text().splitlines()
    [run] = read_transcripts(write(tmp_path, json.loads(whole[line])))
    assert [step.role for step in run.steps] == ["user", *["assistant", "tool"] * 2, "assistant"]
    assert [step.is_error for step in run.steps] == [False, False, False, False, True, False]
    assert run.steps[-1].content == answer


def test_read_otlp_counts_a_repeated_conversation_once_and_new_words_each_time(tmp_path: Path) -> None:
    chat: dict[str, Any] = {"gen_ai__operation__name": "chat"}
    spans = [
        span("chat", 1, **chat, gen_ai__input__messages=messages("Go on."), gen_ai__output__messages="One."),
        span(
            "chat",
            2,
            **chat,
            gen_ai__input__messages=messages("Go on.", "One.", "Go on."),
            gen_ai__output__messages="Two.",
        ),
    ]
    [run] = read_transcripts(write(tmp_path, request(*spans)))
    assert [step.content for step in run.steps] == ["Go on.", "One.", "Go on.", "Two."]


def test_read_otlp_parts_agents_and_conversations(tmp_path: Path) -> None:
    spans = [
        span("invoke_agent lead", 9, id="1", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="lead"),
        span("chat", 2, id="2", parent="1", gen_ai__operation__name="chat", gen_ai__conversation__id="c"),
        span(
            "invoke_agent helper",
            8,
            id="3",
            parent="1",
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name="helper",
        ),
        span("chat", 4, id="4", parent="3", gen_ai__operation__name="chat"),
        span("chat", 5, id="5", trace="other", gen_ai__operation__name="chat"),
    ]
    runs = read_transcripts(write(tmp_path, request(*spans[:3]), request(*spans[3:])))
    assert sorted((run.id, run.steps[0].agent) for run in runs) == [
        ("c/helper", "helper"),
        ("c/lead", "lead"),
        ("other", None),
    ]


def test_read_otlp_takes_the_words_of_an_agents_span_where_no_chat_has_any(tmp_path: Path) -> None:
    spans = [
        span(
            "agent",
            9,
            id="1",
            took=8,
            openinference__span__kind="AGENT",
            input__value="List it.",
            output__value="a, b",
        ),
        span("ls", 3, id="2", parent="1", openinference__span__kind="TOOL", tool__name="ls", output__value="a b"),
    ]
    [run] = read_transcripts(write(tmp_path, request(*spans)))
    assert [(step.role, step.content) for step in run.steps] == [
        ("user", "List it."),
        ("assistant", ""),
        ("tool", "a b"),
        ("assistant", "a, b"),
    ]


def test_read_otlp_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"no span or event .* in resourceMetrics \(0 spans\), expected traces"):
        read_transcripts(write(tmp_path, {"resourceMetrics": [{}]}))
    with pytest.raises(TranscriptError, match=r"no span or event .* in resourceSpans \(1 span\)"):
        read_transcripts(write(tmp_path, request(span("GET /", 1))))
    with pytest.raises(TranscriptError, match="not OTLP, expected OTLP requests"):
        read_transcripts(write(tmp_path, {"role": "user"}), "otlp")


def test_read_otlp_tells_what_it_passes_over(tmp_path: Path) -> None:
    good = span("chat", 1, gen_ai__operation__name="chat")
    [run] = read_transcripts(write(tmp_path, request(good, 7, {"name": None})))
    assert run.warnings == ("2 records left out: no span or log record",)


def test_read_requests_gives_log_records_to_their_spans() -> None:
    record = {"spanId": "ab", "eventName": "gen_ai.user.message", "body": {"kvlistValue": {"values": []}}}
    record["body"] = {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Hi."}}]}}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    [found] = read_requests([logs, request(span("chat", 1, id="ab"))]).spans
    assert [(event.name, event.attributes["event.body"]) for event in found.events] == [
        ("gen_ai.user.message", {"content": "Hi."})
    ]


@examples(300)
@given(st.integers(0, 2**32))
def test_read_otlp_never_crashes_on_a_damaged_file(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.otlp.json"
    read_or_refuse(path, mutated(random.Random(seed), FILES))


@pytest.mark.slow
def test_read_otlp_never_crashes_on_ten_thousand_damaged_files(tmp_path: Path) -> None:
    for seed in range(10_000):
        read_or_refuse(tmp_path / "mutated.otlp.json", mutated(random.Random(seed), FILES))
