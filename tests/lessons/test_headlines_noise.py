"""The telling line among what logs, progress and tables say around it."""

from __future__ import annotations

import pytest

from coherence.lessons.normal import normalise

ORDINARY_LINES = {
    "logs": "+ harvest --verbose --jobs 384\n2026-09-16 11:13:03.396 INFO  falcon_api: processed batch 229\n"
    "2026-09-16 11:13:04 [harbor] DEBUG request 74970a51fd1d took 318ms",
    "apt": "Get:1 http://archive.example.org/ubuntu jammy/main amd64 zlib1g amd64 1.2.11 [58 kB]\nFetched 58 kB in 2s",
    "kubectl": "deployment.apps/exporter configured\nservice/console unchanged\n"
    "  Normal   Pulled     5s  kubelet  Container image already present on machine",
    "warned": "2026-09-16 11:13:03.396 WARN delta-core slow response (286 ms)",
}

TELLING = [
    "curl: (60) SSL certificate problem: unable to get local issuer certificate",
    "mailer-7e095ebf9d-c40bc   0/1     CrashLoopBackOff   157 (7677s ago)   7601m",
    "mailer-7e095ebf9d-c40bc   0/1     ContainerEvicted   0          76m",
    "Error: INSTALLATION FAILED: cannot re-use a name that is still in use",
    "Error: a release named pricing already exists.",
]


@pytest.mark.parametrize("around", ORDINARY_LINES.values(), ids=ORDINARY_LINES)
@pytest.mark.parametrize("line", TELLING)
def test_headlines_noise_ordinary_lines_around_an_error_change_nothing(line: str, around: str) -> None:
    alone = normalise(line)
    for text in (f"{around}\n{line}", f"{line}\n{around}", f"{around}\n{line}\nError: Job failed: exit code 1"):
        shape = normalise(text)
        assert (shape.template, shape.signature, shape.prose) == (alone.template, alone.signature, False)


def test_headlines_noise_a_code_in_capitals_that_names_no_fault_is_not_telling() -> None:
    shape = normalise("loaded MAX_POOL_SIZE from env\nopen failed: disk quota reached")
    assert shape.template == "open failed: disk quota reached"


def test_headlines_noise_a_low_level_says_less_than_any_other_line() -> None:
    assert normalise("INFO  batch 7\nDEBUG step 8\nthe roof is burning now").template == "the roof is burning now"


def test_headlines_noise_what_is_retried_yields_to_what_was_killed() -> None:
    text = "    Reason:  CrashLoopBackOff\n    Last State:  Terminated\n    Reason:  OOMKilled"
    assert "OOMKilled" in normalise(text).template


def test_headlines_noise_a_panic_without_a_colon_does_not_take_the_next_line() -> None:
    text = "thread 'main' panicked at src/main.rs:3:4\n   Compiling serde v1.0.1"
    assert "Compiling" not in normalise(text).template


def test_headlines_noise_a_generated_suffix_is_no_part_of_a_name() -> None:
    one, two = (
        normalise(f"{name}   0/1  CrashLoopBackOff  3") for name in ("api-7d9f8b6c5d-x7k2p", "api-09f70cf8d1-6c3a1")
    )
    assert [slot.value for slot in one.slots if slot.kind == "name"] == ["api"]
    assert [slot.value for slot in two.slots if slot.kind == "name"] == ["api"]
    kept = normalise("No module named 'pytest-benchmark-tools'")
    assert [slot.value for slot in kept.slots] == ["pytest-benchmark-tools"]


@pytest.mark.parametrize("text", ["relation doesn't exist", "the table isn't there", "module can’t be loaded"])
def test_headlines_noise_a_contraction_is_no_name(text: str) -> None:
    assert normalise(text).slots == ()
