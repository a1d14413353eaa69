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
