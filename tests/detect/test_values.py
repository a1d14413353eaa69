"""Right values of an answer in another form than their source's, or one step from it; each beside a wrong one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.answer_text import unwrapped, without_commands
from coherence.detect.grounding import judge
from coherence.detect.values import MAX_WORD, words
from coherence.metrics import compute_grounding
from detect.judging import CHOSEN, flaws, given_by

NUMBERS = "revenue: 1,284,500 USD, users: 8,412,000, fund: 2,300,000,000||on 2024-03-07 at 14:30 in room 9, 1300 m away"
PAGE = "On 2024-03-07, page 1: Mistral 7B takes 12.5 %; ask +47 22 12 34 56"
TRIP = """{"price_usd": 1200, "distanceKm": 12, "size_mb": 1.5, 'weight (kg)': 3, "Total in EUR": 70.5,
"rate_pct": 4.5, "price_cents": 4999, "temp_min": 17, "day": 25, "duration_s": 90, "length": 45, "max_m": 800}"""
ORDER = "item;qty;price\nPump;2;149.00\nHose 3m;4;12.50\nClamp;10;0.85\nshipping;;9.90"
USAGE = "month;kwh\n2024-01;412\n2024-02;388\n2024-03;351\n2024-04;290\n2024-05;244\n2024-06;201"
JOB = "started 2025-03-01T10:00:00Z\nfinished 2025-03-01T10:07:42Z"
FIRST_HALF = "In the first quarter you used 1,151 kWh, in the second {}."
BILL = "Pump 298.00, hoses 50.00, clamps 8.50: {}, with shipping 366.40."
TAX = "With VAT it is {}, of which 235.60 is tax."

NOTATIONS = [
    (NUMBERS, "1.3M in revenue", "1.4M in revenue"),
    (NUMBERS, "$1.28M", "$1.27M"),
    (NUMBERS, "2.3B in the fund", "2.4B in the fund"),
    (NUMBERS, "1.284.500 USD", "1.284.600 USD"),
    (NUMBERS, "1'284'500 USD", "1'284'600 USD"),
    (NUMBERS, "1\u202f284\u202f500 USD", "1\u202f284\u202f600 USD"),
    (NUMBERS, "1 284 500 USD", "1 284 500 £"),
    (NUMBERS, "07.03.2024 at 2.30 p.m.", "07.03.2024 at 2.40 p.m."),
    (NUMBERS, "1.3 km", "1.4 km"),
    (NUMBERS, "It is 1300m away", "It is 1300M away"),  # metres are no millions
    (NUMBERS, "8.4M users", "8.4m users"),
    ("12,500 people", "12 500 people", "12 800 people"),
    ("12500.75 kg", "12\u202f500,75 kg", "12\u202f500,78 kg"),
    ("price: 1234", "1.234 €", "1.238 €"),
    ("1234.56 EUR", "1.234,56 €", "1.234,58 €"),
    ("123456 INR", "₹1,23,456", "₹1,23,458"),
    ("150000", "1.5 lakh", "1.8 lakh"),
    ("1200000 JPY", "120万円", "180万円"),
    (PAGE, "7. März 2024", "8. März 2024"),
    (PAGE, "2024年3月7日", "2024年3月8日"),
    (PAGE, "07/03/24", "07/04/24"),
    (PAGE, "in 2024", "in 2023"),  # 2024 and 1 stand near each other, by chance
    (PAGE, "Call (+47) 22-12-34-56", "Call (+47) 22-12-34-57"),
    (PAGE, "It is 12½ %", "It is 13½ %"),
    (PAGE, "It runs Mistral-7B", "It runs Mistral-8B"),
    (TRIP, "It costs $1,200.", "It costs €1,200."),
    (TRIP, "It is 12,000 m away.", "It is 12 miles away."),
    (TRIP, "It has 1500 KB.", "It has 1500 MB."),
    (TRIP, "It weighs 3 kg.", "It weighs 3 lbs."),
    (TRIP, "70.50 EUR in all", "70.50 USD in all"),
    (TRIP, "The rate is 4.5 %.", "The rate is 4.6 %."),
    (TRIP, "It costs $49.99.", "It costs $48.99."),
    (TRIP, "It takes 1.5 minutes.", "It takes 2.5 minutes."),
    (TRIP, "It is 45 cm long.", "It is 44 cm long."),  # where no unit is given, the digits count
    (TRIP, "It is 17 degrees on day 25, for at most 800 people.", "It is 19 degrees at least."),
    ('{"item_id": "1421289881"}', "Item ID: 1421289881", "Item ID: 1421289883"),
    ('{"ticket": "T-5503"}', "Ticket #5503 is yours.", "Ticket #5504 is yours."),
    ('{"isbn": "9783161484100"}', "ISBN 978-3-16-148410-0", "ISBN 978-3-16-148419-0"),
    ("/dev/vda1 480G 217G 263G", "263 GB are free.", "364 GB are free."),
    ("Limits: memory 512Mi", "The limit is 512 MiB.", "The limit is 256 MiB."),
    ("dates: 2024-06-17", "It begins on 17.06. at noon.", "It begins on 19.06. at noon."),
    ("05-03 09:44 delivered", "It came on 3 May at 9:44.", "It came on 4 May at 9:44."),
    ("图书馆2024-09-15重新开放", "将于2024年9月15日重新开放", "将于2024年9月25日重新开放"),
    ("open 9-13", "Open from 9 to 1 pm.", "Open from 9 to 3 pm."),
    ("tel. 0664 310 22 19", "Call 0664 3102219.", "Call 0664 3102291."),
    ("Gate F7, room 4", "It is in room 4.", "It is in room 9."),
    ("field dob: format DD/MM/YYYY", "Its format is DD/MM/YYYY, for example 12/05/1990.", "It was 12/05/1990."),
    ("営業 10時〜19時30分", "19時30分まで営業しています。", "19時45分まで営業しています。"),
    ("0 22 * * 5 /bin/backup", "It runs on Fridays at 10 pm.", "It runs on Fridays at 11 pm."),
]
"""Source, ``||`` between several; the value in another form; another value."""

STEPS = [
    (ORDER, BILL.format("356.50"), BILL.format("358.50")),
    (USAGE, FIRST_HALF.format("735"), FIRST_HALF.format("753")),
    (USAGE, "Consumption fell by 51 % from January to June.", "Consumption fell by 61 % from January to June."),
    ("height_cm: 183", "He is 1.83 m tall, about 6.0 ft.", "He is 1.83 m tall, about 6.6 ft."),
    ('{"temp_c": 18}', "It was 64 °F.", "It was 79 °F."),  # 18 * 9 / 5 + 32 = 64.4
    ("size: 1536 MB", "It needs 1.5 GB.", "It needs 2.5 GB."),
    ('{"per_night": 89.9, "nights": 3}', "Three nights cost 269,70 €.", "Three nights cost 312,40 €."),
    ('{"hotel": "Edel", "per_night": 99}', "Two nights cost 198.", "Two nights cost 199."),
    ("April 1,204\nMay 1,377\nJune 998", "3,579 in all", "4,112 in all"),
    ("April 1,204\nMay 1,377", "May was 14 % above April.", "May was 22 % above April."),  # 1377 / 1204 = 1.144
    ("north: 216\nsouth: 502", "30 % came from the north.", "41 % came from the north."),  # 216 / 718 = 0.301
    ("a: 41.27||b: 36.89", "The difference is $4.38.", "The difference is $5.38."),
    ("born 1954-07-04||today 2024-05-15", "The patient is 69.", "The patient is 49."),
    ("dep 06:42 Lyon, arr 08:39 Paris", "The trip takes 1 h 57.", "The trip takes 1 h 47."),
    ("duration_min: 135", "Der Film dauert 2 Stunden und 15 Minuten.", "Der Film dauert 2 Stunden und 25 Minuten."),
    ("start 19:30, runtime 128 min", "It ends at 9:38 pm.", "It ends at 9:48 pm."),
    ("start 23:15\nend 01:05", "It took 1 hour 50 minutes.", "It took 1 hour 15 minutes."),
    (JOB, "The job took 7 minutes 42 seconds.", "The job took 9 minutes 42 seconds."),
    ("10 km in 48:30", "That is 4:51 per km.", "That is 4:31 per km."),
    ("会议 14:30 开始, 90 分钟", "会议下午2点30分开始,4点结束。", "会议下午2点30分开始,5点结束。"),
    ("08:15:02 started\n10:45:02 finished", "It took two and a half hours.", "It took three and a half hours."),
    ("Start 14:00 UTC", "It starts at 16:00 in Berlin.", "It starts at 16:30 in Berlin."),
    ("bought 2024-11-05, return within 30 days", "Until 5 December 2024.", "Until 15 December 2024."),
    ("Beginn 01.04.2024, Laufzeit 24 Monate", "24 Monate, bis 31. März 2026.", "24 Monate, bis 31. Mai 2026."),
    ("Mail of 12 March: the parcel comes on the 19th.", "It comes on 19 March.", "It comes on 18 March."),
    ("2026-02-10||2026-03-01", "That is 19 days later.", "That is 29 days later."),
    ("today 3 June 2025, deadline 2025-06-20", "17 days are left.", "27 days are left."),
    ("votes: Kim 1204, Lopez 986, Ray 310", "Kim won 48.2% of 2,500 votes.", "Kim won 42.8% of 2,500 votes."),
    ("price 89.00, discount 15%", "You pay 75.65.", "You pay 76.55."),
    ("net 1,240.00, VAT 19 %", TAX.format("1,475.60"), TAX.format("1,457.60")),
    ("How much are £200?||rate: 1 EUR = 0.8432 GBP", "£200 are about €237.19.", "£200 are about €273.19."),
    ("2010: 48,210 people\n2020: 53,877", "It grew by 5,667, or 11.8 %.", "It grew by 5,667, or 18.1 %."),
    ("invoice 2,345.60 due\npaid 1,500.00", "You still owe 845.60.", "You still owe 854.60."),
    ("6:00 14.2\n12:00 21.8\n18:00 19.0", "18.3 degrees on average.", "25.6 degrees on average."),
]
"""Source; what follows from it; what does not."""


@pytest.mark.parametrize(("source", "right", "wrong"), [*NOTATIONS, *STEPS])
def test_judge_tells_the_right_value_of_a_pair(source: str, right: str, wrong: str) -> None:
    assert flaws(source, right) == []
    assert flaws(source, wrong) != []


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("Rows: 310 284 500", "284, 310, 500"),
        ("500 people in room 12", "room 12 500 people"),
        ("| 2 100 |", "cells: 2 and 100"),
        ("On May 12 500 people came", "May 12: 500 people"),
        ("Call 555 123 456", "tel. 555-123-456"),
        ("at 10,20", "[10,20]"),
        ("1300 of them", "[1200,1300,1400]"),
        ("Oslo: 709037", "city,people,rank\nOslo,709037,5"),
    ],
)
def test_row_numbers_that_merely_stand_in_a_row_are_several(answer: str, source: str) -> None:
    found = compute_grounding(answer, [source])
    assert (found.grave, found.checked > 0) == ((), True)


@pytest.mark.parametrize("answer", ["Rows: 310 284 501", "In room 12 501 people", "1 200 000", "12,51 kg", "1,284"])
def test_row_of_which_one_number_was_not_given_is_found(answer: str) -> None:
    assert len(flaws("284, 310, 500 people, room 12; 200; 12 kg; 1", answer)) == 1


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
    given = given_by("The service was fine.")
    said = judge(given, '"Best service we had in years", said Renata.', CHOSEN)
    wording = judge(given, 'I put "best service we had in years" on the card.', CHOSEN)
    assert (said.lost, wording.lost) == (3.0, 1.0)


def test_judge_a_huge_power_of_ten_hides_no_other_number() -> None:
    assert flaws("users: 8,412,000", "0e999 of 8,413,000 users") == ["0e999", "8,413,000"]


def test_unwrapped_and_without_commands_leave_what_is_said() -> None:
    assert unwrapped("a\\nb") == "a\nb"
    assert unwrapped("[1, 2") == "[1, 2"
    assert without_commands("a\n```json\n{}\n```\nb") == "a\n```json\n{}\n```\nb"
    assert without_commands("a\n```py\nx = 1\n```\nb") == "a\n\n\nb"


@given(
    st.lists(st.one_of(st.text(max_size=9), st.sampled_from(["a" * MAX_WORD, "B" * 200, "_", "\0", "\x1c", " ", "É"])))
)
def test_words_are_runs_of_letters_digits_and_underscores(parts: list[str]) -> None:
    text = "".join(parts)
    assert words(text) == re.findall(rf"\w{{1,{MAX_WORD}}}", text.lower())
