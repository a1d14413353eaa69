from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.errors import TranscriptError
from coherence.core.registry import register, unregister
from coherence.providers.readers import FORMATS, read_transcripts, source
from coherence.providers.transcript import Step, Transcript

HI = {"role": "user", "content": "hi"}
RUN = {"id": "r", "steps": [HI]}
CALL = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
THOUGHT = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ok"}]}
EVENT = {"type": "user", "message": HI, "uuid": "1", "sessionId": "s"}
AGENT = {"agent": "a", "session": "s", "parent": None, "source": "hook", "started": 1.0, "events": 1}
AGENT |= {"without_text": False, "label": None}
HEAD = {"schema": "coherence.export/1", "version": "1", "session": "s", "agents": [AGENT]}
SAID = {"agent": "a", "session": "s", "ts": 1.0, "event": {"kind": "message", "role": "user", "content": "hi"}}

CHAT = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
SPANS = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "chat", "traceId": "a", "attributes": [CHAT]}]}]}]}


def write(folder: Path, content: str | bytes, name: str = "file.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def failure(path: str | Path, format: str | None = None) -> TranscriptError:
    with pytest.raises(TranscriptError) as caught:
        read_transcripts(path, format)
    assert caught.value.path == str(path)
    return caught.value


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("openai", lines([HI])),
        ("openai", lines(HI, HI)),
        ("openai", lines({"messages": [HI]}, {"messages": [HI, CALL]})),
        ("openai", lines({"role": "system", "content": "x"}, HI)),
        ("openai", lines(HI, CALL, {"role": "tool", "tool_call_id": "c", "content": "1"})),
        ("openai", lines({"messages": [HI], "steps": 12})),
        ("openai", lines([THOUGHT, CALL])),
        ("anthropic", lines([HI, USE])),
        ("anthropic", lines(HI, USE)),
        ("anthropic", lines([THOUGHT])),
        ("anthropic", lines({"system": "x", "messages": [HI]})),
        ("anthropic", lines({"messages": [HI]}, {"messages": [{"role": "system", "content": "x"}, USE]})),
        ("anthropic", lines([{"role": "assistant", "content": "ok", "usage": {"input_tokens": 1}}])),
        ("anthropic", json.dumps({"messages": [HI, USE]}, indent=2)),
        ("claude-code", lines(EVENT)),
        ("claude-code", lines({"type": "of-next-year"}, {"type": "summary", "summary": "x", "leafUuid": "1"}, EVENT)),
        ("claude-code", lines({"type": "user", "message": HI})),
        ("runs", lines(RUN)),
        ("runs", lines(RUN, RUN)),
        ("runs", json.dumps(RUN, indent=2)),
        ("runs", lines(RUN | {"type": "user", "sessionId": "s"})),
        ("export", lines(HEAD, SAID)),
    ],
)
def test_read_transcripts_the_format_is_told_from_the_content(tmp_path: Path, format: str, content: str) -> None:
    path = write(tmp_path, content)
    told = read_transcripts(path)
    assert {run.format for run in told} == {format}
    assert {run.path for run in told} == {str(path)}
    assert read_transcripts(path, format) == told


def test_read_transcripts_a_chat_of_plain_texts_is_fine_as_either(tmp_path: Path) -> None:
    path = write(tmp_path, lines([HI, {"role": "assistant", "content": "hello"}]))
    assert read_transcripts(path, "openai")[0].steps == read_transcripts(path, "anthropic")[0].steps


SAMPLES = {
    "openai": lines([HI, CALL]),
    "openai-responses": lines([HI, {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c"}]),
    "anthropic": lines([HI, USE]),
    "langfuse": lines({"id": "o", "traceId": "t", "type": "GENERATION", "input": "hi", "output": "hello"}),
    "phoenix": lines(
        {
            "name": "a",
            "context": {"trace_id": "t", "span_id": "s"},
            "span_kind": "LLM",
            "attributes": {"input.value": "hi", "output.value": "hello"},
        }
    ),
    "langsmith": lines({"id": "r", "run_type": "llm", "inputs": {"prompts": ["hi"]}, "outputs": {"output": "hello"}}),
    "smolagents": lines([{"task": "hi", "task_images": None}]),
    "inspect": lines({"status": "success", "eval": {}, "samples": [{"messages": [HI]}]}),
    "langchain": lines([{"type": "human", "data": {"content": "hi"}}]),
    "pydantic-ai": lines([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}]),
    "sharegpt": lines({"conversations": [{"from": "human", "value": "hi"}]}, {"conversations": [{"from": "gpt"}]}),
    "claude-code": lines(EVENT, EVENT),
    "runs": lines(RUN, RUN),
    "export": lines(HEAD, SAID),
    "otlp": lines(SPANS, SPANS),
}


def without_path(path: Path) -> list[Transcript]:
    return [Transcript(id=run.id, steps=run.steps, format=run.format) for run in read_transcripts(path)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: gzip.compress(text),
        lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:]),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\n\r\n" + text + b"\n\n",
    ],
    ids=["gzip", "gzip of two members", "BOM", "CRLF", "blank lines"],
)
def test_read_transcripts_gzip_bom_crlf_and_blank_lines_change_nothing(
    tmp_path: Path, format: str, change: Callable[[bytes], bytes]
) -> None:
    plain = write(tmp_path, SAMPLES[format])
    changed = write(tmp_path, change(SAMPLES[format].encode()), "file.txt")
    assert without_path(changed) == without_path(plain)


@pytest.mark.parametrize(
    ("name", "stem"), [("a.v2.json", "a.v2"), ("a.v2.json.gz", "a.v2"), ("a.gz", "a"), ("a", "a"), (".json", ".json")]
)
def test_read_transcripts_the_id_is_the_stem_of_the_files_name(tmp_path: Path, name: str, stem: str) -> None:
    [run] = read_transcripts(write(tmp_path, lines([HI]), name))
    assert run.id == stem


def test_read_transcripts_text_that_looks_like_a_line_end_is_no_line_end(tmp_path: Path) -> None:
    message = {"role": "user", "content": "a\u2028b\x85c"}
    [run] = read_transcripts(write(tmp_path, json.dumps(message, ensure_ascii=False) + "\n" + json.dumps(HI)))
    assert run.steps[0].content == message["content"]


def test_read_transcripts_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    content = (
        r'{"id": "\uDC00", "steps": [{"role": "user", "content": "a\ud800b \ud83d\ude00 \\ud800 \ud800\ud83d\ude00"}]}'
    )
    [run] = read_transcripts(write(tmp_path, content))
    assert run.steps[0].content == "a\ufffdb 😀 \\ud800 \ufffd😀"
    assert run.id == "\ufffd"


def test_numbers_of_any_size_are_read(tmp_path: Path) -> None:
    arguments = f'{{"nan": NaN, "inf": -Infinity, "big": {"9" * 5000}, "exp": 1e999, "int": {10**400}}}'
    call = f'{{"role": "assistant", "tool_calls": [{{"name": "f", "arguments": {arguments}}}]}}'
    [run] = read_transcripts(write(tmp_path, f'{{"steps": [{call}], "meta": {{"seed": {"1" * 5000}}}}}'))
    read = run.steps[0].tool_calls[0].arguments
    assert read["nan"] != read["nan"]
    assert (read["inf"], read["big"], read["exp"], read["int"]) == (-float("inf"), float("inf"), float("inf"), 10**400)
    assert str(run.steps[0].tool_calls[0])


def test_read_transcripts_a_path_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    assert failure(tmp_path / "none.json").reason == "no such file"
    assert failure(tmp_path).reason == "is a directory, expected a file"
    assert failure("a\0b").reason == "cannot be read: embedded null byte"
    known = f"expected one of {', '.join(FORMATS)}"
    assert failure(write(tmp_path, lines(RUN)), "llama").reason == f"unknown format 'llama', {known}"
    monkeypatch.setattr(source, "open_input", refuse)
    assert failure(write(tmp_path, lines(RUN))).reason == "permission denied, expected a readable file"


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b" \r\n\n", gzip.compress(b"", mtime=0)])
def test_read_transcripts_an_empty_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    assert failure(write(tmp_path, content)).reason == "the file is empty, expected JSON or JSON lines"


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_read_transcripts_bytes_that_are_not_utf_8_are_an_error(tmp_path: Path, start: bytes) -> None:
    error = failure(write(tmp_path, start + lines(RUN, RUN).encode() + b'{"id": "caf\xe9"}'))
    assert (error.reason, error.line) == ("not UTF-8: byte 0xe9, expected JSON in UTF-8", 3)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("hello", 1, "not JSON: Expecting value at column 1"),
        ("hello\nworld\n", 1, "not JSON: Expecting value at column 1"),
        ('{"id": "torn', 1, "not JSON: Unterminated string starting at column 8"),
        (lines(RUN) + "\n{broken\n" + lines(RUN), 3, "not JSON: Expecting property name"),
        (lines(RUN) + '{"id": "cut', 2, "not JSON: Unterminated string"),
        ('{"id": \n' + lines(RUN, RUN), 1, "not JSON: Expecting value"),
        ('{"id": 1}}\n' + lines(RUN), 1, "not JSON: Extra data at column 10"),
        ('[\n  {"role": "user",\n   "content" "hi"}\n]', 3, "not JSON: Expecting ':' delimiter at column 14"),
        (json.dumps(RUN, indent=2)[:-3], 8, "not JSON: Expecting ',' delimiter"),
    ],
)
def test_read_transcripts_what_is_not_json_is_an_error_with_its_line(
    tmp_path: Path, content: str, line: int, reason: str
) -> None:
    error = failure(write(tmp_path, content))
    assert error.line == line
    assert error.reason.startswith(reason)
    assert error.reason.endswith("expected JSON or JSON lines")


@pytest.mark.parametrize(
    "damage",
    [
        gzip.compress(b"[]" * 99, mtime=0)[:-9],
        b"\x1f\x8bnothing at all",
        gzip.compress(b"[]", mtime=0) + b"tail",
        gzip.compress(b"[]", mtime=0)[:10] + b"\xff" * 9,
    ],
)
def test_read_transcripts_a_damaged_gzip_file_is_an_error(tmp_path: Path, damage: bytes) -> None:
    assert failure(write(tmp_path, damage)).reason.startswith(("damaged gzip: ", "truncated gzip"))


@pytest.mark.parametrize(("pack", "which"), [(gzip.compress, " decompressed"), (bytes, "")])
def test_read_transcripts_a_file_that_grows_too_large_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes], which: str
) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 1000)
    path = write(tmp_path, pack(lines(RUN).encode() + b" " * 5_000_000))
    assert failure(path).reason == f"larger than 1000 bytes{which}, the most allowed"


@pytest.mark.slow
def test_read_transcripts_many_runs_of_one_id_are_told_apart_quickly(tmp_path: Path) -> None:
    runs = read_transcripts(write(tmp_path, lines(RUN) * 20_000))
    assert runs[-1].id == "r#20000"


@pytest.mark.parametrize(
    ("content", "line"), [("[" * 200_000, 1), (lines(RUN) + "[" * 200_000 + "\n[]", 2), ("[\n" * 200_000, None)]
)
def test_read_transcripts_json_nested_too_deep_is_an_error(tmp_path: Path, content: str, line: int | None) -> None:
    error = failure(write(tmp_path, content))
    assert (error.reason, error.line) == ("JSON is nested too deep, expected a transcript", line)


@pytest.mark.parametrize("content", ["42", '"hi"', "null", "NaN", "[]", "{}", "[1, 2]", '{"a": 1}', '{"type": "user"}'])
def test_read_transcripts_json_of_another_kind_is_an_unknown_format(tmp_path: Path, content: str) -> None:
    error = failure(write(tmp_path, content))
    assert error.reason == f"unknown format, expected one of {', '.join(FORMATS)}"


def calling(**call: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [call]}


def holding(**block: Any) -> dict[str, Any]:
    return {"role": "user", "content": [block]}


DEEP = json.loads("[" * 150 + "]" * 150)
WRONG: dict[str, tuple[Callable[[Any], Any], str, list[tuple[Any, str]]]] = {
    "openai": (
        lambda message: {"messages": [HI, message]},
        "expected OpenAI messages",
        [
            ({"role": "robot"}, "role 'robot' is not one of system, developer, user, assistant, tool, function"),
            ({"role": 3}, "Expected `str`, got `int` - at `$.messages[1].role`"),
            ({"content": "hi"}, "missing required field `role` - at `$.messages[1]`"),
            ({"role": "user", "content": 3}, "Expected `str | array | null`, got `int` - at `$.messages[1].content`"),
            ({"role": "assistant", "tool_calls": {}}, "Expected `array | null`, got `object`"),
            (calling(), "a tool call without function - at `$.messages[1].tool_calls[0]`"),
            (calling(function={}), "missing required field `name`"),
            (calling(function={"name": "f", "arguments": DEEP}), "nested deeper than 100 levels"),
            ("hi", "Expected `object`, got `str` - at `$.messages[1]`"),
        ],
    ),
    "anthropic": (
        lambda message: {"messages": [HI, message]},
        "expected Anthropic messages",
        [
            ({"role": "tool"}, "role 'tool' is not one of user, assistant, system - at `$.messages[1]`"),
            ({"role": "user", "content": [4]}, "Expected `object`, got `int` - at `$.messages[1].content[0]`"),
            (holding(type="text", text=4), "Expected `str | null`, got `int`"),
            (holding(type="tool_use", id="t"), "a tool_use block without name"),
            (
                holding(type="tool_result", content={"a": 1}),
                "content of a tool_result block: Expected",
            ),
            (holding(type="tool_result", is_error="no"), "Expected `bool | null`, got `str`"),
            ({"role": "user", "usage": {"output_tokens": -1}}, "Expected `int` >= 0"),
            ({"role": "user", "usage": {"output_tokens": 10**400}}, "Expected `int` <= 9007199254740992"),
        ],
    ),
    "claude-code": (
        lambda line: line,
        "expected lines of a Claude Code session",
        [
            ([], "not an object"),
            ({"type": "user"}, "missing required field `message`"),
            (EVENT | {"message": {"role": "user", "content": 5}}, "got `int` - at `$.message.content`"),
            (EVENT | {"message": {"role": "robot"}}, "role 'robot' is not one of user, assistant, system"),
        ],
    ),
    "runs": (
        lambda changed: RUN | changed if isinstance(changed, dict) else changed,
        "expected runs {id, goal, steps",
        [
            ([], "Expected `object`, got `array`"),
            ({"steps": {}}, "Expected `array`, got `object` - at `$.steps`"),
            ({"steps": [HI, {"role": "robot"}]}, "Invalid enum value 'robot' - at `$.steps[1].role`"),
            ({"steps": [{"content": "hi"}]}, "missing required field `role` - at `$.steps[0]`"),
            ({"steps": [{"role": "tool", "tool_result": 5}]}, "Expected `str | null`, got `int`"),
            (
                {"steps": [{"role": "tool", "is_error": 1}]},
                "got `int` - at `$.steps[0].is_error`",
            ),
            ({"steps": [calling()]}, "missing required field `name`"),
            ({"steps": [7]}, "Expected `object`, got `int` - at `$.steps[0]`"),
            ({"id": 1.5}, "Expected `int | str | null`, got `float` - at `$.id`"),
            ({"goal": []}, "Expected `str | null`, got `array` - at `$.goal`"),
            ({"memories": [1]}, "Expected `str`, got `int` - at `$.memories[0]`"),
        ],
    ),
}
"""Format -> how a value stands in a line, the form that is expected, and values with what is wrong with them."""


@pytest.mark.parametrize(
    ("format", "value", "reason"), [(name, value, why) for name, (_, _, all) in WRONG.items() for value, why in all]
)
def test_read_transcripts_a_wrong_value_is_named_with_what_was_expected(
    tmp_path: Path, format: str, value: Any, reason: str
) -> None:
    wrapped, expected, _ = WRONG[format]
    good = {"openai": {"messages": [HI]}, "anthropic": {"messages": [HI]}, "claude-code": EVENT, "runs": RUN}[format]
    error = failure(write(tmp_path, lines(good, wrapped(value))), format)
    assert error.line == 2 and reason in error.reason and expected in error.reason


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (json.dumps(RUN | {"steps": [HI, {"role": "robot"}]}, indent=2), None, "$.steps[1].role"),
        (lines(HI) + "\n" + lines({"role": "robot"}), 3, "role 'robot'"),
        (lines(RUN, RUN | {"steps": []}), 2, "a run without steps, expected one or more"),
        (lines({"messages": [HI, USE]}, {"messages": []}), 2, "a run without steps"),
        (lines([{"role": "system", "content": "x"}]), 1, "a run without steps"),
        (lines([HI, {"type": "function_call", "name": 5}]), 1, "expected OpenAI Responses"),
    ],
)
def test_read_transcripts_the_line_of_a_fault_is_named(
    tmp_path: Path, content: str, line: int | None, reason: str
) -> None:
    error = failure(write(tmp_path, content))
    assert error.line == line and reason in error.reason


def test_read_transcripts_a_file_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="holds no run in the format sharegpt"):
        read_transcripts(write(tmp_path, "[]"), "sharegpt")


KEYS = st.sampled_from(
    "steps messages role content tool_calls function name arguments type text message sessionId id usage memories "
    "summary isSidechain isCompactSummary tool_use_id input goal tool_result is_error system input_tokens".split()
)
WORDS = st.sampled_from(
    ["user", "assistant", "tool", "system", "summary", "text", "tool_use", "tool_result", "<command-"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(), inner, max_size=6),
    max_leaves=30,
)
NAMES = st.none() | st.sampled_from(FORMATS)


def reads_or_refuses(path: Path, format: str | None) -> None:
    try:
        runs = read_transcripts(path, format)
    except TranscriptError:
        return
    assert runs
    assert len({run.id for run in runs}) == len(runs)
    for run in runs:
        assert run.steps
        "".join(
            (run.id, run.goal, *(memory for _, memory in run.memories), *(step.text() for step in run.steps))
        ).encode()


@examples(300)
@given(values=st.lists(JSON, min_size=1, max_size=3), format=NAMES)
def test_any_json_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], format: str | None
) -> None:
    reads_or_refuses(write(tmp_path_factory.getbasetemp(), lines(*values), "any.json"), format)


@examples(300)
@given(
    content=st.binary()
    | st.binary().map(lambda data: gzip.compress(data, mtime=0))
    | st.binary().map(lambda end: lines(EVENT, RUN).encode() + end),
    format=NAMES,
)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, format: str | None
) -> None:
    reads_or_refuses(write(tmp_path_factory.getbasetemp(), content, "any.bin"), format)


MESSAGES = st.fixed_dictionaries({"role": WORDS}, optional={"content": JSON, "tool_calls": JSON, "usage": JSON})


@examples(300)
@given(messages=st.lists(MESSAGES, min_size=1, max_size=4), wrap=st.sampled_from(["messages", "steps", "message"]))
def test_any_messages_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Any], wrap: str
) -> None:
    events = [{"type": message["role"], "message": message} for message in messages]
    values = events if wrap == "message" else [{wrap: messages}]
    reads_or_refuses(write(tmp_path_factory.getbasetemp(), lines(*values), "any.json"), None)


OTHERS = ("zeros", "brackets", "spaces")
BOMBS = {"zeros": b"\0", "objects": b"{},", "brackets": b"[", "spaces": b" "}

PEAK = """
import re, sys
from coherence.core.errors import TranscriptError
from coherence.providers.readers import read_transcripts
from coherence.store.jsonl import verify_jsonl
for read in (read_transcripts, verify_jsonl):
    try:
        print(read(sys.argv[1]))
    except TranscriptError as error:
        print(error)
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "bomb", ["objects", *(pytest.param(bomb, marks=pytest.mark.slow) for bomb in BOMBS if bomb != "objects")]
)
def test_read_transcripts_a_gzip_bomb_takes_a_bounded_part_of_memory(tmp_path: Path, bomb: str) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    part = BOMBS[bomb] * (2**20 // len(BOMBS[bomb]))
    path.write_bytes(gzip.compress(part) * 1024)  # about 1 GiB
    assert path.stat().st_size < 4_000_000
    done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
    *said, peak = done.stdout.splitlines()
    assert "decompressed, the most allowed" in said[0]
    # 50 times the 1 to 3 MB of the file, a line of 64 MiB, and what the imports take
    assert int(peak) < 500_000_000


def test_read_transcripts_what_is_small_may_be_packed_as_tightly_as_it_likes(tmp_path: Path) -> None:
    packed = gzip.compress(lines(RUN).encode() + b" " * 30_000_000)
    assert len(packed) * source.MAX_RATIO < 30_000_000  # less than 32 MiB in any case
    assert [run.id for run in read_transcripts(write(tmp_path, packed))] == [RUN["id"]]


# Readers of others


class Shouts:
    """Files of ``{"shout": text}``."""

    def matches(self, documents: Sequence[source.Document]) -> bool:
        return isinstance(documents[0].value, dict) and "shout" in documents[0].value

    def read(self, source: source.Source) -> Iterator[Transcript]:
        for document in source.documents:
            yield source.transcript([Step(role="user", content=document.value["shout"])], line=document.line)


@contextmanager
def registered(reader: object, name: str = "shouts") -> Iterator[None]:
    register(reader, name=name, group="readers")
    try:
        yield
    finally:
        unregister(name, "readers")


def test_read_transcripts_a_registered_reader_adds_a_format(tmp_path: Path) -> None:
    path = write(tmp_path, lines({"shout": "hi"}))
    assert "unknown format" in failure(path).reason
    with registered(Shouts):
        [run] = read_transcripts(path)
        assert (run.format, run.steps) == ("shouts", (Step(role="user", content="hi"),))
        assert read_transcripts(path, "shouts") == [run]
        # it is asked before those of this package, and leaves theirs to them
        assert read_transcripts(write(tmp_path, lines({"shout": "hi", "messages": [HI]})))[0].format == "shouts"
        assert read_transcripts(write(tmp_path, lines([HI])))[0].format == "openai"
    with registered(Shouts()):
        assert read_transcripts(write(tmp_path, lines({"shout": "hi"})), "shouts")[0].format == "shouts"


def test_read_transcripts_the_last_line_of_a_growing_file_is_left_to_readers_that_want_it(tmp_path: Path) -> None:
    path = write(tmp_path, lines({"shout": "hi"}) + '{"sho')
    with registered(Shouts):
        assert failure(path).line == 2
    with registered(type("Growing", (Shouts,), {"growing": True})):
        assert [run.steps[0].content for run in read_transcripts(path)] == ["hi"]


def gives(runs: Callable[[], Any]) -> Any:
    return type("Bad", (Shouts,), {"read": lambda self, source: runs()})


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        (gives(lambda: 1 / 0), "reader 'shouts' failed: ZeroDivisionError: division by zero"),
        (gives(lambda: []), "reader 'shouts' gave no run"),
        (gives(lambda: [Transcript(id="r", steps=())]), "reader 'shouts' gave a run without steps"),
        (gives(lambda: [5]), "reader 'shouts' failed: ValidationError: Expected `object`, got `int`"),
        (
            gives(lambda: [Transcript(id="r", steps=(Step(role="user", content=5),))]),  # type: ignore[arg-type]
            "reader 'shouts' failed: ValidationError: Expected `str`, got `int` - at `$.steps[0].content`",
        ),
        (type("Loud", (), {"matches": Shouts.matches}), "reader 'shouts' cannot be made by name: TypeError: reader"),
    ],
)
def test_read_transcripts_a_reader_that_fails_is_named(tmp_path: Path, reader: Any, reason: str) -> None:
    path = write(tmp_path, lines({"shout": "hi"}))
    with registered(reader):
        assert failure(path, "shouts").reason.startswith(reason)


def test_read_transcripts_a_reader_that_cannot_tell_its_files_keeps_no_file_from_being_read(tmp_path: Path) -> None:
    blind = type("Blind", (Shouts,), {"matches": lambda self, documents: documents[0].value["kind"]})
    with registered(blind):
        [run] = read_transcripts(write(tmp_path, lines(RUN)))
        assert (run.format, run.warnings) == ("runs", ("reader 'shouts' was left out: KeyError: 'kind'",))
        error = failure(write(tmp_path, lines({"a": 1})))
    assert error.reason.startswith("unknown format, expected one of ") and "shouts; reader 'shouts' was" in error.reason


def test_read_transcripts_what_a_reader_says_is_wrong_is_said_as_it_is(tmp_path: Path) -> None:
    def refuse() -> None:
        raise TranscriptError("file", "not loud enough", 3)

    with registered(gives(refuse)), pytest.raises(TranscriptError, match=r"^file:3: not loud enough$"):
        read_transcripts(write(tmp_path, lines({"shout": "hi"})))
