"""The report's script, driven in a browser: what is shown after search, filters, sorting and a choice of step."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from web.browsing import launched

from coherence import Monitor
from coherence.providers import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.report.html import write_html
from coherence.report.runs import read_runs
from coherence.report.score import FROM_BEST, ScoredRun, score_transcript

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.web

DATA = Path(__file__).resolve().parents[1] / "data" / "runs" / "derailed.jsonl.gz"
IDS = ("drv/00078f64eb4d", "drv/01bdc99d9863", "drv/0094f5956274", "drv/01f605574611")
"""A run that derails, its good twin, a harmless look-alike, and a claim of success that is false."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ScoredRun]:
    path = tmp_path_factory.mktemp("runs") / "some.jsonl"
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        lines = {json.loads(line)["id"]: line for line in file}
    path.write_text("".join(lines[id] for id in IDS), "utf-8")
    found = [score_transcript(run, embedder=HashingEmbedder()) for run in read_transcripts(path)]
    assert {run.verdict for run in found} >= {"hit", "calm"}, "else there is nothing to filter by"
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, runs: list[ScoredRun], tmp_path: Path) -> Iterator[Page]:
    """Open the report from disk; whatever a test does, its script fails nowhere and loads nothing."""
    path = tmp_path / "report.html"
    write_html(path, runs)
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    faults: list[str] = []
    loaded: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: loaded.append(request.url.partition("#")[0]))
    page.set_default_timeout(10_000)
    page.goto(path.as_uri())
    yield page
    assert faults == [] and set(loaded) == {path.as_uri()}
    context.close()


def shown(page: Page) -> list[str]:
    """Return the names of the runs in the table, from top to bottom, and see that the sections are the same runs."""
    rows = page.locator("#overview tbody tr:visible")
    names = [row.locator("td").first.inner_text() for row in rows.all()]
    sections = [section.get_attribute("id") for section in page.locator("section.run:visible").all()]
    assert sorted(map(str, sections)) == sorted(str(row.get_attribute("data-run")) for row in rows.all())
    return names


def cells(page: Page, name: str) -> list[str]:
    found: list[str] = page.locator(f'#overview tbody td[data-name="{name}"]').all_inner_texts()
    return found


def test_page_search_shows_the_runs_with_all_words(page: Page) -> None:
    assert shown(page) == list(IDS) and page.locator("#found").inner_text() == ""
    page.fill("#find", "DERAILED drv/0")
    assert shown(page) == [IDS[0], IDS[3]]
    assert page.locator("#found").inner_text() == "2 of 4 runs"
    page.fill("#find", "derailed nowhere-to-be-found")
    assert shown(page) == [] and page.locator("#found").inner_text() == "0 of 4 runs"
    page.press("#find", "Enter")  # submits nothing
    page.fill("#find", "")
    assert shown(page) == list(IDS)


def test_page_filters_show_the_runs_of_a_kind_and_go_with_the_search(page: Page, runs: list[ScoredRun]) -> None:
    hits = [run.transcript.id for run in runs if run.verdict == "hit"]
    calm = [run.transcript.id for run in runs if run.verdict == "calm"]
    page.select_option("[data-filter=outcome]", "hit")
    assert shown(page) == hits
    page.fill("#find", calm[0])
    assert shown(page) == []
    page.select_option("[data-filter=outcome]", "calm")
    assert shown(page) == calm[:1]
    page.fill("#find", "")
    band = next(run.worst_band for run in runs if run.transcript.id == calm[0])
    page.select_option("[data-filter=band]", band)
    assert shown(page) == [run.transcript.id for run in runs if run.verdict == "calm" and run.worst_band == band]


def test_page_sorting_goes_up_then_down_then_back_and_leaves_filters_alone(page: Page, runs: list[ScoredRun]) -> None:
    lengths = [len(run.readings) for run in runs]
    assert len(set(lengths)) > 2
    head = page.locator("#overview th", has_text="steps").last
    head.locator("button").click()
    assert [int(cell) for cell in cells(page, "steps")] == sorted(lengths)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert [int(cell) for cell in cells(page, "steps")] == sorted(lengths, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    page.set_viewport_size({"width": 400, "height": 800})  # where the table has no heads
    page.select_option("#sort", label="run")
    assert shown(page) == sorted(IDS) and head.get_attribute("aria-sort") is None
    page.fill("#find", "derailed")
    page.select_option("#sort", label="known outcome")
    rank = ["hit", "miss", "false alarm", "calm"]
    by_outcome = sorted(runs, key=lambda run: rank.index(run.verdict or ""))
    assert shown(page) == [run.transcript.id for run in by_outcome if "derailed" in run.transcript.outcome]
    page.fill("#find", "")
    page.select_option("#sort", label="band after each step")  # by the worst, the best first, and not by its name
    bands = sorted((run.worst_band for run in runs), key=FROM_BEST.index)
    assert bands != sorted(bands), "else the order tells nothing"
    assert [row.get_attribute("data-band") for row in page.locator("#overview tbody tr").all()] == bands
    page.select_option("#sort", label="as given")
    assert shown(page) == list(IDS)


def view_of(page: Page) -> dict[str, Any]:
    """Return what the view of a step shows, and where the address points."""
    view = page.locator("#step")
    return {
        "run": view.locator("#step-name").inner_text(),
        "step": view.locator("#step-body h4").inner_text().split()[1],
        "hash": page.evaluate("location.hash"),
    }


def test_page_a_step_is_shown_by_its_link_and_keys_and_buttons_go_on(page: Page, runs: list[ScoredRun]) -> None:
    run = runs[0]
    lowest, last = run.lowest, len(run.readings) - 1
    assert lowest is not None
    at = lowest.tick_seq
    assert 0 < at < last
    page.locator("#overview tbody tr").first.locator('td[data-name="worst step and why"] a').click()
    assert page.locator("#step").is_visible()
    assert view_of(page) == {"run": run.transcript.id, "step": f"{at}", "hash": f"#run-1-at-{at}"}
    said = " ".join(run.transcript.steps[at].text().split())[:30]
    assert said and said in " ".join(page.locator("#step-body").inner_text().split())
    page.keyboard.press("ArrowLeft")
    assert view_of(page)["step"] == f"{at - 1}"
    for _ in range(last - at + 1):
        page.click("#step-next")
    assert view_of(page)["step"] == f"{last}" and page.locator("#step-next").is_disabled()
    page.keyboard.press("ArrowRight")  # there is none
    assert view_of(page)["step"] == f"{last}" and page.locator("#step-before").is_enabled()
    page.keyboard.press("Escape")
    assert not page.locator("#step").is_visible() and page.evaluate("location.hash") == ""


def test_page_an_address_of_a_step_opens_it(page: Page) -> None:
    page.goto(f"{page.url}#run-2-at-0")
    page.reload()
    assert view_of(page) == {"run": IDS[1], "step": "0", "hash": "#run-2-at-0"}
    assert page.locator("#step-before").is_disabled()
    page.click("#step-close")
    assert not page.locator("#step").is_visible()


def test_page_the_strip_tells_of_a_step_and_shows_it(page: Page, runs: list[ScoredRun]) -> None:
    strip = page.locator('#overview .strip[data-run="run-3"]')
    strip.hover(position={"x": 2, "y": 5})
    tip = page.locator("#tip")
    assert tip.is_visible() and tip.inner_text().startswith("Step 0")
    page.mouse.move(0, 0)
    assert not tip.is_visible()
    page.locator('#overview tr[data-run="run-3"] a').first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    last = len(runs[2].readings) - 1
    assert tip.inner_text().startswith(f"Step {last}")
    assert strip.get_attribute("aria-valuenow") == f"{last}"
    page.keyboard.press("Enter")
    assert view_of(page) == {"run": IDS[2], "step": f"{last}", "hash": f"#run-3-at-{last}"}


def test_page_a_chart_tells_of_a_step_and_a_row_of_the_table_shows_it(page: Page, runs: list[ScoredRun]) -> None:
    chart = page.locator("#run-4 .timeline .row[data-name] .chart").first
    chart.focus()
    page.keyboard.press("ArrowRight")
    tip = page.locator("#tip")
    assert tip.is_visible() and tip.inner_text().startswith("step 1 ·")
    index = runs[3].readings[1].coherence_index
    assert index is None or f"index {index:.2f}" in tip.inner_text()
    assert all(mark.get_attribute("d") for mark in page.locator("#run-4 .timeline .cross").all())
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.locator("#run-4 summary", has_text="Every step in numbers").click()
    page.locator("#run-4 table.steps").locator("tbody tr").nth(2).locator("td").first.click()
    assert view_of(page) == {"run": IDS[3], "step": "2", "hash": "#run-4-at-2"}


@pytest.mark.parametrize("width", [1400, 390])
def test_page_a_choice_of_a_run_lands_on_it_at_once(
    browser: Browser, runs: list[ScoredRun], tmp_path: Path, width: int
) -> None:
    many = [runs[at % len(runs)] for at in range(30)]
    write_html(tmp_path / "many.html", many)
    context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    where = (tmp_path / "many.html").as_uri()
    top = "document.getElementById('run-{}-name').getBoundingClientRect().top"
    for at in (2, 12, 30):
        page.goto("about:blank")
        page.goto(f"{where}#run-{at}")
        assert 0 <= page.evaluate(top.format(at)) < 850, f"an address of run {at}"
        page.goto("about:blank")
        page.goto(where)
        page.locator(f'#overview tr[data-run="run-{at}"] a').first.click()
        page.wait_for_function("location.hash")
        page.wait_for_timeout(100)  # a frame, in which the page is laid out where it is shown
        assert 0 <= page.evaluate(top.format(at)) < 850, f"a click on run {at}"
    context.close()


def test_page_a_search_finds_a_refused_call_and_the_strip_tells_of_it(browser: Browser, tmp_path: Path) -> None:
    for agent, command in (("cleaner", "rm -rf / --no-preserve-root"), ("reader", "ls")):
        with Monitor(store=tmp_path / "s.db", agent=agent, goal="Free some space.", embedder=False) as m:
            m.message("assistant", "I look at what is there.")
            m.tool_result("3 files", call=m.tool_call("Bash", {"command": "du"}))
            m.check("Bash", {"command": command})
    write_html(tmp_path / "out.html", read_runs(tmp_path / "s.db"))
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto((tmp_path / "out.html").as_uri())
    assert len(shown(page)) == 2
    for words in ("rm -rf", "refused", "no-preserve-root"):
        page.fill("#find", words)
        assert shown(page) == ["cleaner/1"], words
    page.fill("#find", "")
    strip = page.locator('#overview .strip[data-run="run-1"]')
    strip.focus()
    page.keyboard.press("End")
    tip = page.locator("#tip").inner_text()
    # a message and a result were complete when the call was refused
    assert tip.startswith("Step 2 #") and "Refused: Bash “rm -rf / --no-preserve-root”" in tip
    page.keyboard.press("Enter")
    assert view_of(page)["step"] == "2" and "Refused: Bash" in page.locator("#step-body").inner_text()
    context.close()
