"""The files of the page: small, without a build step, and without any way for a text to become markup."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

import pytest

STATIC = {file.name: file.read_bytes() for file in files("coherence.web").joinpath("static").iterdir()}
OWN = sorted(name for name in STATIC if name.endswith((".js", ".css", ".html")) and not name.startswith("uplot"))
SCRIPTS = [name for name in OWN if name.endswith(".js")]
UPLOT = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"


def text(name: str) -> str:
    return STATIC[name].decode()


@pytest.mark.parametrize("name", SCRIPTS)
def test_files_of_scripts_have_no_way_from_text_to_markup(name: str) -> None:
    ways = (
        r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|createContextualFragment|\beval\b|new Function"
    )
    assert re.findall(ways, text(name)) == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text(name)) == [], "nothing is loaded from elsewhere"


@pytest.mark.parametrize("name", SCRIPTS)
def test_files_that_a_script_imports_are_there(name: str) -> None:
    for imported in re.findall(r"""(?:from|import\()\s*"\./([^"]+)\"""", text(name)):
        assert imported in STATIC


@pytest.mark.parametrize("name", OWN)
def test_files_are_cut_at_ideas(name: str) -> None:
    assert text(name).count("\n") <= 400


def test_files_shell_has_nothing_inline_and_loads_what_is_there() -> None:
    shell = text("index.html")
    assert re.findall(r"\son\w+=|\sstyle=|<style|javascript:|<script(?![^>]*src=)", shell) == []
    named = re.findall(r'(?:href|src)="/static/([^"]+)"', shell)
    assert set(named) <= set(STATIC) and "uplot.js" not in named, "the chart is loaded where it is shown"
    preloaded = set(re.findall(r'modulepreload"[^>]* href="/static/([^"]+)"', shell))
    needed, wanted = {"main.js"}, ["main.js"]
    while wanted:
        for imported in re.findall(r'from "\./([^"]+)"', text(wanted.pop())):
            if imported not in needed:
                needed.add(imported)
                wanted.append(imported)
    assert preloaded == needed, "one wave of requests, not one after the other"


def test_files_of_the_first_paint_are_few_and_small() -> None:
    first = ["index.html", "page.css", "theme.js"]
    assert sum(len(STATIC[name]) for name in first) < 40_000


def test_files_from_others_are_as_published_and_have_their_licence() -> None:
    # uPlot 1.6.32: dist/uPlot.iife.min.js of the package on npm
    assert sha256(STATIC["uplot.js"]).hexdigest() == UPLOT
    assert b"The MIT License" in STATIC["uplot-LICENSE.txt"]
