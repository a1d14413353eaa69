"""Fingerprints of calls and results: what is masked, what is not, and that nothing breaks or slows it."""

import json
import uuid

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.fingerprints import (
    MAX_COUNTS,
    MAX_LINE,
    MAX_PATHS,
    CallTrace,
    ResultTrace,
    trace_call,
    trace_result,
)


def call(tool: str, **arguments: object) -> CallTrace:
    return trace_call(tool, json.dumps(arguments).encode())


def result(text: str, error: bool = False) -> ResultTrace:
    return trace_result(text, error=error)


def fail(text: str) -> ResultTrace:
    return trace_result(text, error=True)


# Calls: exact and masked


def test_trace_call_the_order_of_keys_does_not_matter_anywhere() -> None:
    one = trace_call("f", b'{"a": 1, "b": {"c": 2, "d": [1, 2]}}')
    assert one == trace_call("f", b'{"b":{"d":[1,2],"c":2},"a":1}')
    assert one.exact != trace_call("f", b'{"b":{"d":[2,1],"c":2},"a":1}').exact
    assert one.exact != trace_call("g", b'{"b":{"d":[1,2],"c":2},"a":1}').exact
    assert (len(one.exact), len(one.masked)) == (8, 8)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (str(uuid.UUID(int=2**100)), str(uuid.UUID(int=2**101))),
        (str(uuid.UUID(int=2**100)).upper(), str(uuid.UUID(int=2**101))),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"),
        ("2026-01-02 03:04:05.123+01:00", "2027-12-31 23:59:59.9-05:00"),
        ("req_0123456789ab", "req_ba9876543210"),
        ("/tmp/tmpab12/out.txt", "/tmp/tmpcd34/out.txt"),
        ("%TEMP%\\a1\\b", "%TEMP%\\a2\\b"),
        ("ls  -l", "ls   -l"),
    ],
)
def test_call_trace_what_changes_by_itself_is_masked_and_kept_in_exact(one: str, other: str) -> None:
    assert call("f", x=one).masked == call("f", x=other).masked
    assert call("f", x=one).exact != call("f", x=other).exact


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (123456789012, 123456789013),  # a number, however long, is chosen
        ("part1.txt", "part2.txt"),
        ("2026-01-02", "2026-01-03"),
        ("facade", "decade"),
        ("deadbeefcafe", "cafedeadbeef"),  # no digit: a word
        ("0123456789a", "a9876543210"),  # 11 digits
        ("/tmp/build/a.py", "/tmp/build/b.py"),
        ("/srv/tmpab12/out", "/srv/tmpcd34/out"),
        ("/srv/tmp/a.py", "/srv/tmp/b.py"),
        ("12:30", "12:31"),
    ],
)
def test_call_trace_what_an_agent_chooses_is_not_masked(one: object, other: object) -> None:
    assert call("f", x=one).masked != call("f", x=other).masked


@pytest.mark.parametrize("field", ["description", "explanation", "thought", "reason", "title"])
def test_call_trace_a_display_field_is_not_part_of_what_is_done(field: str) -> None:
    one, other = call("Bash", command="ls", **{field: "one"}), call("Bash", command="ls", **{field: "two"})
    assert (one.masked, one.exact == other.exact) == (other.masked, False)
    assert one.masked == call("Bash", command="ls").masked


def test_call_trace_where_it_is_the_content_it_counts() -> None:
    assert call("think", thought="one").masked != call("think", thought="two").masked
    assert call("create_issue", title="one").masked != call("create_issue", title="two").masked
    assert call("search_by_title", title="one").masked != call("search_by_title", title="two").masked


def test_call_trace_white_space_counts_in_what_is_written() -> None:
    assert call("Write", path="a", content="  x").masked != call("Write", path="a", content="    x").masked


# Calls: what they do


@pytest.mark.parametrize(
    ("tool", "arguments", "access", "paths"),
    [
        ("Read", {"file_path": "/a/../b.py"}, "read", ("/b.py",)),
        ("read_file", {"path": "b.py"}, "read", ("b.py",)),
        ("mcp__files__get_file_contents", {"path": "b.py"}, "read", ("b.py",)),
        ("str_replace_based_edit_tool", {"command": "view", "path": "/a"}, "read", ("/a",)),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "/a"}, "write", ("/a",)),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/x.py\n@@"}, "write", ("src/x.py",)),
        ("Grep", {"pattern": "x", "path": "src"}, "search", ("src",)),
        ("list_files", {}, "search", ()),
        ("Bash", {"command": "cat a.py b.py | head -n 3 > out.txt"}, "shell", ("a.py", "b.py", "out.txt")),
        ("run_command", {"cmd": "sed -n '10,20p' src/app.py"}, "shell", ("src/app.py",)),
        ("shell", {"command": ["bash", "-lc", "tee b < a"]}, "shell", ("b", "a")),
        ("Bash", {"command": "cat > f.py <<'EOF'\ncat x > y\nEOF\ncat z"}, "shell", ("f.py",)),
        ("Bash", {"command": "make all"}, "shell", ()),
        ("get_user", {"user_id": "a"}, "", ()),
        ("update_password", {"password": "a"}, "", ()),
    ],
)
def test_access_and_paths(tool: str, arguments: dict[str, object], access: str, paths: tuple[str, ...]) -> None:
    made = call(tool, **arguments)
    assert (made.access, made.paths) == (access, paths)


def test_paths_are_few_and_plain() -> None:
    made = call("Read", path=[f"f{at}" for at in range(9)], file_path=None, filename=7)
    assert made.paths == ("f0", "f1", "f2", "f3")
    assert len(made.paths) == MAX_PATHS
    assert call("Read", path="x" * 10_000).paths == ()
    assert call("Read", uri="file:///a/b").paths == ("/a/b",)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("wait", {"seconds": 3}),
        ("BashOutput", {"bash_id": "b1"}),
        ("check_job", {"id": 3}),
        ("process", {"action": "poll"}),
        ("Bash", {"command": "sleep 5"}),
        ("Bash", {"command": "cd a && sleep 5 && cat log"}),
        ("Bash", {"command": "systemctl status web"}),
        ("Bash", {"command": "cd a; kubectl rollout status web"}),
        ("execute_bash", {"command": ""}),
    ],
)
def test_call_trace_waiting(tool: str, arguments: dict[str, object]) -> None:
    assert call(tool, **arguments).waits


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "cd a && git status",
        "ls",
        "grep -n status a.py",
        "echo asleep",
        "cat <<E > a\nsleep 5\nE",
        "status",
    ],
)
def test_call_trace_not_waiting(command: str) -> None:
    assert not call("Bash", command=command).waits


def test_call_trace_pages_of_one_thing_share_a_key() -> None:
    one, two = call("Read", path="a", offset=1, limit=50), call("Read", path="a", offset=51, limit=50)
    assert one.page == two.page != ""
    assert one.page != call("Read", path="b", offset=1, limit=50).page
    assert call("Read", path="a").page == ""
    ranges = [call("Bash", command=f"sed -n '{at},{at + 9}p' a.py") for at in (1, 11)]
    assert ranges[0].page == ranges[1].page != ""
    assert call("Bash", command="cat a.py").page == ""


# Results


def test_trace_result_numbers_are_masked_and_counted() -> None:
    one = result("ok 1,234.5 of 7 in 3 ms at 12:30 (0x7ffe12), 45%, v1.2.3, 2026-01-02")
    two = result("ok 1,299.5 of 8 in 31.5 ms at 12:31 (0x7ffe99), 55%, v1.2.4, 2026-01-03")
    assert one.masked == two.masked
    assert one.exact != two.exact
    assert (one.counts, two.counts) == ((1234.5, 7.0, 45.0), (1299.5, 8.0, 55.0))


def test_trace_result_a_number_that_only_names_is_no_count() -> None:
    assert result('Attempt 3 (pid 77, job id: 5, {"id": 9}): 4 left').counts == (4.0,)
    assert result("paid 3, valid 4").counts == (3.0, 4.0)


def test_trace_result_words_are_not() -> None:
    assert result("3 failed").masked != result("3 passed").masked
    assert result("x").masked != fail("x").masked


def test_trace_result_a_comma_that_parts_no_thousands_parts_numbers() -> None:
    assert result("1,2345 [1,2,3] 12,345").counts == (1, 2345, 1, 2, 3, 12345)


def test_trace_result_many_numbers_are_four_a_sum_and_three() -> None:
    counts = result(" ".join(map(str, range(20)))).counts
    assert len(counts) == MAX_COUNTS
    # 4 + 5 + … + 16 = 13 * 10
    assert counts == (0, 1, 2, 3, 130, 17, 18, 19)


@pytest.mark.parametrize(
    "text",
    [
        "HTTP 429",
        "Error code: 429 - slow",
        "Rate limit reached",
        "Overloaded",
        "You have exceeded your current quota, please check your plan",
    ],
)
def test_trace_result_rate_limits(text: str) -> None:
    assert fail(text).rate_limited


def test_trace_result_no_rate_limits() -> None:
    assert not fail("line 429: syntax error").rate_limited
    assert not fail("retry: the limit of 3 errors").rate_limited
    assert not fail("took 429 ms").rate_limited
    assert not fail("a bad quotation mark").rate_limited
    assert not fail("FAIL example.org/gate/internal/quota 0.4s").rate_limited
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
def test_trace_result_the_line_that_says_most(text: str, line: str) -> None:
    assert fail(text).first_line == line


# Whatever comes


def test_trace_result_the_ends_of_a_huge_result_are_masked_and_its_middle_is_compared() -> None:
    middle = "word " * 2_000_000
    assert result(f"took 1 s {middle} 7").masked == result(f"took 2 s {middle} 7").masked
    assert result(f"{middle} a {middle}").masked != result(f"{middle} b {middle}").masked


HOSTILE = [*"a 1 1, 1. 0a /tmp/ 1: 2024- 0x ب١ << '\" \\n".split(), "\n", " ", "\0", "\ud800", "error "]


@pytest.mark.parametrize("text", HOSTILE)
def test_trace_result_a_megabyte_of_anything(text: str) -> None:
    long = text * (1_000_000 // len(text))
    for made in (fail(long), call("Bash", command=long), call("Write", path=long, content=long)):
        assert msgspec.json.decode(msgspec.json.encode(made), type=type(made)) == made
        assert len(msgspec.json.encode(made)) < 6_000


@pytest.mark.parametrize(
    "arguments", [b"null", b"[1]", b'"ls"', b"", b"\xff", b"{", b"1e400", b'"\\ud800"', b"[" * 9999]
)
def test_trace_call_arguments_of_any_shape(arguments: bytes) -> None:
    assert trace_call("Bash", arguments) == trace_call("Bash", arguments)
    assert trace_call("Bash", arguments).exact != trace_call("Bash", arguments + b"1").exact


@given(st.text(), st.booleans(), st.text(), st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none())))
def test_trace_result_nothing_raises_and_everything_can_be_kept(
    text: str, error: bool, tool: str, arguments: dict[str, object]
) -> None:
    came = trace_result(text, error=error)
    made = trace_call(tool, json.dumps(arguments).encode())
    assert msgspec.json.decode(msgspec.json.encode(came), type=ResultTrace) == came
    assert msgspec.json.decode(msgspec.json.encode(made), type=CallTrace) == made
    assert "\n" not in came.first_line


@given(st.integers(0, 2**128 - 1), st.integers(0, 10**9))
def test_trace_result_any_uuid_and_any_number_of_a_result(number: int, count: int) -> None:
    made = result(f"run {uuid.UUID(int=number)} left {count}")
    assert made.masked == result("run 00000000-0000-4000-8000-000000000000 left 1").masked
    assert made.counts == (float(count),)


def test_trace_call_files_come_in_the_order_of_the_arguments_names() -> None:
    made = trace_call("copy_node", b'{"source_path": "/a.txt", "destination_path": "/b.txt"}')
    assert made.paths == ("/b.txt", "/a.txt")  # a set's order would differ between processes
