"""The page of a session in a browser: why its light is what it is, what the agent was told, whether it helped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from coherence.store.runs import session_label
from coherence.store.store import Store
from web.browsing import Look, copied, looking, session_path
from web.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.web

PATH = session_path("builder", "monday")


def test_session_opens_at_the_worst_step_with_its_reason_and_the_evidence_marked(look: Look) -> None:
    page = look.at(PATH)
    assert page.locator(".title .light").inner_text().split() == ["◆", "orange"]
    assert "lock file" in page.locator(".session-head .cause").inner_text()
    assert page.locator(".step h2").inner_text().startswith("Step 3"), "the third failure in a row is the lowest index"
    finding = page.locator(".finding", has_text="bash_retry").first
    assert "3 times for the same command" in finding.inner_text()
    assert finding.locator("mark").inner_text() == "ModuleNotFoundError: No module named 'yaml'"
    assert re.search(r"events #4, #8, #13", finding.inner_text()), "the three results say the same and stand once"
    called = page.locator(".event", has_text="Bash call")
    assert '"command": "pytest -q"' in called.inner_text()
    assert "✗ failed" in page.locator(".event.failed").inner_text()


def test_session_says_what_was_told_and_whether_it_helped(look: Look) -> None:
    page = look.at(PATH)
    told = page.locator(".told.scrolls > li")
    expect(told).to_have_count(2)
    assert "✓ helped" in told.filter(has_text="bash_error_streak").inner_text()
    assert "✗ did not help" in told.filter(has_text="bash_retry").inner_text()
    assert "pressure" in told.first.locator(".effect").inner_text()
    told.filter(has_text="bash_retry").get_by_role("button", name="#9").click()
    expect(page.locator(".step h2")).to_contain_text("Step 2")
    assert "pip install pyyaml" in page.locator(".lesson .fix").inner_text()


def test_session_link_to_a_step_and_steps_by_buttons_and_keys(look: Look) -> None:
    page = look.at(f"{PATH}?step=18")  # the result of reading requirements.txt
    expect(page.locator(".step h2")).to_contain_text("Step 4")
    page.get_by_role("button", name="Next step (j)").click()
    expect(page.locator(".step h2")).to_contain_text("Step 5")
    for key, step in (("ArrowLeft", 4), ("k", 3), ("j", 4), ("ArrowRight", 5), ("Home", 1)):
        page.keyboard.press(key)
        expect(page.locator(".step h2")).to_contain_text(f"Step {step}")
    assert parse_qs(urlsplit(page.url).query)["step"] == ["1"]
    page.keyboard.press("n")  # the first trouble after step 1
    expect(page.locator(".step h2")).to_contain_text("Step 3")


def test_session_chart_zooms_with_a_query_for_the_window_and_back(look: Look) -> None:
    page = look.at(PATH)
    expect(page.locator(".chart canvas")).to_be_visible()
    look.loaded.clear()
    box = page.locator(".chart .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(page.locator(".course .acts .faint")).to_contain_text("of 31")
    asked = [parse_qs(urlsplit(url).query) for url in look.loaded if "/api/timeline" in url][-1]
    assert 6 <= int(asked["first"][0]) <= 10 and 14 <= int(asked["last"][0]) <= 18, asked  # of 31 events
    page.keyboard.press("0")
    expect(page.locator(".course .acts .faint")).to_have_text("31 events")
    page.keyboard.press("+")
    expect(page.locator(".course .acts .faint")).to_contain_text("of 31")


def test_session_chart_click_shows_the_step(look: Look) -> None:
    page = look.at(PATH)
    over = page.locator(".chart .u-over")
    box = over.bounding_box()
    assert box is not None
    over.click(position={"x": box["width"] - 3, "y": 60})
    expect(page.locator(".step h2")).not_to_contain_text("Step 3")
    assert "step=31" in page.url
    over.hover(position={"x": box["width"] - 3, "y": 60})
    assert "index 0.59" in page.locator(".readout").inner_text()


def test_session_events_are_listed_searched_and_chosen(look: Look) -> None:
    page = look.at(PATH)
    page.fill(".events-card input", "requirements")
    expect(page.locator(".event-row")).to_have_count(2)  # the question before the call, and the call
    page.locator(".event-row button").last.click()
    expect(page.locator(".step h2")).to_contain_text("Step 4")
    page.fill(".events-card input", "")
    expect(page.locator(".event-row").first).to_have_attribute("aria-setsize", "31")


def test_session_moments_lead_to_their_steps(look: Look) -> None:
    page = look.at(PATH)
    page.locator(".moments summary").click()
    page.locator(".moments button", has_text="outcome").click()
    expect(page.locator(".step h2")).to_contain_text("Step 7")


def test_session_that_is_not_there_is_told(look: Look) -> None:
    look.page.goto(look.base + session_path("bilder", "monday"))
    expect(look.page.locator("#notice")).to_contain_text("builder")  # the nearest name
    look.faults = [fault for fault in look.faults if "404" not in fault]


def test_session_read_only_has_no_buttons_that_write(look: Look) -> None:
    page = look.at(PATH)
    assert page.get_by_role("button", name="good").count() == 0
    assert page.get_by_role("button", name="Label with a comment …").count() == 0


def test_session_labels_reach_the_store(browser: Browser, recorded: Path, tmp_path: Path) -> None:
    path = copied(recorded, tmp_path)
    with serving(path, writes=True) as served, looking(browser, served.server.url) as look:
        page = look.at(PATH)
        head = page.locator(".session-head")
        head.get_by_role("button", name="bad: this run").click()
        expect(head.get_by_role("button", name="bad: this run")).to_have_attribute("aria-pressed", "true")
        assert look.page.evaluate("document.activeElement.textContent").endswith("bad"), "the focus stays"
        with Store(path) as store:
            assert session_label(store, "builder", "monday") is False
        page.get_by_role("button", name="Label with a comment …").click()
        page.fill("#ask-field", "it touched the lock file")
        page.get_by_role("button", name="Label …").click()
        page.get_by_role("button", name="✓ good").last.click()
        expect(head.get_by_role("button", name="good: this run")).to_have_attribute("aria-pressed", "true")
        page.fill(".events-card input", "it touched")
        expect(page.locator(".event-row")).to_have_count(1)
        assert "it touched the lock file" in page.locator(".event-row").inner_text()
        firing = page.locator(".told.scrolls > li", has_text="bash_retry")
        firing.get_by_role("button", name="bad").click()
        expect(firing.get_by_role("button", name="bad")).to_have_attribute("aria-pressed", "true")


def test_session_block_is_ended_with_a_reason(browser: Browser, recorded: Path, tmp_path: Path) -> None:
    path = copied(recorded, tmp_path)
    with serving(path, writes=True) as served, looking(browser, served.server.url) as look:
        page = look.at(session_path("researcher", "1"))
        page.locator(".told.scrolls").get_by_role("button", name="Let it go on …").first.click()
        page.fill("#ask-field", "the service is back")
        page.get_by_role("button", name="Let it go on", exact=True).click()
        expect(page.locator(".told.scrolls")).to_contain_text("the service is back")
