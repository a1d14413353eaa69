"""The other pages in a browser: comparison, fleet, lessons, guard, experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coherence.lessons.store import LessonStore
from web.browsing import PATHS, Look, copied, looking, session_path
from web.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.web


def test_compare_shows_both_courses_and_what_differs(look: Look) -> None:
    page = look.at(PATHS["compare"])
    expect(page.locator(".chart canvas")).to_have_count(2)
    ends = page.locator("tr", has=page.get_by_role("rowheader", name="outcome"))
    assert ends.locator("td").all_inner_texts() == ["✓ succeeded", "not ended", "differs"]
    assert "of steps measured" in page.get_by_role("rowheader", name="warn rate").inner_text()
    row = page.locator("tr", has=page.get_by_role("rowheader", name="error rate"))
    # 3 of 6 calls of the one failed, none of the other's 8
    assert row.locator("td").all_inner_texts() == ["50 %", "0 %", "−50 points"]
    fired = page.locator("tr", has=page.get_by_role("rowheader", name="bash_retry")).locator("td")
    assert fired.all_inner_texts() == ["1×", "0×"]


def test_compare_is_chosen_from_lists(look: Look) -> None:
    page = look.at("/compare")
    page.select_option("#pick-0", '["builder","monday"]')
    expect(page.locator("#pick-0")).to_have_value('["builder","monday"]')
    page.locator("#pick-1 option", has_text="reader").wait_for(state="attached")
    lights = [text.split(":")[0] for text in page.locator("#pick-1 option").all_inner_texts()[1:]]
    assert lights == sorted(lights, key=["red", "orange", "yellow", "green", "unknown"].index)
    page.select_option("#pick-1", '["reader","calm"]')
    expect(page.locator(".chart canvas")).to_have_count(2)
    assert page.url.endswith(PATHS["compare"])


def test_fleet_draws_who_is_affected_and_says_the_same_in_tables(look: Look) -> None:
    page = look.at("/fleet")
    drawn = page.locator(".graph .node")
    assert {node.get_attribute("href") for node in drawn.all()} == {
        session_path(agent, session)
        for agent, session in (("researcher", "1"), ("planner", "1"), ("lead", "1"), ("scout", "errand"))
    }
    assert page.locator(".graph .edge").count() == 2 and page.locator(".graph path.parent").count() == 1
    trust = page.get_by_role("region", name="Trust", exact=True).locator("tbody tr", has_text="researcher")
    assert trust.locator("td").all_inner_texts()[:2] == ["researcher", "planner"]
    rows = page.get_by_role("region", name="Agents", exact=True).locator("tbody .light").all_inner_texts()
    assert [text.split()[-1] for text in rows][:2] == ["red", "orange"] and "green" in rows[-1]
    assert "newest session" in page.locator(".hint").inner_text()
    lead = page.locator("tr", has=page.get_by_role("rowheader", name="lead"))
    assert "researcher → planner → lead" in lead.inner_text()
    drawn.filter(has_text="planner").click()
    expect(page.locator("h1")).to_contain_text("planner")


def test_lessons_are_found_edited_and_forgotten(browser: Browser, recorded: Path, tmp_path: Path) -> None:
    path = copied(recorded, tmp_path)
    with serving(path, writes=True) as served, looking(browser, served.server.url) as look:
        page = look.at("/lessons")
        expect(page.locator(".lesson")).to_have_count(3)
        page.fill("#by-text", "address in use")
        expect(page.locator(".lesson")).to_have_count(1)
        page.get_by_role("button", name="Edit PortInUse").click()
        assert page.input_value("#ask-field") == "lsof -ti :8000 | xargs kill"
        page.fill("#ask-field", "fuser -k 8000/tcp")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".lesson .fix")).to_have_text("fuser -k 8000/tcp")
        page.get_by_role("button", name="Forget PortInUse").click()
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".lesson")).to_have_count(1)
        page.get_by_role("button", name="Forget PortInUse").click()
        page.get_by_role("button", name="Forget", exact=True).click()
        expect(page.locator(".empty h2")).to_have_text("No lesson fits")
        with LessonStore(path, embedder=False) as lessons:
            assert {lesson.pattern for lesson in lessons.lessons(limit=10)} == {
                "docker compose failed",
                "ModuleNotFoundError",
            }


def test_guard_shows_patches_and_their_verdicts_and_rolls_back(
    browser: Browser, recorded: Path, tmp_path: Path
) -> None:
    path = copied(recorded, tmp_path)
    with serving(path, writes=True) as served, looking(browser, served.server.url) as look:
        page = look.at("/guard")
        patches = page.locator(".told-item")
        assert "✓ promoted" in patches.nth(0).inner_text() and "timeout_s" in patches.nth(0).inner_text()
        assert "✗ rolled back" in patches.nth(1).inner_text() and "retries" in patches.nth(1).inner_text()
        page.get_by_role("button", name="Roll back patch 2 of support").click()
        with page.expect_response("**/api/guard/rollback") as answer:
            page.get_by_role("button", name="Roll back", exact=True).click()
        assert answer.value.ok
        expect(page.locator("#news")).to_have_text("Asked for the configuration before")


def test_guard_read_only_says_how_to_roll_back(look: Look) -> None:
    page = look.at("/guard")
    assert page.get_by_role("button", name="Roll back").count() == 0
    assert "start with --write to roll back" in page.locator(".told-item").first.inner_text()


def test_experiments_say_how_much_is_missing_for_a_verdict(look: Look) -> None:
    def withhold(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=[one | {"firings": one["firings"] + 1} for one in response.json()])

    look.page.route("**/api/experiments", withhold)
    page = look.at("/experiments")
    retry = page.locator(".experiment", has_text="bash_retry").first
    assert "no verdict yet" in retry.inner_text() and "30 more before a verdict" in retry.inner_text()


def test_experiments_say_that_nothing_is_compared_where_nothing_is_withheld(look: Look) -> None:
    page = look.at("/experiments")
    retry = page.locator(".experiment", has_text="bash_retry").first
    assert "not compared" in retry.inner_text() and "more before a verdict" not in retry.inner_text()
    assert "guidance = { randomise = true }" in page.locator(".off").inner_text(), "the setting that turns it on"


def test_address_that_is_no_page_leads_home(look: Look) -> None:
    page = look.at("/")
    page.evaluate(
        "history.pushState({}, '', '/nowhere'); dispatchEvent(new PopStateEvent('popstate', { state: null }))"
    )
    expect(page.locator("h1")).to_have_text("No such page")
    page.get_by_role("link", name="All sessions").click()
    expect(page.locator("h1")).to_have_text("Sessions")
