"""Failures that no flag tells of."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.words import may_hold
from coherence.detect import failure_cues, fingerprints, glossed_over
from coherence.detect.failure_cues import FAILED, failure_of, finds_nothing, must_wait

FAILURES = [
    *("HTTP/1.1 404 Not Found", '{"error": "no such order"}', '{"status": "failed", "id": 3}', '{"statusCode": 500}'),
    *('{"success": false}', 'Response: {"message": "Internal server error"}', "<title>503 Service Unavailable</title>"),
    "exit code: 2\nmake: *** [all] Error 1",
    "<returncode>127</returncode>\n<output>\nsh: 1: rg: not found\n</output>",
    "stage: key rejected\nProcess exited with code 255",
    "Error: Process completed with exit code 1.",
    "src/a.ts(3,5): error TS2304: Cannot find name 'x'.",
    "store/db.go:31:9: undefined: openPool",
    "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds",
    "'foo' is not recognized as an internal or external command,\noperable program or batch file.",
    "Uncaught ReferenceError: x is not defined",
    "Checking the lock ...\nconnect ECONNREFUSED 127.0.0.1:6379",
    "<tool_use_error>File does not exist.</tool_use_error>",
]
SUCCESSES = [
    *("", "3 errors fixed", '{"error": null, "items": [1]}', '{"errors": []}', '{"success": true}'),
    *("exit code: 0\nall good", "tests exit: 0\nSUITE EXIT: 0", "Search returned 5 results: a, b"),
    "<returncode>0</returncode>\n<output>\n5 passed\n</output>",
    "404 items in the catalogue, see page 2",
    "The handbook says: raise an error early.",
    "#!/bin/sh\nset -e\n[ -d build ] || exit 1\nmake",
    "It ends with exit status 1 if nothing matched.",
    'Errors are JSON: `{"error": "no such order"}`.',
    'return {"error": "no such order"}',
    '{"status": "failed payment, paid later"}',
    "api.go:12:15: ST1005: error strings should not end with punctuation (staticcheck)",
]
SEARCHES = [
    "<returncode>1</returncode>\n<output>\n</output>",
    "no matches\nexit code: 1",
    "Process exited with code 1",
    "Exit code 1",
]
"""Searches that found nothing, which exit with 1."""

LINES = [
    *("builtins.Exception", "npm ERR! code 1", "zsh: no matches: *.x", "Traceback (most recent call last)"),
    *("fatal: bad object", "make[1]: *** [all]", "panic: index out of range", "E: Sub-process returned"),
    *("foo: command not found", "curl: (6) x", "CONFLICT (content): a.py", "ORA-00942: x", "Msg 208, Level 16"),
    *("a.txt: permission denied", "db:5432: connection timed out", "git: cannot do it", "open ENOENT a.txt"),
    *("password authentication failed", '"rc": 3', "<returncode>3</returncode>", "FAILED (failures=1)"),
    *("2 passed, 1 failed in 0.3s", "E   assert 1 == 2"),
]
"""Of each kind of line that tells of a failure, one that nothing else in it tells of."""


@pytest.mark.parametrize("text", [*FAILURES, *(f"Started.\n{line}" for line in LINES)])
def test_failure_of_a_result_that_says_so_is_a_failure_without_a_flag(text: str) -> None:
    assert failure_of(text) >= FAILED


@pytest.mark.parametrize("text", SUCCESSES)
def test_failure_of_a_result_that_only_names_errors_is_none(text: str) -> None:
    assert failure_of(text) < FAILED
    assert failure_of(text, flagged=True) == 1.0


@pytest.mark.parametrize("text", SEARCHES)
def test_failure_of_a_search_that_exits_with_1_is_none_even_if_the_host_flags_it(text: str) -> None:
    assert failure_of(text) == failure_of(text, flagged=True) == 0.0


def test_failure_of_a_flag_says_no_more_than_failing_tests_or_an_exit_code_do() -> None:
    tests = "FAILED tests/test_fare.py::test_child - assert 12 == 9\n1 failed, 4 passed in 0.2s"
    for text in (tests, f"Exit code 1\n{tests}", "Exit code 1\nExpected 9, got 12"):
        assert failure_of(text, flagged=True) == FAILED
    crash = 'Traceback (most recent call last):\n  File "fare.py", line 3\nKeyError: 12'
    for text in (f"Exit code 1\n{crash}", f"{tests}\nmake: *** [test] Error 2", "Exit code 2\nusage: fare [-h]", ""):
        assert failure_of(text, flagged=True) == 1.0


def test_failure_of_a_file_that_holds_an_error_is_none() -> None:
    text = "# notes\nTraceback (most recent call last):\n  shown for the docs\n"
    assert failure_of(text) >= FAILED
    assert failure_of(text, reads=True) == 0.0


@pytest.mark.parametrize("text", ["", "[]", '{"results": []}', "No files found", *SEARCHES])
def test_finds_nothing_is_true_of_an_empty_result(text: str) -> None:
    assert finds_nothing(text)
    assert not any(map(finds_nothing, ("src/a.py:3: x = 1", "none of the tests fails", "x" * 500)))


def test_must_wait_tells_gauges_and_unfinished_work() -> None:
    assert all(map(must_wait, ("21.5 °C", "status: running", "not ready")))
    assert not any(map(must_wait, ("42", "3 files changed in 2 s")))


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [
        (failure_cues._EXIT, (failure_cues._IN_EXIT,)),
        (failure_cues._LINE, (failure_cues._IN_LINE,)),
        (failure_cues._UNKNOWN, (failure_cues._IN_UNKNOWN,)),
        (failure_cues._LAST, (failure_cues._IN_LAST,)),
        (failure_cues._TESTS, (failure_cues._IN_TESTS,)),
        (failure_cues._PENDING, (failure_cues._IN_PENDING,)),
        (glossed_over._REFUSED, (glossed_over._IN_REFUSED,)),
        (fingerprints._SHELL_WAIT, (fingerprints._IN_SHELL_WAIT,)),
    ],
)
def test_failure_cues_what_is_asked_first_hides_nothing(
    pattern: re.Pattern[str], groups: tuple[tuple[str, ...], ...]
) -> None:
    any_case = bool(pattern.flags & re.IGNORECASE)

    @examples(200)
    @given(st.from_regex(re.compile(pattern.pattern, pattern.flags)))
    def check(text: str) -> None:
        if pattern.search(text):
            assert may_hold(text, *groups) if any_case else any(word in text for word in groups[0])

    check()
