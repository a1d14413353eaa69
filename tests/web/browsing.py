"""A real browser on a real server: pages that are opened as a user opens them, and what goes wrong in them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE = (1400, 900)
PHONE = (390, 844)

PATHS = {
    "overview": "/",
    "session": "/session/builder/monday",
    "compare": "/compare?a=builder&b=monday&c=reader&d=calm",
    "fleet": "/fleet",
    "lessons": "/lessons",
    "guard": "/guard",
    "experiments": "/experiments",
}
"""Each page, with the session of ``recorded_store`` that has the most to show."""


def session_path(agent: str, session: str) -> str:
    """Return the address of a session's page."""
    return f"/session/{quote(agent, safe='')}/{quote(session, safe='')}"


@contextmanager
def launched() -> Iterator[Browser]:
    """Start the browser that is installed; skip the test if there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as p:
        # a machine without a network has nothing for the browser's own calls home
        browser = p.chromium.launch(executable_path=path, args=["--disable-background-networking"])
        yield browser
        browser.close()


class Look:
    """One tab, logged in; what its console complains of and what it loads is kept.

    Parameters
    ----------
    url : str
        The printed address, with the token.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.base = url.partition("/#")[0]
        self.faults: list[str] = []
        self.loaded: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: self.loaded.append(request.url))
        page.set_default_timeout(20_000)
        page.goto(url)
        page.locator("#store", has_text=".db").wait_for(state="attached")  # narrow screens do not show it

    def at(self, path: str) -> Page:
        """Open a page of the server, and wait until it shows what it has."""
        self.page.goto(self.base + path)
        self.page.locator("main h1").first.wait_for()
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page has what it asked for, and two frames are drawn."""
        self.page.locator("#pulse[data-state=on]").wait_for()
        self.page.locator("main:not([aria-busy])").wait_for()
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@contextmanager
def looking(
    browser: Browser,
    url: str,
    *,
    size: tuple[int, int] = WIDE,
    scheme: Literal["light", "dark"] = "light",
    quiet: bool = True,
    **options: Any,
) -> Iterator[Look]:
    """Open a tab; with ``quiet``, no script may have failed and nothing but the server may have been asked."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce", **options
    )
    look = Look(context.new_page(), url)
    try:
        yield look
        if quiet:
            assert look.faults == []
        assert {address.split("/")[2] for address in look.loaded} == {look.base.split("/")[2]}
    finally:
        # an answer that a test changes may still be on its way
        look.page.unroute_all(behavior="ignoreErrors")
        context.close()


def copied(store: Path, folder: Path) -> Path:
    """Return a copy of a store that nobody has open."""
    shutil.copy(store, folder / "runs.db")
    return folder / "runs.db"
