"""Text that a model writes when it has lost the thread of language."""

from __future__ import annotations

import pytest

from coherence.core.events import Goal, Message, ToolResult
from coherence.detect.breakdown import FADES, BreakdownDetector, bareness, disorder, prose, template_marks
from coherence.detect.detector import Observed
from coherence.state.reducer import AgentState

SOUND = [
    "I will read the parser first, then add a test for the empty input, and run the whole suite.",
    "All of MIP 5 is in and compiles; the hints are pre-existing. Now the next part.",
    "Let me fix the linter issue about using max() instead of an if statement on line 313.",
    "Ich lese zuerst die Datei und schreibe dann den Test, weil der Fehler in der Funktion liegt.",
    "- Flight HAT072\n- Flight HAT073\n- Flight HAT074\n- Flight HAT075\nWhich one do you want to take?",
    "Now, regarding the event on May 26th: I sent it to Will, as requested.",
    "Yes, yours is the 15-inch model with an i5 processor, 32GB RAM, and a 256GB SSD in space grey. Shall I change it "
    "for the 15-inch model with an i7 processor, 8GB RAM, and a 1TB SSD?",
    '{"items": [{"id": 1, "color": "blue", "size": "M"}, {"id": 2, "color": "blue", "size": "M"}, '
    '{"id": 3, "color": "blue", "size": "M"}, {"id": 4, "color": "blue", "size": "M"}]}',
    "Now register the command in `cmd/root.go` and build `all` of `it` to `be` sure.",
]


SALAD = [
    "the of with is file to the a and for the by of it the in on the",
    "check the file check the file check the file check the file check the file check the file",
    "please please the the table of of is with with order",
]


@pytest.mark.parametrize(("text", "is_salad"), [*((text, False) for text in SOUND), *((text, True) for text in SALAD)])
def test_disorder_of_salad_and_repetition_is_high_and_of_sound_text_low(text: str, is_salad: bool) -> None:
    assert disorder(prose(text)) > 0.8 if is_salad else disorder(prose(text)) < 0.5


def test_disorder_one_slip_is_no_salad_two_may_be() -> None:
    text = "Now I will run the tests of the parser and see which of them fail."
    assert disorder(f"{text} The is odd.") == pytest.approx(1 / 32 / 0.12)
    assert disorder("Now I move the title from A to C, a new model that inherits from B.") == 0.0


def told(detector: BreakdownDetector, *texts: str) -> float:
    for text in texts:
        detector.observe(Observed.of(Message("assistant", text)))
    return detector.data.value


def test_template_marks_count_only_where_nobody_has_shown_them() -> None:
    assert template_marks("<|im_end|> Dear {{name}}") == {"<|im_end|>", "{{name}}"}
    known = BreakdownDetector()
    known.observe(Observed.of(ToolResult(call_id="c", result="Template: Dear {{name}}")))
    assert told(known, "I fill in {{name}} with the customer's name and send it.") == 0.0
    assert told(BreakdownDetector(), "Hello. <|im_end|> <|im_start|>") == 0.9


def test_breakdown_another_script_counts_unless_somebody_used_it() -> None:
    turn = "Теперь я открою файл и посмотрю, что там написано."
    assert told(BreakdownDetector(), "I open the file.", turn) == 1.0
    asked = BreakdownDetector()
    asked.observe(Observed.of(Goal("Please answer in Russian: спасибо большое")))
    assert told(asked, "I open the file.", turn) == 0.0


ENGLISH = Goal("Please read the file, find out why the login test fails, and tell me what you have found in it.")
GERMAN = Goal("Bitte lies die Datei, finde heraus, warum der Test scheitert, und sag es mir.")
FOREIGN = "El tren de las siete nunca llega a las siete, eso lo sabe cualquiera en este pueblo."
WORDS = "copper sideways subject throttle payment vesper lattice pronoun turbine pillow amber fern velvet thimble"
NAMES = "Users: Ann Lee, Bo Diaz, Cy Young, Di Marsh, Ed Stone, Flo Vance, Gus Hale, Hal Moore"


def test_breakdown_fades_with_each_sound_message() -> None:
    detector = BreakdownDetector()
    assert told(detector, SALAD[0]) == 1.0
    assert told(detector, SOUND[0]) == pytest.approx(FADES)


@pytest.mark.parametrize(
    ("goal", "result", "said", "value"),
    [
        (ENGLISH, "", FOREIGN, 1.0),
        (GERMAN, "", FOREIGN, 0.0),  # nothing is known of the language of the run
        (ENGLISH, NAMES, NAMES, 0.0),  # a list from a result is no other language
        (ENGLISH, WORDS.replace(" ", ", "), WORDS, 0.5),  # no phrase of English, however often its words were said
    ],
)
def test_breakdown_is_another_language_or_no_phrase_in_a_run_in_english(
    goal: Goal, result: str, said: str, value: float
) -> None:
    state = AgentState()
    state.fold(1, 0.0, goal)
    state.fold(2, 0.0, ToolResult(call_id="a", result=result, tool_name="list"))
    state.fold(3, 0.0, Message("assistant", said))
    assert state.breakdown.data.value == pytest.approx(value)


def test_bareness_is_of_words_in_a_row_without_any_that_binds_them() -> None:
    assert bareness(WORDS) == pytest.approx((14 - 11) / (17 - 11))
    assert bareness(WORDS.replace("vesper", "and vesper")) == 0.0
    assert bareness(WORDS.replace(" vesper", ", vesper")) == 0.0
