"""Events check what they are given, and say what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coherence.compat.events import LLMEvent
from coherence.compat.regulator import Regulator

BIG = 10**12
NAN = float("nan")
EVENT: Any = LLMEvent
REGULATOR: Any = Regulator
"""The same, for what a type checker would refuse."""


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: LLMEvent.turn_start(user_message="a"), "turn_start"),
        (lambda: LLMEvent.token(token="a", logprob=-0.1, index=0), "token"),
        (lambda: LLMEvent.turn_complete(full_response="a"), "turn_complete"),
        (lambda: LLMEvent.cost(tokens_in=1, tokens_out=BIG, wallclock_ms=3, provider="p"), "cost"),
        (lambda: LLMEvent.quality_feedback(quality=1, fragment_spans=[(0, 1)]), "quality_feedback"),
        (lambda: LLMEvent.user_correction(correction_message="a", corrects_last=True), "user_correction"),
        (lambda: LLMEvent.tool_call(tool_name="a", args_json="{}"), "tool_call"),
        (lambda: LLMEvent.tool_result(tool_name="a", success=False, duration_ms=1, error_summary="e"), "tool_result"),
    ],
)
def test_llm_event_every_kind_is_made_by_its_parameters_names_and_taken(
    make: Callable[[], LLMEvent], kind: str
) -> None:
    event = make()
    assert event.kind == kind
    assert event == make()
    Regulator.for_user("ada", embedder=False).on_event(event)


@pytest.mark.parametrize(
    ("make", "error", "field"),
    [
        (lambda: EVENT.turn_start(None), TypeError, "user_message"),
        (lambda: EVENT.turn_complete(b"a"), TypeError, "full_response"),
        (lambda: EVENT.token(1, -1.0, 0), TypeError, "token"),
        (lambda: EVENT.token("a", "x", 0), TypeError, "logprob"),
        (lambda: EVENT.token("a", True, 0), TypeError, "logprob"),
        (lambda: EVENT.token("a", -1.0, -1), ValueError, "index"),
        (lambda: EVENT.cost(-1, 0, 0), ValueError, "tokens_in"),
        (lambda: EVENT.cost(0, BIG + 1, 0), ValueError, "tokens_out"),
        (lambda: EVENT.cost(0, 1.0, 0), TypeError, "tokens_out"),
        (lambda: EVENT.cost(True, 0, 0), TypeError, "tokens_in"),
        (lambda: EVENT.cost(0, 0, NAN), ValueError, "wallclock_ms"),
        (lambda: EVENT.cost(0, 0, 0, 5), TypeError, "provider"),
        (lambda: EVENT.quality_feedback(NAN), ValueError, "quality must be in .0, 1., not nan"),
        (lambda: EVENT.quality_feedback(1.01), ValueError, "quality"),
        (lambda: EVENT.quality_feedback(-0.01), ValueError, "quality"),
        (lambda: EVENT.quality_feedback(True), TypeError, "quality"),
        (lambda: EVENT.quality_feedback(1, "ab"), TypeError, "fragment_spans"),
        (lambda: EVENT.user_correction(None, True), TypeError, "correction_message"),
        (lambda: EVENT.user_correction("a", 1), TypeError, "corrects_last"),
        (lambda: EVENT.tool_call(None), TypeError, "tool_name"),
        (lambda: EVENT.tool_call("a", {}), TypeError, "args_json"),
        (lambda: EVENT.tool_result("a", "yes", 1), TypeError, "success"),
        (lambda: EVENT.tool_result("a", True, -1), ValueError, "duration_ms"),
        (lambda: EVENT.tool_result("a", False, 1, 5), TypeError, "error_summary"),
        (lambda: REGULATOR.for_user(None), TypeError, "user_id"),
        (lambda: REGULATOR.for_user("a", embedder=False, clock=5), TypeError, "clock"),
        (lambda: REGULATOR.for_user("a", embedder=False).with_cost_cap(-1), ValueError, "cap_tokens"),
        (lambda: REGULATOR.for_user("a", embedder=False).with_cost_cap(True), TypeError, "cap_tokens"),
        (
            lambda: REGULATOR.for_user("a", embedder=False).with_implicit_correction_window_secs(0),
            ValueError,
            "window_secs",
        ),
        (
            lambda: REGULATOR.for_user("a", embedder=False).with_implicit_correction_window_secs(1e309),
            ValueError,
            "window_secs",
        ),
        (lambda: REGULATOR.for_user("a", embedder=False).on_event("turn_start"), TypeError, "event"),
        (lambda: REGULATOR.for_user("a", embedder=False).inject_corrections(None), TypeError, "user_prompt"),
    ],
)
def test_quality_feedback_bad_input_is_named(make: Any, error: type[Exception], field: str) -> None:
    with pytest.raises(error, match=field):
        make()


@pytest.mark.parametrize("text", ["", "\ud800", "\x00", "\u202eabc", "a" * 1_000_000, "x\n" * 100_000])
def test_llm_event_any_text_is_taken(text: str) -> None:
    regulator = Regulator.for_user(text, embedder=False).with_implicit_correction_window_secs(60)
    for event in (
        LLMEvent.turn_start(text),
        LLMEvent.token(text, -1.0, 0),
        LLMEvent.tool_call(text, text),
        LLMEvent.tool_result(text, False, 1, text),
        LLMEvent.turn_complete(text),
        LLMEvent.user_correction(text, True),
        LLMEvent.turn_start(text),
    ):
        regulator.on_event(event)
    regulator.decide()
    regulator.inject_corrections(text)
    assert Regulator.from_json(regulator.export_json(), embedder=False).export_json() == regulator.export_json()
