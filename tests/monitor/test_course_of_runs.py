"""Runs that leave their course, and everyday work that looks alike, told to a monitor as a host would."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from coherence import Monitor
from coherence.core.readings import Band

WORST = (Band.ORANGE, Band.RED)

Call = tuple[str, str, dict[str, Any], str]
"""Words of the agent, the tool, its arguments, the result."""


def bands(goal: str, calls: Iterable[Call], **settings: Any) -> list[Band]:
    """Return the band after every result."""
    found: list[Band] = []
    with Monitor(goal=goal, **settings) as m:
        for said, tool, arguments, result in calls:
            m.message("assistant", said)
            m.tool_call(tool, arguments)
            m.tool_result(result)
            m.decide()
            assert m.latest is not None
            found.append(m.latest.band)
    return found


def test_monitor_ten_paraphrased_searches_that_find_nothing_are_warned_of() -> None:
    words = (
        "login timeout|timeout at login|login times out|timeouts of the login|slow login timeout|login timeout error|"
        "error: login timeout|timeout when logging in|the login timeout|login timeout bug"
    )
    searches = [
        ("Other words.", "search_issues", {"query": text}, '{"total": 0, "items": []}') for text in words.split("|")
    ]
    found = bands("Find the issue about the login timeout", searches)
    assert found[0] == Band.GREEN
    assert found[-1] in WORST


def test_monitor_five_greps_without_a_match_stay_calm() -> None:
    names = ("parse_date", "date_parser", "to_datetime", "strptime", "fromisoformat")
    greps = [("I look for it.", "bash", {"command": f"grep -rn {name} src"}, "") for name in names]
    assert not set(bands("Find where dates are parsed", greps)) & set(WORST)


def test_monitor_the_same_call_with_the_same_result_again_is_warned_of_at_the_third_time() -> None:
    look = ("I look it up.", "get_order", {"order": "A-7"}, '{"order": "A-7", "status": "shipped", "carrier": "DHL"}')
    found = bands("Tell the customer when order A-7 arrives", [look] * 4)
    assert found[1] not in WORST, "to look twice is nothing"
    assert found[2] in WORST


def test_monitor_a_record_set_to_and_fro_is_warned_of() -> None:
    def moved(at: str) -> Call:
        return ("Better so.", "reschedule_event", {"event_id": "25", "start": at}, f"moved to {at}")

    found = bands("Find a time for the review with Ann", [moved(at) for at in ("10:00", "15:00", "10:00", "15:00")])
    assert found[-1] in WORST


@pytest.mark.parametrize("wait", [True, False])
def test_monitor_a_steady_thermometer_and_polls_are_not_warned_of(wait: bool) -> None:
    read: Call = ("", "read_sensor", {"id": "lab"}, "21.5 °C")
    pause: Call = ("", "sleep", {"minutes": 5}, "done")
    found = bands("Watch the temperature of the lab until noon", [read, pause] * 6 if wait else [read] * 8)
    assert not set(found) & set(WORST)


def test_monitor_a_summary_that_has_lost_the_goal_is_warned_of_at_once() -> None:
    with Monitor(goal="Reschedule the dental check-up of Emma to 20 May at ten") as m:
        m.message("assistant", "I look at the calendar first.")
        m.tool_call("search_calendar", {"query": "dental check-up"})
        m.tool_result("id 5, dental check-up, 18 May 10:00")
        assert m.decide() == "continue"
        m.message("system", "Context was compacted. Several tools were called and returned results.")
        assert m.decide() == "warn"
        assert m.latest is not None and m.latest.cause == "goal_loss"
        assert "does not hold the goal" in m.latest.explain()


def test_monitor_a_side_project_is_warned_of_and_what_the_user_asks_for_is_not() -> None:
    work: list[Call] = [
        ("I read the notice.", "read_file", {"path": "notice.txt"}, "The rent rises by 100 euros in May."),
        ("The rent rises by 100; I look at the standing order for the rent.", "get_orders", {}, "8: rent, 1,100 euros"),
        ("I raise the standing order for the rent to 1,200.", "update_order", {"id": 8, "amount": 1200}, "updated"),
    ]
    side: list[Call] = [
        (
            "Office plants would be nice.",
            "search_web",
            {"query": "plants that need little light"},
            "1. ZZ plant 2. fern",
        ),
        ("A planting plan for the corridor.", "write_file", {"path": "plan.txt", "text": "8 ferns, 2 palms"}, "saved"),
        ("Now compare delivery prices of nurseries.", "search_web", {"query": "fern bulk discount"}, "GreenCrate 13 %"),
    ]
    found = bands("Read notice.txt and adjust my rent payment accordingly", [*work, *side])
    assert not set(found[:3]) & set(WORST)
    assert set(found[3:]) & set(WORST)
    with Monitor(goal="Read notice.txt and adjust my rent payment accordingly") as m:
        for said, tool, arguments, result in work:
            m.message("assistant", said)
            m.tool_call(tool, arguments)
            m.tool_result(result)
            m.decide()
        m.message("user", "Thanks! Now make a plan for office plants that need little light, with prices of delivery.")
        for said, tool, arguments, result in side:
            m.message("assistant", said)
            m.tool_call(tool, arguments)
            m.tool_result(result)
            m.decide()
            assert m.latest is not None and m.latest.band not in WORST
