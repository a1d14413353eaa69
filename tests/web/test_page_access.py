"""Accessibility of every page by axe-core: WCAG 2.2 A and AA, light and dark, wide and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from web.browsing import PATHS, PHONE, WIDE, Look, looking
from web.serving import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.web

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Page) -> list[str]:
    """Return what axe finds, each with the first element that it is about."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found: Any = axe.run(page, options={"runOnly": RULES}).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {node['html'][:300]} {node['any'][:1]}"
        for one in found
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_access_of_all_pages(browser: Browser, served: Served, scheme: Literal["light", "dark"]) -> None:
    found = {}
    for size in (WIDE, PHONE):
        with looking(browser, served.server.url, size=size, scheme=scheme) as look:
            for name, path in PATHS.items():
                page = look.at(path)
                found[name, size] = violations(page)
                wide = page.evaluate(
                    "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
                )
                assert wide <= 0, f"{name} is {wide} px wider than the screen"
    assert {where: what for where, what in found.items() if what} == {}


def test_access_of_what_opens(look: Look) -> None:
    page = look.at(PATHS["session"])
    for summary in page.locator("summary").all():
        summary.click()
    assert violations(page) == []
    page.keyboard.press("?")
    assert violations(page) == []
