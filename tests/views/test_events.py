"""Events as they are shown, and the part of a text that a finding rests on."""

from __future__ import annotations

import msgspec
import pytest

from coherence.core.events import (
    Compaction,
    Correction,
    Event,
    Fault,
    Feedback,
    Memory,
    Message,
    Outcome,
    ToolCall,
    encode_event,
    kind_of,
)
from coherence.store.rows import EventRow
from coherence.views.events import MAX_PART, MAX_TEXT, evidence_of, quoted_part, view_of


def row(event: Event) -> EventRow:
    return EventRow(3, 1.5, kind_of(event), encode_event(event))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Message("user", "hello"), "hello"),
        (Message("system", "", firing="loop-1"), "guidance loop-1 has reached the agent"),
        (Outcome(success=True), "the task succeeded"),
        (Outcome(success=False, score=0.25), "the task failed, score 0.25"),
        (Outcome(), "the task ended"),
        (Outcome(success=True, text="merged"), "merged"),
        (Feedback(-0.5), "judgement: -0.5"),
        (Feedback(about="loop-1"), "judgement of loop-1: none"),
        (Feedback(text="well done"), "well done"),
        (Compaction("so far"), "so far"),
        (Memory("likes tea"), "likes tea"),
        (Correction("use tabs"), "use tabs"),
        (Fault("embedder", "OSError", "gone"), "gone"),
    ],
)
def test_view_of_says_what_happened(event: Event, text: str) -> None:
    view = view_of(row(event))
    assert (view.seq, view.ts, view.kind, view.text) == (3, 1.5, kind_of(event), text)


def test_view_of_bounds_texts_and_shows_what_no_version_knows() -> None:
    assert len(view_of(row(Message("user", "x" * 10**6))).text) == MAX_TEXT
    assert view_of(EventRow(1, 1.0, "dance", '{"kind":"dance"}')).text == '{"kind":"dance"}'
    assert view_of(EventRow(1, 1.0, "purged", '{"kind":"purged"}')).text == ""


@pytest.mark.parametrize(
    ("text", "why", "part"),
    [
        ("One. The ID is 8200000. Two.", "not grounded: “8200000” - occurs in nothing", "The ID is 8200000."),
        # the longest of two quotes
        ("It is 16. It is 1600.", "“16” and “1600” are new", "It is 1600."),
        # a quote that was cut
        (
            "See https://a.example/very/long/path now\nBye",
            "“https://a.example/very…” is new",
            "See https://a.example/very/long/path now",
        ),
        ("ALL TESTS PASS", 'it claims "all tests pass"', "ALL TESTS PASS"),
        # without a quote: the most words in common, two at least
        (
            "Hello you. Otherwise ask for assistance. Bye.",
            "it is about certificate, otherwise, assistance",
            "Otherwise ask for assistance.",
        ),
        ("Hello. Otherwise nothing.", "it is about certificate, otherwise, assistance", ""),
        ("", "“nothing” is here", ""),
    ],
)
def test_quoted_part_is_the_sentence_that_a_finding_is_about(text: str, why: str, part: str) -> None:
    start, end = quoted_part(text, why)
    assert text[start:end] == part


def test_quoted_part_of_a_very_long_line_is_the_quote_alone() -> None:
    text = "x" * 1_000 + " needle " + "y" * 1_000
    start, end = quoted_part(text, "“needle” is new")
    assert text[start:end] == "needle" and end - start < MAX_PART


def test_evidence_of_a_call_is_its_arguments() -> None:
    call = row(ToolCall("Bash", msgspec.Raw(b'{"command":"rm -rf data"}'), "1"))
    found = evidence_of(call, "the call “rm -rf data” destroys")
    assert (found.seq, found.kind) == (3, "tool_call") and "rm -rf data" in found.text[found.start : found.end]
