"""The look of each page: its structure as people hear it, kept beside this file, and pictures of it to be looked at.

Pictures differ between machines with other fonts, so none are kept here: `PAGE_PICTURES=folder` keeps those of a run,
and `PAGE_WRITE=1` writes the structure anew.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from web.browsing import PATHS, PHONE, WIDE, Look, looking
from web.serving import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = pytest.mark.web

KEPT = Path(__file__).parent / "structure"
CHANGES = [
    (r"-[0-9a-f]{16}\b", "-ID"),
    (r"\b\d+(\.\d+)? ?(ms|s|min)\b", "TIME"),
]
"""Pattern of a text that differs from run to run -> the text that stands for it."""


SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
UNSEEN = """() => [...document.querySelectorAll("main *, header *")].filter((one) => {
  const style = getComputedStyle(one);
  const cut = one.scrollWidth > one.clientWidth + 1 && style.overflowX === "hidden" && one.checkVisibility();
  const signed = style.textOverflow === "ellipsis" || style.webkitLineClamp !== "none";
  return cut && !signed && !one.matches(".hidden, svg, svg *, .uplot *");
}).map((one) => one.outerHTML.slice(0, 200))"""


def stilled(look: Look) -> Look:
    """Stop what goes on by itself: it is two hours later from now on, and no session is running any more."""

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=response.text().replace('"live":true', '"live":false'))

    look.page.clock.set_fixed_time(time.time() + 7200)
    look.page.route(re.compile(r"/api/(overview|session|compare|fleet)"), answer)
    return look


def structure(text: str) -> str:
    for pattern, instead in CHANGES:
        text = re.sub(pattern, instead, text)
    return text + "\n"


@pytest.mark.parametrize("name", PATHS)
def test_look_structure_is_the_one_that_is_kept(browser: Browser, served: Served, name: str) -> None:
    with looking(browser, served.server.url) as look:
        found = structure(stilled(look).at(PATHS[name]).locator("main").aria_snapshot())
    assert not re.search(r"\[object|\bundefined\b|\bNaN\b|\bnull\b", found), "a value that nobody has put into words"
    file = KEPT / f"{name}.yml"
    if os.environ.get("PAGE_WRITE"):
        file.write_text(found, "utf-8")
    assert found == file.read_text("utf-8")


def test_look_bar_and_backdrop_reach_the_edge_on_short_and_long_pages(browser: Browser, served: Served) -> None:
    with looking(browser, served.server.url) as look:
        lefts = set()
        for path in ("/experiments", "/guard", PATHS["session"], "/session/nobody/1"):
            look.page.goto(look.base + path)
            look.page.locator("main h1").first.wait_for()
            look.settle()
            bar = look.page.locator(".bar").bounding_box()
            assert bar is not None and bar["x"] + bar["width"] == WIDE[0]
            lefts.add(look.page.locator("main").evaluate("(one) => one.getBoundingClientRect().left"))
        assert len(lefts) == 1, "nothing jumps from page to page"
        look.faults = [fault for fault in look.faults if "404" not in fault]


@pytest.mark.parametrize("width", [PHONE[0], 780, 900, 1100])
def test_look_no_page_is_missing_from_the_bar(browser: Browser, served: Served, width: int) -> None:
    with looking(browser, served.server.url, size=(width, 800)) as look:
        page = look.at("/experiments")
        cut = page.locator(".bar nav").evaluate("(one) => one.scrollWidth - one.clientWidth")
        assert cut <= 0
        last = page.locator(".bar nav a").last.bounding_box()
        assert last is not None and last["x"] + last["width"] <= width


def test_look_tables_of_a_phone_scroll_in_their_cards(browser: Browser, served: Served) -> None:
    with looking(browser, served.server.url, size=PHONE) as look:
        look.page.route(re.compile("/api/compare"), lengthened)
        for name in ("compare", "fleet", "session"):
            page = look.at(PATHS[name])
            assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE[0], name
        told, chart = (page.locator(part).bounding_box() for part in (".told-card", ".course"))
        assert told is not None and chart is not None and told["y"] < chart["y"]


def lengthened(route: Route) -> None:
    """Answer with a rule of a long name and large amounts."""
    response = route.fetch()
    found = response.json()
    found["findings"].append(["a_rule_with_a_name_that_is_long_enough_for_two_lines", 12_345, 67_890])
    for rate in found["rates"]:
        if rate["name"] == "tokens":
            rate |= {"one": 123_456_789.0, "other": 1.0, "difference": -123_456_788.0}
    route.fulfill(response=response, json=found)


@pytest.mark.parametrize("name", PATHS)
def test_look_pictures_of_both_themes_and_widths(browser: Browser, served: Served, tmp_path: Path, name: str) -> None:
    folder = Path(os.environ.get("PAGE_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    grounds = {}
    for size in (WIDE, PHONE):
        for scheme in SCHEMES:
            with looking(browser, served.server.url, size=size, scheme=scheme) as look:
                page = stilled(look).at(PATHS[name])
                picture = page.screenshot(animations="disabled")
                (folder / f"{name}-{size[0]}-{scheme}.png").write_bytes(picture)
                assert picture[16:24] == size[0].to_bytes(4) + size[1].to_bytes(4)
                assert len(picture) > 10_000, "a blank page"
                grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
                seen = page.evaluate(UNSEEN)
                assert seen == [], "texts that are cut without a sign of it"
    assert grounds == {"light": "rgb(247, 246, 243)", "dark": "rgb(16, 18, 22)"}
