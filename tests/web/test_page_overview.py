"""The overview in a browser: which agent is in trouble, and how it is found among others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coherence.store.store import Store
from web.browsing import PHONE, Look, looking
from web.serving import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.web

AGENTS = ["researcher", "builder", "lead", "planner", "deployer", "reader", "scout"]


def agents(page: Page) -> list[str]:
    names: list[str] = page.locator(".row .cover b").all_inner_texts()
    return names


def test_overview_shows_the_worst_first_with_its_light_its_cause_and_its_children_below(look: Look) -> None:
    page = look.at("/")
    shown = agents(page)
    assert shown[0] == "researcher" and set(shown) == set(AGENTS)
    assert shown[1] == "scout", "a child stands under its parent, whatever its own light"
    first = page.locator(".row").first
    assert first.locator(".light").inner_text().split() == ["■", "red"], "a colour never stands without a shape"
    assert "503 service unavailable" in first.locator(".cause").inner_text()
    assert first.locator("svg.strip").get_attribute("aria-label").endswith("now red")
    assert first.locator("time").get_attribute("title"), "the absolute time"
    assert "7 steps" in first.locator(".row-facts").inner_text()
    scout = page.locator(".row", has_text="scout")
    assert "1,280 tokens" in scout.locator(".row-facts").inner_text()  # 1200 in and 80 out
    assert "$0.0042" in scout.locator(".row-facts").inner_text()


def test_overview_flat_order_takes_children_from_under_their_parents(look: Look) -> None:
    page = look.at("/")
    page.uncheck("#nest")
    assert agents(page).index("scout") > 1
    assert page.url.endswith("?flat=1")


def test_overview_filters_narrow_the_list_and_stay_in_the_address(look: Look) -> None:
    page = look.at("/")
    page.locator(".toggle[data-band=red]").click()
    expect(page.locator(".row")).to_have_count(1)
    assert agents(page) == ["researcher"] and page.url.endswith("/?band=red")
    assert page.locator(".found").inner_text() == "1 of 8 sessions"
    page.reload()
    expect(page.locator(".row")).to_have_count(1)
    assert page.locator(".toggle[data-band=red]").get_attribute("aria-pressed") == "true"
    page.locator(".toggle[data-band=red]").click()  # once more takes it away
    expect(page.locator(".row")).to_have_count(8)
    page.select_option("#by-agent", "builder")
    expect(page.locator(".row")).to_have_count(1)
    page.select_option("#by-agent", "")
    page.select_option("#by-rule", "bash_retry")
    expect(page.locator(".row")).to_have_count(1)
    assert agents(page) == ["builder"]


def test_overview_state_is_shown_and_filtered_by(look: Look) -> None:
    page = look.at("/")
    assert "✓ succeeded" in page.locator(".row", has_text="builder").locator(".chips").inner_text()
    page.select_option("#by-state", "succeeded")
    expect(page.locator(".row")).to_have_count(1)
    assert agents(page) == ["builder"] and page.url.endswith("/?state=succeeded")
    page.select_option("#by-state", "open")
    expect(page.locator(".row")).to_have_count(7)
    page.select_option("#by-state", "failed")
    expect(page.locator(".empty h2")).to_have_text("No session fits")
    page.click(".empty button")
    expect(page.locator(".row")).to_have_count(8)


def test_overview_on_a_phone_shows_a_row_at_once_and_filters_where_they_are_asked_for(
    browser: Browser, served: Served
) -> None:
    with looking(browser, served.server.url, size=PHONE) as look:
        page = look.at("/")
        box = page.locator(".row").first.bounding_box()
        assert box is not None and box["y"] + box["height"] < PHONE[1]
        links = [link.bounding_box() for link in page.locator(".bar nav a").all()]
        assert all(link is not None and link["x"] + link["width"] <= PHONE[0] for link in links), "none is cut off"
        expect(page.locator("#by-agent")).to_be_hidden()
        page.get_by_role("button", name="Filter").click()
        page.select_option("#by-agent", "builder")
        expect(page.locator(".row")).to_have_count(1)
        expect(page.get_by_role("button", name="Filter (1)")).to_be_visible()


def test_overview_search_finds_what_was_said_and_tells_how_to_go_on_where_nothing_fits(look: Look) -> None:
    page = look.at("/")
    page.fill("#by-text", "harbour")  # a word of the calm session's results
    expect(page.locator(".row")).to_have_count(1)
    assert agents(page) == ["reader"]
    page.fill("#by-text", "no such word anywhere")
    expect(page.locator(".empty h2")).to_have_text("No session fits")
    page.click(".empty button")
    expect(page.locator(".row")).to_have_count(8)
    assert page.input_value("#by-text") == ""


def test_overview_dates_leave_out_what_is_older(look: Look) -> None:
    page = look.at("/")
    page.select_option("#by-age", "3600")
    expect(page.locator(".row")).to_have_count(8)  # all was recorded just now
    page.select_option("#by-age", "dates")
    page.fill("#by-to", "2020-01-01")
    expect(page.locator(".empty h2")).to_have_text("No session fits")


@pytest.mark.parametrize(("order", "first"), [("agent", "builder"), ("cost", "scout"), ("steps", "reader")])
def test_overview_orders(look: Look, order: str, first: str) -> None:
    page = look.at("/?flat=1")
    page.select_option("#by-sort", order)
    expect(page.locator(".row .cover b").first).to_have_text(first)


def test_overview_of_an_empty_store_says_what_to_do_on_every_page(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    Store(path).close()
    with serving(path) as served, looking(browser, served.server.url) as look:
        page = look.at("/")
        assert page.locator(".empty h2").inner_text() == "No agent has been recorded yet"
        for name, word in {
            "fleet": "No fleet",
            "lessons": "Nothing was learned",
            "guard": "No agent is under guard",
            "experiments": "No guidance has fired",
            "compare": "nothing to compare",
        }.items():
            assert word in look.at(f"/{name}").locator(".empty h2").inner_text()
