"""The line of an output that says what went wrong, whatever ran the command."""

from __future__ import annotations

import pytest

from coherence.lessons.clean import clean_lines
from coherence.lessons.error_words import TELLING
from coherence.lessons.headlines import MAX_SCORED, find_headline, weighed
from coherence.lessons.normal import normalise

NOISE = "".join(f"[{number}/900] Building CXX object src/module_{number}.cc.o\n" for number in range(900))

CHOSEN = [
    ("a.c:1:1: error: unknown type name 'a'\na.c:9:1: error: expected ';'", "unknown type name 'a'"),
    ("make: *** [Makefile:3: app] Error 2\nx.c:3:5: error: unknown type name 'u8'", "unknown type name 'u8'"),
    ("npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! Missing script: build", "Missing script: build"),
    ("npm WARN deprecated x@1: no longer supported\nnpm ERR! Missing script: build", "Missing script: build"),
    ("Command failed with exit code 1\nfatal: not a git repository", "not a git repository"),
    ("running 3 steps\nall fine\ncannot open the index", "cannot open the index"),
    ("first line\nsecond line", "first line"),
    ("first line\n    at f (/srv/a.js:8:5)\n    at /srv/b.js:508:18", "first line"),
    ("E   assert 1 == 2\n\nt.py:3: AssertionError\nE   assert 3 == 4", "assert 1 == 2"),
    (
        "java.lang.IllegalStateException: outer\n\tat a.B.c(B.java:1)\nCaused by: a.CException: inner",
        "a.CException: inner",
    ),
    ("warning: unused variable\nerror[E0425]: cannot find value `x`", "error[E0425]: cannot find value `x`"),
]


@pytest.mark.parametrize(("text", "message"), CHOSEN)
def test_find_headline_the_most_telling_line_is_chosen(text: str, message: str) -> None:
    found = find_headline(clean_lines(text)).message
    assert found == message or message.endswith(found)


def test_find_headline_a_message_is_found_at_both_ends_of_a_long_output() -> None:
    first = "src/x.cc:3:5: error: unknown type name 'u8'\n"
    expected = normalise(first).signature
    assert normalise(first + NOISE).signature == expected
    assert normalise(NOISE + first).signature == expected
    assert normalise(NOISE).signature != expected


WORK = [f"reading part {at} of the input" for at in range(3 * MAX_SCORED)]


@pytest.mark.parametrize(
    "told",
    [
        "ValueError: the disk is full",
        "fatal: unable to read the tree",
        "qemu: unsupported machine type",
        "bind: address already in use",
        "input.c: duplicate case value",
    ],
)
@pytest.mark.parametrize("at", [0, len(WORK) // 2, len(WORK)])
def test_find_headline_a_telling_line_is_found_wherever_it_stands_in_a_long_output(told: str, at: int) -> None:
    assert find_headline([*WORK[:at], told, *WORK[at:]]).message.endswith(told.partition(": ")[2])


@pytest.mark.parametrize("word", TELLING)
def test_weighed_no_telling_word_is_passed_over_in_a_long_output(word: str) -> None:
    lines = [*WORK[:MAX_SCORED], f"it {word} x", *WORK]
    assert MAX_SCORED in weighed(lines)
    assert len(weighed(lines)) <= MAX_SCORED


def test_find_headline_what_says_only_that_something_failed_gives_way_to_the_line_before() -> None:
    text = "compiling the kernel\nout of luck today\nmake: *** [all] Error 2"
    assert normalise(text).template == "out of luck today"
    assert normalise("make: *** [all] Error 2").template.startswith("make")  # near miss: nothing stands before


ERRORS = [
    "bash: protoc: command not found",
    "cannot open shared object: libfoo.so.2 is missing",
    "fatal: bad revision 'release/4'",
    "curl: (28) Connection timed out after 5001 milliseconds",
    "KeyError: 'region'",
    'relation "invoices" does not exist',
]

AROUND = {
    "actions": (
        "2026-03-01T10:00:00.1234567Z ##[group]Run make ci\n"
        "2026-03-01T10:00:00.1234567Z + set -euo pipefail\n"
        "2026-03-01T10:00:01.1234567Z + ./ci/run.sh --no-error-log\n"
        "2026-03-01T10:00:02.1234567Z {}\n"
        "2026-03-01T10:00:03.1234567Z ##[error]Process completed with exit code 1."
    ),
    "tabbed log": "build\tRun tests\t2026-03-01T10:00:00.12Z {}\nbuild\tRun tests\t2026-03-01T10:00:01.12Z done",
    "container build": (
        "#7 [4/7] RUN ./ci/build.sh\n#7 0.214 + export HOME=/root\n#7 0.377 {}\n"
        '#7 ERROR: process "/bin/sh -c ./ci/build.sh" did not complete successfully: exit code: 1'
    ),
    "compose": "db-1   | ready for connections\nweb-1  | {}\nweb-1 exited with code 1\nAborting on container exit...",
    "journal": (
        'Mar 01 10:00:00 web1 app[812]: level=warn msg="slow request failed" took=900ms\n'
        "Mar 01 10:00:01 web1 app[812]: {}\n"
        "Mar 01 10:00:02 web1 systemd[1]: app.service: Main process exited, code=exited, status=1/FAILURE\n"
        "Mar 01 10:00:02 web1 systemd[1]: app.service: Failed with result 'exit-code'."
    ),
    "gradle": (
        "Starting a Gradle Daemon, 1 incompatible Daemon could not be reused, use --status for details\n"
        "> Task :app:compileJava FAILED\n\n* What went wrong:\nExecution failed for task ':app:compileJava'.\n> {}\n\n"
        "* Try:\n> Run with --info or --debug option to get more log output.\n\nBUILD FAILED in 3s"
    ),
    "maven": (
        "[INFO] Scanning for projects...\n[ERROR] {}\n[INFO] BUILD FAILURE\n[ERROR] -> [Help 1]\n"
        "[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch."
    ),
    "cargo": (
        "   Compiling thiserror v1.0.50\nwarning: unused import: `std::fmt::Error`\n --> src/lib.rs:3:5\n{}\n"
        "error: could not compile `app` (lib) due to 1 previous error; 1 warning emitted"
    ),
    "go test": "--- PASS: TestErrorHandling (0.01s)\n    b_test.go:21: {}\n--- FAIL: TestB (0.12s)\nFAIL",
    "jest": "  ✓ handles errors (3 ms)\nFAIL src/b.test.js\n    {}\n\nTests:       1 failed, 3 passed, 4 total",
    "configure": "checking for strerror_r... not found\nchecking for error_at_line... no\n{}\n+ echo 'failed with 1'",
    "apt": (
        "Hit:1 http://deb.example.net InRelease\nReading package lists... Done\n"
        "libgpg-error0 is already the newest version (1.46-1).\n{}"
    ),
    "npm": (
        "> app@1.2.3 build\n> node scripts/build.js\n\n{}\nnpm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! \n"
        "npm ERR! A complete log of this run can be found in:\nnpm ERR!     /home/dev/.npm/_logs/debug-0.log"
    ),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("output", AROUND.values(), ids=AROUND.keys())
def test_normalise_what_runs_a_command_does_not_hide_its_error(output: str, error: str) -> None:
    assert normalise(output.format(error)).signature == normalise(error).signature


QUIET = [
    "Building CXX object src/error_codes.cpp.o",
    "--- PASS: TestErrorHandling (0.01s)",
    "+ set -euo pipefail",
    "0 errors, 0 failed",
    'Release "web" does not exist. Installing it now.',
]


@pytest.mark.parametrize("line", QUIET)
def test_find_headline_a_line_that_only_sounds_like_an_error_loses(line: str) -> None:
    assert find_headline([line, "the index is not readable"]).message == "the index is not readable"


def test_normalise_a_headline_with_names_takes_none_from_below() -> None:
    shape = normalise("Error: cannot find module 'a'\n    It was required by 'b'")
    assert [slot.value for slot in shape.slots] == ["a"]


def test_normalise_a_tag_behind_a_name_is_no_part_of_it() -> None:
    said = "npm ERR! 404  '{}' is not in this registry."
    assert normalise(said.format("leftpad")) == normalise(said.format("leftpad@latest"))


ORDINARY_LINES = {
    "logs": "+ harvest --verbose --jobs 384\n2026-09-16 11:13:03.396 INFO  falcon_api: processed batch 229\n"
    "2026-09-16 11:13:04 [harbor] DEBUG request 74970a51fd1d took 318ms",
    "apt": "Get:1 http://archive.example.org/ubuntu jammy/main amd64 zlib1g amd64 1.2.11 [58 kB]\nFetched 58 kB in 2s",
    "kubectl": "deployment.apps/exporter configured\nservice/console unchanged\n"
    "  Normal   Pulled     5s  kubelet  Container image already present on machine",
    "warned": "2026-09-16 11:13:03.396 WARN delta-core slow response (286 ms)",
}

PLAIN = [
    "curl: (60) SSL certificate problem: unable to get local issuer certificate",
    "mailer-7e095ebf9d-c40bc   0/1     CrashLoopBackOff   157 (7677s ago)   7601m",
    "mailer-7e095ebf9d-c40bc   0/1     ContainerEvicted   0          76m",
    "Error: INSTALLATION FAILED: cannot re-use a name that is still in use",
    "Error: a release named pricing already exists.",
]


@pytest.mark.parametrize("around", ORDINARY_LINES.values(), ids=ORDINARY_LINES)
@pytest.mark.parametrize("line", PLAIN)
def test_normalise_ordinary_lines_around_an_error_change_nothing(line: str, around: str) -> None:
    alone = normalise(line)
    for text in (f"{around}\n{line}", f"{line}\n{around}", f"{around}\n{line}\nError: Job failed: exit code 1"):
        shape = normalise(text)
        assert (shape.template, shape.signature, shape.prose) == (alone.template, alone.signature, False)


def test_normalise_a_generated_suffix_is_no_part_of_a_name() -> None:
    one, two = (
        normalise(f"{name}   0/1  CrashLoopBackOff  3") for name in ("api-7d9f8b6c5d-x7k2p", "api-09f70cf8d1-6c3a1")
    )
    assert [slot.value for slot in one.slots if slot.kind == "name"] == ["api"]
    assert [slot.value for slot in two.slots if slot.kind == "name"] == ["api"]
    kept = normalise("No module named 'pytest-benchmark-tools'")
    assert [slot.value for slot in kept.slots] == ["pytest-benchmark-tools"]


@pytest.mark.parametrize("text", ["relation doesn't exist", "the table isn't there", "module can’t be loaded"])
def test_normalise_a_contraction_is_no_name(text: str) -> None:
    assert normalise(text).slots == ()
