"""Make the pictures of the README and of these pages, each from runs that are recorded meanwhile.

``make pictures`` runs it. It needs an installed Chromium. The page and the terminal show ``coherence demo --live``, the
report shows ``coherence demo``. ``reliability.svg`` is drawn by ``make light``, with the figures beside it.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from textual.pilot import Pilot

from coherence.tui.face import WatchFace
from coherence.views.views import Views

FOLDER = Path(__file__).resolve().parents[1] / "images"

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

WIDTH = 1400
"""Pixels of a page."""

COLOURS = 128
"""Colours of a picture: a page has few, and shades of letters."""

LARGEST, ALL = 150_000, 600_000
"""Most bytes of a picture, and of all of them."""

SIZE = (110, 30)
"""Columns and lines of the terminal."""

SPEED = "20"

SETTLED_MS = 1500
"""Milliseconds after which a page is drawn."""

COMMAND = (sys.executable, "-m", "coherence")


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as name:
        pages(Path(name))
        asyncio.run(terminal(Path(name) / "live-demo.db"))
    check()


def pages(folder: Path) -> None:
    """Save what a browser shows."""
    with chromium() as page:
        with live_demo(folder) as (url, views):
            page.goto(url)
            page.get_by_text("live", exact=True).wait_for()
            until(lambda: bands(views)["answer-team"] == bands(views)["office-assistant"] == "orange")
            save(page, "sessions", height=620)
            until(lambda: not any(line.live for line in views.overview().lines))
            step = views.firings(agent="office-assistant")[-1].seq
            page.goto(f"{url.partition('#')[0]}session/office-assistant/1?step={step}")
            page.get_by_text("live", exact=True).wait_for()
            save(page, "session", height=1100)
        subprocess.run([*COMMAND, "demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        page.goto((folder / "report.html").as_uri())
        save(page, "report", height=1000)


@contextmanager
def chromium() -> Iterator[Page]:
    """Open a page in the installed browser, in the light theme."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        sys.exit(f"none of {', '.join(BROWSERS)} is installed")
    # a container's root has no other sandbox
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-background-networking", *sandbox])
        yield browser.new_page(viewport={"width": WIDTH, "height": 1000}, color_scheme="light")
        browser.close()


@contextmanager
def live_demo(folder: Path) -> Iterator[tuple[str, Views]]:
    """Run the live demo, and yield the address of its page, and what is in its store."""
    command = [*COMMAND, "demo", "--live", "--no-open", "--port", "0", "--speed", SPEED]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with Views(folder / "live-demo.db") as views:
            yield url, views
        process.terminate()


def bands(views: Views) -> dict[str, str]:
    """Return the light of each agent."""
    return {line.agent: line.band for line in views.overview().lines}


def until(true: Callable[[], bool]) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + 120
    while not true():
        if time.monotonic() > deadline:
            sys.exit("the show is not as it should be")
        time.sleep(0.1)


def save(page: Page, name: str, *, height: int) -> None:
    """Save what a page shows, as soon as nothing moves, with few colours."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.wait_for_load_state("load")
    page.wait_for_timeout(SETTLED_MS)
    with Image.open(io.BytesIO(page.screenshot(animations="disabled"))) as shot:
        shot.convert("RGB").quantize(COLOURS).save(FOLDER / f"{name}.png", optimize=True)


async def terminal(store: Path) -> None:
    """Save what the terminal shows, without the fonts that its drawing would take from the network."""
    face = WatchFace(store)
    async with face.run_test(size=SIZE) as pilot:
        drawn = await drawn_whole(face, pilot)
    (FOLDER / "watch.svg").write_text(re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.S), "utf-8")


async def drawn_whole(face: WatchFace, pilot: Pilot[None]) -> str:
    """Return the drawing of a terminal in which nothing is being read any more."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        await pilot.pause(0.5)
        drawn = face.export_screenshot(title="coherence watch live-demo.db")
        if "helped" in drawn and "reading" not in drawn:
            return drawn
    sys.exit("the terminal does not show what the agent was told")


def check() -> None:
    """Tell the sizes, and end with an error where one is too large."""
    sizes = {path.name: path.stat().st_size for path in sorted(FOLDER.iterdir())}
    for name, size in sizes.items():
        print(f"{size / 1000:6.0f} kB  {name}")  # noqa: T201 - for whoever makes them
    if max(sizes.values()) > LARGEST or sum(sizes.values()) > ALL:
        sys.exit(f"a picture has more than {LARGEST} bytes, or all have more than {ALL}")


if __name__ == "__main__":
    main()
