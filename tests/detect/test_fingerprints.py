"""Fingerprints of calls and results: what is masked, what is not, and that nothing breaks or slows it."""

from __future__ import annotations

import json
import uuid

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.fingerprints import (
    MAX_COUNTS,
    MAX_LINE,
    CallTrace,
    ResultTrace,
    trace_call,
    trace_result,
)


def call(tool: str, **arguments: object) -> CallTrace:
    return trace_call(tool, json.dumps(arguments).encode())


def shell(command: str) -> CallTrace:
    return call("Bash", command=command)


def result(text: str, error: bool = False) -> ResultTrace:
    return trace_result(text, error=error)


def test_trace_call_the_order_of_keys_does_not_matter_anywhere() -> None:
    one = trace_call("f", b'{"a": 1, "b": {"c": 2, "d": [1, 2]}}')
    assert one == trace_call("f", b'{"b":{"d":[1,2],"c":2},"a":1}')
    assert one.exact != trace_call("f", b'{"b":{"d":[2,1],"c":2},"a":1}').exact
    assert one.exact != trace_call("g", b'{"b":{"d":[1,2],"c":2},"a":1}').exact


UUIDS = str(uuid.UUID(int=2**100)), str(uuid.UUID(int=2**101))


@pytest.mark.parametrize(
    ("one", "other", "masked"),
    [
        (*UUIDS, True),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", True),
        ("2026-01-02 03:04:05.123+01:00", "2027-12-31 23:59:59.9-05:00", True),
        ("req_0123456789ab", "req_BA9876543210", True),
        ("/tmp/tmpab12/out.txt", "/tmp/tmpcd34/out.txt", True),
        ("%TEMP%\\a1\\b", "%TEMP%\\a2\\b", True),
        ("ls  -l", "ls   -l", True),
        (123456789012, 123456789013, False),  # a number, however long, is chosen
        ("part1.txt", "part2.txt", False),
        ("2026-01-02", "2026-01-03", False),
        ("deadbeefcafe", "cafedeadbeef", False),  # no digit: a word
        ("0123456789a", "a9876543210", False),  # 11 digits
        ("/tmp/build/a.py", "/tmp/build/b.py", False),
        ("/srv/tmpab12/out", "/srv/tmpcd34/out", False),
        ("/srv/tmp/a.py", "/srv/tmp/b.py", False),
        ("12:30", "12:31", False),
    ],
)
def test_call_trace_masks_what_changes_by_itself_and_not_what_an_agent_chooses(
    one: object, other: object, masked: bool
) -> None:
    assert (call("f", x=one).masked == call("f", x=other).masked) is masked
    assert call("f", x=one).exact != call("f", x=other).exact


def test_call_trace_leaves_out_a_field_that_only_says_why_and_keeps_one_that_is_the_content() -> None:
    for field in ("description", "explanation", "thought", "reason", "title"):
        one, other = (call("Bash", command="ls", **{field: why}) for why in ("one", "two"))
        assert one.masked == other.masked == shell("ls").masked and one.exact != other.exact
    for tool, field in (("think", "thought"), ("create_issue", "title"), ("search_by_title", "title")):
        assert call(tool, **{field: "one"}).masked != call(tool, **{field: "two"}).masked
    assert call("Write", path="a", content="  x").masked != call("Write", path="a", content="    x").masked


@pytest.mark.parametrize(
    ("tool", "arguments", "access", "paths"),
    [
        ("Read", {"file_path": "/a/../b.py"}, "read", ("/b.py",)),
        ("Read", {"uri": "file:///a/b"}, "read", ("/a/b",)),
        ("Read", {"path": [f"f{at}" for at in range(9)], "filename": 7}, "read", ("f0", "f1", "f2", "f3")),
        ("Read", {"path": "x" * 10_000}, "read", ()),
        ("mcp__files__get_file_contents", {"path": "b.py"}, "read", ("b.py",)),
        ("str_replace_based_edit_tool", {"command": "view", "path": "/a"}, "read", ("/a",)),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "/a"}, "write", ("/a",)),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/x.py\n@@"}, "write", ("src/x.py",)),
        # a set of names would have another order in each process
        ("copy_node", {"source_path": "/a.txt", "destination_path": "/b.txt"}, "write", ("/b.txt", "/a.txt")),
        ("Grep", {"pattern": "x", "path": "src"}, "search", ("src",)),
        ("list_files", {}, "search", ()),
        ("Bash", {"command": "cat a.py b.py | head -n 3 > out.txt"}, "shell", ("a.py", "b.py", "out.txt")),
        ("run_command", {"cmd": "sed -n '10,20p' src/app.py"}, "shell", ("src/app.py",)),
        ("shell", {"command": ["bash", "-lc", "tee b < a"]}, "shell", ("b", "a")),
        ("Bash", {"command": "cat > f.py <<'EOF'\ncat x > y\nEOF\ncat z"}, "shell", ("f.py",)),
        ("get_user", {"user_id": "a"}, "", ()),
        ("update_password", {"password": "a"}, "", ()),
    ],
)
def test_trace_call_access_and_paths(tool: str, arguments: dict[str, object], access: str, paths: object) -> None:
    made = call(tool, **arguments)
    assert (made.access, made.paths) == (access, paths)


WAITING = "sleep 5|cd a && sleep 5 && cat log|systemctl status web|cd a; kubectl rollout status web|"
NOT_WAITING = "git status|cd a && git status|ls|grep -n status a.py|echo asleep|cat <<E > a\nsleep 5\nE|status"


def test_call_trace_waits_where_a_tool_or_a_command_does() -> None:
    assert [command for command in WAITING.split("|") if not shell(command).waits] == []
    assert [command for command in NOT_WAITING.split("|") if shell(command).waits] == []
    assert call("wait", seconds=3).waits and call("BashOutput", bash_id="b1").waits
    assert call("check_job", id=3).waits and call("process", action="poll").waits


def test_call_trace_pages_of_one_thing_share_a_key() -> None:
    one, two = call("Read", path="a", offset=1, limit=50), call("Read", path="a", offset=51, limit=50)
    assert one.page == two.page != ""
    assert one.page != call("Read", path="b", offset=1, limit=50).page
    assert shell("sed -n '1,10p' a.py").page == shell("sed -n '11,20p' a.py").page != ""
    assert call("Read", path="a").page == shell("cat a.py").page == ""


def test_result_trace_masks_numbers_and_counts_the_plain_ones() -> None:
    one = result("ok 1,234.5 of 7 in 3 ms at 12:30 (0x7ffe12), 45%, v1.2.3, 2026-01-02")
    two = result("ok 1,299.5 of 8 in 31.5 ms at 12:31 (0x7ffe99), 55%, v1.2.4, 2026-01-03")
    assert one.masked == two.masked and one.exact != two.exact
    assert (one.counts, two.counts) == ((1234.5, 7.0, 45.0), (1299.5, 8.0, 55.0))
    assert result("3 failed").masked != result("3 passed").masked
    assert result("x").masked != result("x", error=True).masked


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ('Attempt 3 (pid 77, job id: 5, {"id": 9}): 4 left', (4,)),  # the others only name
        ("paid 3, valid 4", (3, 4)),
        ("1,2345 [1,2,3] 12,345", (1, 2345, 1, 2, 3, 12345)),
        (" ".join(map(str, range(20))), (0, 1, 2, 3, 130, 17, 18, 19)),  # 4 + 5 + … + 16 = 13 * 10
    ],
)
def test_result_trace_counts(text: str, counts: tuple[float, ...]) -> None:
    assert result(text).counts == counts and len(counts) <= MAX_COUNTS


LIMITED = (
    "HTTP 429|Error code: 429 - slow|Rate limit reached|Overloaded|You have exceeded your current quota, see above"
)
NOT_LIMITED = (
    "line 429: syntax error|retry: the limit of 3 errors|took 429 ms|a bad quotation mark"
    "|FAIL example.org/gate/internal/quota 0.4s"
)


def test_result_trace_is_rate_limited_where_a_service_says_so() -> None:
    assert [text for text in LIMITED.split("|") if not result(text, error=True).rate_limited] == []
    assert [text for text in NOT_LIMITED.split("|") if result(text, error=True).rate_limited] == []
    assert not result("word " * 500 + "a rate limit is explained in this book").rate_limited


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'Traceback (most recent call last):\n  File "x", line 3\n    f()\nValueError: bad\n\nlater',
            "ValueError: bad",
        ),
        ("building\n  npm ERR! missing script: test\nError: x", "Error: x"),
        ("\n\n  no luck \nagain", "no luck"),
        ("collected 3\nE   assert 1 == 2\nFAILED a.py", "FAILED a.py"),
        ("Error: " + "x" * 999, "Error: " + "x" * (MAX_LINE - 7)),
        ("Traceback (most recent call last)", "Traceback (most recent call last)"),
        ("", ""),
    ],
)
def test_result_trace_first_line_of_an_error_is_the_one_that_says_most(text: str, line: str) -> None:
    assert result(text, error=True).first_line == line


def test_trace_result_the_ends_of_a_huge_result_are_masked_and_its_middle_is_compared() -> None:
    middle = "word " * 2_000_000
    assert result(f"took 1 s {middle} 7").masked == result(f"took 2 s {middle} 7").masked
    assert result(f"{middle} a {middle}").masked != result(f"{middle} b {middle}").masked


HOSTILE = [*"a 1 1, 1. 0a /tmp/ 1: 2024- 0x ب١ << '\" \\n".split(), "\n", " ", "\0", "\ud800", "error "]


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[pytest.mark.slow] * (at % 3 > 0)) for at, text in enumerate(HOSTILE)]
)
def test_trace_result_and_trace_call_of_a_megabyte_are_small(text: str) -> None:
    long = text * (1_000_000 // len(text))
    for made in (result(long, error=True), shell(long), call("Write", path=long, content=long)):
        assert len(msgspec.json.encode(made)) < 6_000


@pytest.mark.parametrize(
    "arguments", [b"null", b"[1]", b'"ls"', b"", b"\xff", b"{", b"1e400", b'"\\ud800"', b"[" * 9999]
)
def test_trace_call_of_arguments_of_any_shape(arguments: bytes) -> None:
    assert trace_call("Bash", arguments) == trace_call("Bash", arguments)
    assert trace_call("Bash", arguments).exact != trace_call("Bash", arguments + b"1").exact


@given(st.text(), st.booleans(), st.text(), st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none())))
def test_trace_result_and_trace_call_never_raise_and_can_be_kept(
    text: str, error: bool, tool: str, arguments: dict[str, object]
) -> None:
    came = result(text, error)
    made = trace_call(tool, json.dumps(arguments).encode())
    assert msgspec.json.decode(msgspec.json.encode(came), type=ResultTrace) == came
    assert msgspec.json.decode(msgspec.json.encode(made), type=CallTrace) == made
    assert "\n" not in came.first_line


@given(st.integers(0, 2**128 - 1), st.integers(0, 10**9))
def test_trace_result_masks_any_uuid_and_counts_any_number(number: int, count: int) -> None:
    made = result(f"run {uuid.UUID(int=number)} left {count}")
    assert made.masked == result("run 00000000-0000-4000-8000-000000000000 left 1").masked
    assert made.counts == (float(count),)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("Exit code 2\nls: x is missing", "ls: x is missing"),
        ("Exit code 1\n\n  boom\nmore", "boom"),
        ("Exit code 127", "Exit code 127"),
        ("Exit code 2\nnothing\nerror: y", "error: y"),
    ],
)
def test_trace_result_shows_what_a_program_said_and_not_its_exit_status(error: str, line: str) -> None:
    assert trace_result(error, error=True).first_line == line
