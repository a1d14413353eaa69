"""Texts of strangers in every field of every page: they are shown, and never run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coherence import Fleet
from coherence.lessons.store import LessonStore
from coherence.monitor.monitor import Monitor
from web.browsing import PATHS, looking, session_path
from web.serving import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.web

ATTACKS = (
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 2">',
    "<svg onload=window.ran=3>",
    "javascript:window.ran=4//",
    "</style><style>*{display:none!important}</style><iframe srcdoc='<script>parent.ran=5</script>'>",
    "{{constructor.constructor('window.ran=6')()}} ${window.ran=7} \u202e\u0000\u2028 __proto__",
)
ATTACK = " ".join(ATTACKS)
KEPT = ("band", "worst", "decision", "kind", "strip", "label", "severity", "verdict", "policy", "arm")
"""Fields with a few known values; the test gives these strange values, too, but in a round of their own."""


LEADS_AWAY = """() => [...document.querySelectorAll("[href], [src]")].filter((one) => {
  const url = new URL(one.getAttribute("href") ?? one.getAttribute("src"), location.href);
  return url.origin !== location.origin;
}).map((one) => one.outerHTML)"""
HANDLERS = """() => [...document.querySelectorAll("*")].flatMap((one) => [...one.attributes])
  .filter((one) => one.name.startsWith("on")).length"""
STRANGERS = "main script, main img, main iframe, main style, main object, main embed, main svg[onload], dialog img"


def harmless(page: Page) -> None:
    """See that nothing ran, that no element came out of a text, and that no link leads anywhere else."""
    assert page.evaluate("() => window.ran") is None
    assert page.locator(STRANGERS).count() == 0
    assert page.evaluate(LEADS_AWAY) == []
    assert page.evaluate(HANDLERS) == 0


def test_hostile_names_and_texts_of_a_real_store_are_shown_and_never_run(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    agent, session = ATTACKS[1], "../" + ATTACKS[0]
    with Monitor(agent=agent, session=session, store=path, embedder=False, goal=ATTACK) as m:
        m.message("user", ATTACK)
        for _ in range(4):
            call = m.tool_call(ATTACKS[0], {ATTACKS[1]: ATTACK})
            m.tool_result(ATTACK, error=True, call=call, error_type=ATTACKS[2])
            guidance = m.decide().guidance
            if guidance:
                m.delivered(guidance)
        m.usage(tokens_in=1, tokens_out=1, model=ATTACKS[1])
        m.feedback(0.1, text=ATTACK)
        m.check("Bash", {"command": f"rm -rf / # {ATTACK}"})
        m.outcome(False, text=ATTACK)
    with LessonStore(path, embedder=False) as lessons:
        lessons.record(pattern=ATTACK, error_text=ATTACK, fix_text=ATTACK, tool=ATTACKS[0])
    with Fleet(store=path, embedder=False) as fleet:
        for name in ATTACKS[:3]:
            fleet.agent(name).message("assistant", ATTACK)
        fleet.add_edge(ATTACKS[0], ATTACKS[1], trust_weight=0.8)
    with serving(path, writes=True) as served, looking(browser, served.server.url) as look:
        page = look.at("/")
        assert agent in page.locator("main").inner_text(), "it is shown as it is"
        harmless(page)
        page.locator(".row .cover", has_text="onerror").last.click()
        expect(page.locator("h1")).to_contain_text(agent)
        look.settle()
        for summary in page.locator("summary").all():
            summary.click()
        harmless(page)
        assert ATTACKS[0] in page.locator(".events").inner_text()
        page.locator(".event-row button").last.click()
        harmless(page)
        for name in ("fleet", "lessons", "guard", "experiments"):
            harmless(look.at(f"/{name}"))
        page = look.at("/lessons")
        page.get_by_role("button", name="Edit").last.click()
        harmless(page)


def test_hostile_address_is_no_way_in(browser: Browser, served: Served) -> None:
    with looking(browser, served.server.url, quiet=False) as look:
        for path in (
            session_path(ATTACKS[1], ATTACKS[0]),
            "/session/%E0%A4%A/x",
            "/session/a/b?step=%3Cscript%3E",
            f"/?text={ATTACKS[1]}&agent=%3Csvg onload=ran=1%3E&sort=__proto__&band=constructor",
            "/__proto__",
            "/constructor",
            "/compare?a=%3Cscript%3E&b=x&c=y&d=z",
            "/lessons?text=%22%3E%3Cimg%20src=x%20onerror=ran=1%3E",
        ):
            look.page.goto(look.base + path)
            look.page.wait_for_timeout(300)
            harmless(look.page)


@pytest.mark.parametrize("everywhere", [False, True], ids=["texts", "all strings"])
@pytest.mark.parametrize("name", PATHS)
def test_hostile_answers_of_the_server_are_only_text(
    browser: Browser, served: Served, name: str, everywhere: bool
) -> None:
    """Every string of every answer is an attack: whatever a later version of the server sends, nothing runs."""

    def attacked(value: Any, field: str = "") -> Any:
        if isinstance(value, str):
            return value if field in KEPT and not everywhere else ATTACK
        if isinstance(value, list):
            return [attacked(one, field) for one in value]
        if isinstance(value, dict):
            return {key: attacked(one, key) for key, one in value.items()}
        return value

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=json.dumps(attacked(response.json())))

    with looking(browser, served.server.url) as look:
        look.page.route(
            "**/api/*", lambda route: route.fallback() if "/api/live" in route.request.url else answer(route)
        )
        page = look.at(PATHS[name])
        for summary in page.locator("summary:visible").all():
            summary.click()
        harmless(page)
        assert ATTACKS[0] in page.locator("main").inner_text()
