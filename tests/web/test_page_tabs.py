"""Many tabs: a browser opens six connections to a server, and a live tab keeps one of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from web.browsing import looking
from web.recorded_store import record_calm
from web.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.web

HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_live_tab_that_nobody_sees_gives_its_connection_back_and_catches_up(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    record_calm(path)
    with serving(path) as served, looking(browser, served.server.url) as look:
        page = look.at("/")
        expect(page.locator("#pulse-text")).to_have_text("live")
        tabs = [page]
        for _ in range(8):  # one after the other comes to the front
            tabs[-1].evaluate(HIDE, True)
            tabs.append(page.context.new_page())
            tabs[-1].goto(f"{served.base}/")
            expect(tabs[-1].locator("#pulse-text")).to_have_text("live")
        assert len(served.server._server._feed._pages) <= 2, "the one that is seen, and one whose end is not known yet"
        record_calm(path, session="meanwhile", steps=2)
        expect(tabs[-1].locator(".row", has_text="meanwhile")).to_be_visible()
        assert page.locator(".row", has_text="meanwhile").count() == 0
        tabs[-1].evaluate(HIDE, True)
        page.evaluate(HIDE, False)
        expect(page.locator(".row", has_text="meanwhile")).to_be_visible()
        expect(page.locator("#pulse-text")).to_have_text("live")
