"""Right answers that say what was given in another way; each stands beside a wrong one."""

from __future__ import annotations

import pytest

from coherence.detect.answer_text import unwrapped, without_commands
from coherence.detect.grounding import judge
from coherence.detect.sources import Given, take_source
from detect.judging import CHOSEN, flaws


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ('{"item_id": "1421289881"}', "Item ID: 1421289881", "Item ID: 1421289883"),
        ('{"ticket": "T-5503"}', "Ticket #5503 is yours.", "Ticket #5504 is yours."),
        ('{"isbn": "9783161484100"}', "ISBN 978-3-16-148410-0", "ISBN 978-3-16-148419-0"),
        ('{"temp_c": 18}', "It was 64 °F.", "It was 79 °F."),  # 18 * 9 / 5 + 32 = 64.4
        ("/dev/vda1 480G 217G 263G", "263 GB are free.", "364 GB are free."),
        ('{"per_night": 89.9, "nights": 3}', "Three nights cost 269,70 €.", "Three nights cost 312,40 €."),
        ("April 1,204\nMay 1,377\nJune 998", "3,579 in all", "4,112 in all"),
        ("April 1,204\nMay 1,377", "May was 14 % above April.", "May was 22 % above April."),  # 1377 / 1204 = 1.144
        ("north: 216\nsouth: 502", "30 % came from the north.", "41 % came from the north."),  # 216 / 718 = 0.301
        ("a: 41.27||b: 36.89", "The difference is $4.38.", "The difference is $5.38."),
        ("born 1954-07-04||today 2024-05-15", "The patient is 69.", "The patient is 49."),
        ("dates: 2024-06-17", "It begins on 17.06. at noon.", "It begins on 19.06. at noon."),
    ],
)
def test_judge_other_forms_of_what_was_given(source: str, right: str, wrong: str) -> None:
    assert flaws(source, right) == []
    assert flaws(source, wrong) != []


@pytest.mark.parametrize(
    "answer",
    [
        'Do you have a number such as "#W0000000"?',
        "An id looks like AB-12345, for example XY-77881.",
        'Reply with "yes, go ahead with it" to confirm.',
        'FINISH(["The blood pressure has been recorded for the patient."])',
        'The status is now "return requested".',
        "Run this:\n```sh\nsed -n 14,20p src/pay.py\n```",
    ],
)
def test_judge_examples_wordings_and_commands_state_nothing(answer: str) -> None:
    assert flaws("Hello", answer) == []


def test_judge_a_quotation_counts_by_who_is_said_to_have_said_it() -> None:
    given = Given()
    take_source(given, 1, "The service was fine.", CHOSEN)
    said = judge(given, '"Best service we had in years", said Renata.', CHOSEN)
    wording = judge(given, 'I put "best service we had in years" on the card.', CHOSEN)
    assert (said.lost, wording.lost) == (3.0, 1.0)


def test_judge_a_title_under_an_id_of_another_kind_is_no_exchange() -> None:
    source = '{"order": "W6390527", "size": "500ml", "name": "Blue Water Bottle"}'
    assert flaws(source, "Order W6390527: Blue Water Bottle") == []


def test_unwrapped_and_without_commands_leave_what_is_said() -> None:
    assert unwrapped("a\\nb") == "a\nb"
    assert unwrapped("[1, 2") == "[1, 2"
    assert without_commands("a\n```json\n{}\n```\nb") == "a\n```json\n{}\n```\nb"
    assert without_commands("a\n```py\nx = 1\n```\nb") == "a\n\n\nb"
