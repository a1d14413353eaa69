"""Live pages: what is recorded appears, and the reader keeps the place; a server that comes back is found again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coherence.monitor.monitor import Monitor
from web.browsing import Look, copied, looking, session_path
from web.recorded_store import record_calm
from web.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.web


@pytest.fixture
def path(recorded: Path, tmp_path: Path) -> Path:
    return copied(recorded, tmp_path)


@pytest.fixture
def look(browser: Browser, path: Path) -> Iterator[Look]:
    with serving(path) as served, looking(browser, served.server.url) as look:
        yield look


def test_live_a_new_session_appears_without_reload(look: Look, path: Path) -> None:
    page = look.at("/")
    expect(page.locator(".row")).to_have_count(8)
    page.evaluate("window.kept = true")
    with Monitor(agent="newcomer", session="now", store=path, embedder=False, goal="say hello") as m:
        m.message("assistant", "Hello there.")
        m.decide()
        expect(page.locator(".row", has_text="newcomer")).to_be_visible()
        expect(page.locator(".row", has_text="newcomer")).to_contain_text("running")
    assert page.evaluate("window.kept"), "the page was not loaded anew"


def test_live_list_keeps_scroll_and_the_chosen_row(look: Look, path: Path) -> None:
    for number in range(12):
        record_calm(path, session=f"more-{number}", steps=2)
    page = look.at("/")
    expect(page.locator(".row")).to_have_count(20)
    row = page.locator(".row", has_text="more-3").locator("[data-row]")
    row.focus()
    page.mouse.wheel(0, 400)
    page.wait_for_function("() => scrollY > 100")
    page.wait_for_timeout(200)
    before = page.evaluate("scrollY")
    record_calm(path, session="zz-last", steps=3)
    expect(page.locator(".row", has_text="zz-last")).to_have_count(1)
    assert abs(page.evaluate("scrollY") - before) < 120, "at most a new row higher up moves it"
    assert "more-3" in page.evaluate("() => document.activeElement.textContent")


def test_live_rows_stay_where_somebody_points_at_them(look: Look, path: Path) -> None:
    names = ".row .cover b"
    with Monitor(agent="zoe", session="z", store=path, embedder=False, goal="find the date") as m:
        m.message("assistant", "I look.")
        m.decide()
        page = look.at("/?flat=1")
        expect(page.locator(names)).to_have_count(9)
        before = page.locator(names).all_inner_texts()
        assert before[0] != "zoe"
        page.locator(".row", has_text="zoe").hover()
        for attempt in range(7):
            m.tool_call("search", {"query": f"launch date {attempt}"})
            m.tool_result("503 service unavailable", error=True)
            m.decide()
        expect(page.locator(".row", has_text="zoe").locator(".light")).to_contain_text("red")
        record_calm(path, agent="adam", session="new", steps=2)
        expect(page.locator(names)).to_have_count(10)
        assert page.locator(names).all_inner_texts() == [*before, "adam"], "the light changes, the place does not"
        assert "the order waits" in page.locator(".found").inner_text()
        page.locator("h1").hover()
        expect(page.locator(names).first).to_have_text("zoe")  # the worst, and the newest of those
        assert page.locator(names).last.inner_text() != "adam"


def test_live_session_follows_the_newest_step_until_one_is_chosen(look: Look, path: Path) -> None:
    with Monitor(agent="walker", session="w", store=path, embedder=False, goal="walk") as m:

        def walk(number: int) -> None:
            call = m.tool_call("Read", {"path": f"mile_{number}"})
            m.tool_result(f"mile {number} is behind me", call=call)
            m.decide()

        walk(1)
        page = look.at(session_path("walker", "w"))
        walk(2)
        expect(page.locator(".step-body")).to_contain_text("mile 2 is behind me")
        page.keyboard.press("k")
        expect(page.locator(".step-body")).to_contain_text("mile 1 is behind me")
        page.locator(".step-body details summary").last.click()
        walk(3)
        expect(page.locator(".figures")).to_contain_text("steps3")
        expect(page.locator(".step-body")).to_contain_text("mile 1 is behind me")
        expect(page.locator(".step-body details").last).to_have_attribute("open", "")
        page.keyboard.press("f")
        expect(page.locator(".step-body")).to_contain_text("mile 3 is behind me")
        walk(4)
        expect(page.locator(".step-body")).to_contain_text("mile 4 is behind me")


def test_live_light_that_turns_is_told_to_those_who_do_not_see_it(look: Look, path: Path) -> None:
    with Monitor(agent="faller", session="f", store=path, embedder=False) as m:
        m.message("user", "Find the launch date.")
        m.message("assistant", "I look.")
        m.decide()
        page = look.at("/")
        expect(page.locator(".row", has_text="faller")).to_be_visible()
        for attempt in range(7):
            m.tool_call("search", {"query": f"launch date {attempt}"})
            m.tool_result("503 service unavailable", error=True)
            m.decide()
        page.wait_for_function(
            "() => /faller is (yellow|orange|red) now/.test(document.getElementById('news').textContent)"
        )


def test_live_page_comes_back_with_a_server_that_was_started_again(browser: Browser, path: Path) -> None:
    with serving(path) as first, looking(browser, first.server.url, quiet=False) as look:
        page = look.at("/")
        port = first.server.port
        first.server.shutdown()
        expect(page.locator("#pulse-text")).to_have_text("reconnecting", timeout=20_000)
        assert page.locator(".row").count() == 8, "what was there stays"
        deadline = time.monotonic() + 20
        while True:  # the port is free once the first server has ended
            try:
                again = serving(path, port=port)
                second = again.__enter__()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        try:
            page.locator("#token").wait_for()  # its token is another one
            page.fill("#token", second.server.url)
            page.get_by_role("button", name="Log in").click()
            expect(page.locator("#pulse-text")).to_have_text("live")
            record_calm(path, session="after", steps=2)
            expect(page.locator(".row", has_text="after")).to_be_visible()
            assert page.locator("#notice").is_hidden()
        finally:
            again.__exit__(None, None, None)
