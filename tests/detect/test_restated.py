"""Values that an answer gives in another notation than its sources, or one step from them."""

from __future__ import annotations

import pytest

from detect.judging import flaws


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ("图书馆2024-09-15重新开放", "将于2024年9月15日重新开放", "将于2024年9月25日重新开放"),
        ("open 9-13", "Open from 9 to 1 pm.", "Open from 9 to 3 pm."),
        ("05-03 09:44 delivered", "It came on 3 May at 9:44.", "It came on 4 May at 9:44."),
        ("Limits: memory 512Mi", "The limit is 512 MiB.", "The limit is 256 MiB."),
        ('{"hotel": "Edel", "per_night": 99}', "Two nights cost 198.", "Two nights cost 199."),
        ("today 3 June 2025, deadline 2025-06-20", "17 days are left.", "27 days are left."),
        ("08:15:02 started\n10:45:02 finished", "It took two and a half hours.", "It took three and a half hours."),
        ("tel. 0664 310 22 19", "Call 0664 3102219.", "Call 0664 3102291."),
        ("Start 14:00 UTC", "It starts at 16:00 in Berlin.", "It starts at 16:30 in Berlin."),
        ("6:00 14.2\n12:00 21.8\n18:00 19.0", "18.3 degrees on average.", "25.6 degrees on average."),
        ("Gate F7, room 4", "It is in room 4.", "It is in room 9."),
        ("field dob: format DD/MM/YYYY", "Its format is DD/MM/YYYY, for example 12/05/1990.", "It was 12/05/1990."),
    ],
)
def test_is_restated_tells_the_right_one_of_a_pair(source: str, right: str, wrong: str) -> None:
    assert not flaws(source, right)
    assert flaws(source, wrong)


def test_is_restated_another_currency_is_no_other_notation() -> None:
    assert flaws("revenue: 1,284,500 USD", "It was 1 284 500 £.")
