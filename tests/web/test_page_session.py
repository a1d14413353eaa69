"""The page of a session in a browser: why its light is what it is, what the agent was told, whether it helped."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from coherence.store.runs import session_label
from coherence.store.store import Store
from web.browsing import PATHS, Look, copied, looking, session_path
from web.recorded_store import record_calm
from web.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.web

PATH = session_path("builder", "monday")

SLOW_BODIES = """const ask = window.fetch;
window.fetch = async (path, options) => {
  const response = await ask(path, options);
  response.json = async () => {
    await new Promise((done) => setTimeout(done, Math.random() * 60));
    options.signal?.throwIfAborted();
    return Response.prototype.json.call(response);
  };
  return response;
};"""
"""Makes the rest of each answer come later than its beginning."""


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
    assert "✓ better after it" in told.filter(has_text="bash_error_streak").inner_text()
    assert "✗ not better after it" in told.filter(has_text="bash_retry").inner_text()
    assert "other things may have changed too" in told.first.locator(".chip").get_attribute("title")
    assert page.locator(".told-card .section-head").inner_text().endswith("1 better of 2 measured")
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


def test_session_in_trouble_links_to_the_step_where_it_began(look: Look) -> None:
    page = look.at(session_path("researcher", "1"))  # green, yellow, then orange from step 3 on, at last red
    page.get_by_role("button", name="In trouble since step 3").click()
    expect(page.locator(".step h2")).to_contain_text("Step 3")
    page = look.at(session_path("scout", "errand"))
    expect(page.locator(".chart canvas")).to_be_visible()
    expect(page.get_by_role("button", name="In trouble since")).to_have_count(0)


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
    expect(page.locator(".event-row")).to_have_count(1)
    page.locator(".event-row button").click()
    expect(page.locator(".step h2")).to_contain_text("Step 4 of 7")
    page.get_by_role("button", name="measurements").click()
    expect(page.locator(".event-row")).to_have_count(2)  # the question before the call, too
    page.fill(".events-card input", "")
    expect(page.locator(".event-row").first).to_have_attribute("aria-setsize", "31")
    page.get_by_role("button", name="measurements").click()
    expect(page.locator(".event-row").first).to_have_attribute("aria-setsize", "17")  # 14 measurements less
    assert page.locator(".event-row", has_text="measured").count() == 0


def test_session_link_to_a_measurement_shows_its_step_though_it_is_not_listed(look: Look) -> None:
    page = look.at(f"{PATH}?step=19")
    expect(page.locator(".step h2")).to_contain_text("Step 4")
    expect(page.locator(".event-row.chosen", has_text="requirements")).to_be_visible()
    assert page.locator('.event-row [data-seq="19"]').count() == 0


def test_session_list_of_a_long_session_shows_the_step_of_its_address(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    record_calm(path, steps=150)
    with serving(path) as served, looking(browser, served.server.url) as look:
        page = look.at(session_path("reader", "calm") + "?step=350")
        chosen = page.locator(".event-row.chosen")
        expect(chosen.first).to_be_visible()
        inside = "(one) => { const a = one.getBoundingClientRect(), b = one.closest('.event-box')"
        inside += ".getBoundingClientRect(); return a.top >= b.top && a.bottom <= b.bottom; }"
        assert chosen.first.evaluate(inside), "it is scrolled to, though what is above it was only guessed at first"
        step = page.locator(".step h2").inner_text().split()[1]
        assert f"chapter_{int(step) - 1}.md" in chosen.first.inner_text()
        page.locator(".event-box").evaluate("(one) => one.scrollTo(0, 0)")
        expect(page.locator(".event-row button").first).to_contain_text("Read the files")
        page.locator(".event-box").evaluate("(one) => one.scrollTo(0, one.scrollHeight)")
        expect(page.locator(".event-row").last).to_contain_text("harbour number 1043")


def test_session_moments_lead_to_their_steps(look: Look) -> None:
    page = look.at(PATH)
    page.locator(".moments summary").click()
    page.locator(".moments button", has_text="outcome").click()
    expect(page.locator(".step h2")).to_contain_text("Step 7")


def test_session_that_is_not_there_is_told(look: Look) -> None:
    look.page.goto(look.base + session_path("bilder", "monday"))
    page = look.page
    expect(page.locator(".empty")).to_contain_text("no session is called bilder/monday")
    assert page.locator(".chart, .step, .event-box, main button").count() == 0, "nothing that leads nowhere"
    for key in ("n", "Home", "+", "f", "j"):
        page.keyboard.press(key)
    page.get_by_role("link", name="builder monday").click()  # the nearest name
    expect(page.locator(".chart canvas")).to_be_visible()
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
        page.press("#ask-field", "Control+Enter")  # makes no choice, and loses nothing
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="✓ good").click()
        expect(dialog).to_have_count(0)
        expect(head.get_by_role("button", name="good: this run")).to_have_attribute("aria-pressed", "true")
        expect(head.locator(".comment")).to_have_text("it touched the lock file")
        page.get_by_role("button", name="Edit the comment …").click()
        expect(page.locator("#ask-field")).to_have_value("it touched the lock file")
        dialog.get_by_role("button", name="Cancel").click()
        head.get_by_role("button", name="bad: this run").click()
        expect(head.get_by_role("button", name="bad: this run")).to_have_attribute("aria-pressed", "true")
        expect(head.locator(".comment")).to_have_text("it touched the lock file")
        head.get_by_role("button", name="good: this run").click()
        page.fill(".events-card input", "it touched")
        expect(page.locator(".event-row").first).to_contain_text("it touched the lock file")
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


def changed(page: Page, name: str, change: Callable[[Any], None]) -> None:
    """Change the answers of the server to a question."""

    def answer(route: Route) -> None:
        response = route.fetch()
        found = response.json()
        change(found)
        route.fulfill(response=response, json=found)

    page.route(f"**/api/{name}?*", answer)


def test_session_refusals_in_a_row_are_one_card(look: Look) -> None:
    def join(view: Any) -> None:
        view["refusals"][0] |= {"count": 12, "since": 9}

    changed(look.page, "session", join)
    page = look.at(session_path("researcher", "1"))
    card = page.locator(".told.scrolls .refused").first
    assert "All calls are refused" in card.inner_text()
    assert re.search(r"events #9 to #\d+", card.locator(".told-head").inner_text())
    card.get_by_role("button", name=re.compile(r"#\d+")).first.click()
    expect(page.locator(".step h2")).to_contain_text("Step")


def test_session_reason_is_shown_whole_where_somebody_asks_for_it(look: Look) -> None:
    def lengthen(view: Any) -> None:
        view["cause"] = "the same call came to the same result again, and again, and nobody looked at it; " * 12

    changed(look.page, "session", lengthen)
    page = look.at(PATH)
    cause = page.locator(".cause.big").first
    short = cause.evaluate("(one) => one.clientHeight")
    page.get_by_role("button", name="more", exact=True).click()
    assert cause.evaluate("(one) => one.clientHeight") > short
    page.get_by_role("button", name="less", exact=True).click()
    assert cause.evaluate("(one) => one.clientHeight") == short


def test_session_says_what_its_numbers_and_labels_mean(browser: Browser, recorded: Path, tmp_path: Path) -> None:
    path = copied(recorded, tmp_path)
    with serving(path, writes=True) as served, looking(browser, served.server.url) as look:
        page = look.at(PATH)
        for place in (".figures", ".step-body .facts", ".chart-key"):
            titles = [one.get_attribute("title") for one in page.locator(f"{place} [title]").all()]
            assert any("the chance that the run is on course now" in title for title in titles if title)
            assert any("how unusual the newest steps are" in title for title in titles if title)
        assert page.get_by_role("button", name="good: this run").get_attribute("title") == "this run went well"
        hint = page.locator(".told.scrolls > li").first.get_by_role("button", name="good")
        assert hint.get_attribute("title") == "this hint was right to be given"
        page = look.at(session_path("researcher", "1"))
        refusal = page.locator(".told.scrolls .refused").first.get_by_role("button", name="good")
        assert refusal.get_attribute("title") == "this refusal was right"


def test_session_left_at_once_complains_of_nothing(look: Look) -> None:
    page = look.at("/")
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.add_init_script(SLOW_BODIES)
    page.reload()
    for wait in range(0, 120, 12):  # ms
        for path in (PATH, "/", "/fleet", "/lessons", PATHS["compare"]):
            page.evaluate(
                "(path) => { const link = document.createElement('a'); link.href = path; document.body.append(link);"
                " link.click(); link.remove(); }",
                path,
            )
            page.wait_for_timeout(wait)
            page.keyboard.press("n")
    page.wait_for_timeout(500)
    assert told == []
