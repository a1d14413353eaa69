"""Costs of the page in a real browser: first paint, news, and a session of many steps.

    python tests/bench/page_in_browser.py [STORE AGENT SESSION]

Needs the extra web-test and a Chromium. With a store, its session is opened, zoomed and scrolled too.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from web.browsing import launched, looking, session_path
from web.recorded_store import record_all
from web.serving import serving

from coherence.monitor.monitor import Monitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 10
PAINT = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  return paint ?? null;
}"""
FRAMES = """() => new Promise((done) => {
  const gaps = [];
  let last = performance.now();
  const started = last;
  const box = document.querySelector(".event-box");
  const frame = (now) => {
    gaps.push(now - last);
    last = now;
    box.scrollTop += 4000;
    if (now - started < 3000) requestAnimationFrame(frame);
    else done(gaps.slice(2));
  };
  requestAnimationFrame(frame);
})"""


def paints(page: Page, url: str) -> list[float]:
    """Return the milliseconds to the first paint of content, of a page that was opened before."""
    found = []
    for _ in range(ROUNDS):
        page.goto("about:blank")
        page.goto(url)
        page.wait_for_function(PAINT)
        found.append(page.evaluate(PAINT))
    return found


def news(page: Page, path: Path) -> list[float]:
    """Return the milliseconds from a decision, which is written, until its step is on the page."""
    found = []
    with Monitor(agent="walker", session="w", store=path, embedder=False, goal="walk") as m:
        for number in range(ROUNDS):
            call = m.tool_call("Read", {"path": f"mile_{number}"})
            m.tool_result(f"mile {number} is behind me", call=call)
            m.decide()
            m.flush()
            started = time.perf_counter()
            page.get_by_text(f"{number + 1} step", exact=False).first.wait_for()
            found.append((time.perf_counter() - started) * 1000)
            time.sleep(0.7)
    return found


def told(name: str, values: list[float], unit: str = "ms") -> None:
    """Print the middle and the worst of some values."""
    print(f"{name:<46} median {statistics.median(values):6.0f} {unit}  worst {max(values):6.0f} {unit}")


def small(browser: Browser) -> None:
    """Measure a small store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        record_all(path)
        with serving(path) as served, looking(browser, served.server.url) as look:
            told("first paint, overview", paints(look.page, look.base + "/"))
            told("first paint, session", paints(look.page, look.base + session_path("builder", "monday")))
            look.at("/?agent=walker")
            told("from the record to the page, overview", news(look.page, path))


def large(browser: Browser, path: Path, agent: str, session: str) -> None:
    """Measure a session that exists."""
    with serving(path) as served, looking(browser, served.server.url) as look:
        page = look.page
        opened = []
        for _ in range(3):
            started = time.perf_counter()
            page.goto(look.base + session_path(agent, session))
            page.locator(".step-body .event").first.wait_for()
            page.locator(".chart canvas").wait_for()
            opened.append((time.perf_counter() - started) * 1000)
        told("session page, all of it", opened)
        zooms = []
        for _ in range(8):
            started = time.perf_counter()
            with page.expect_response("**/api/timeline*"):
                page.keyboard.press("+")
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            zooms.append((time.perf_counter() - started) * 1000)
        told("zoom, until its points are drawn", zooms)
        steps = []
        for _ in range(10):
            started = time.perf_counter()
            with page.expect_response("**/api/step*"):
                page.keyboard.press("k")
            steps.append((time.perf_counter() - started) * 1000)
        told("previous step", steps)
        told("frame while all events scroll by", page.evaluate(FRAMES))
        heap = page.evaluate("() => performance.memory ? performance.memory.usedJSHeapSize / 1e6 : -1")
        print(
            f"{'heap of the page':<46} {heap:.0f} MB, {page.locator('.event-row').count()} event rows in the document"
        )


if __name__ == "__main__":
    with launched() as browser:
        small(browser)
        if len(sys.argv) == 4:
            large(browser, Path(sys.argv[1]), sys.argv[2], sys.argv[3])
