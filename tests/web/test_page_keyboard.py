"""The page without a mouse."""

from __future__ import annotations

import pytest

from web.browsing import PATHS, Look

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.web

FOCUSED = (
    "() => document.activeElement.closest('[data-key]')?.querySelector('b')?.textContent ?? document.activeElement.id"
)


def test_keyboard_walk_from_the_list_to_a_reason_and_back(look: Look) -> None:
    page = look.at("/")
    page.keyboard.press("j")
    assert page.evaluate(FOCUSED) == "researcher"
    page.keyboard.press("j")
    page.keyboard.press("j")
    third = page.evaluate(FOCUSED)
    page.keyboard.press("k")
    assert page.evaluate(FOCUSED) == "scout"
    page.keyboard.press("j")
    assert page.evaluate(FOCUSED) == third
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(third)
    assert page.evaluate("() => document.activeElement.id") == "main", "who listens is told of the new page"
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Sessions")


def test_keyboard_search_and_escape(look: Look) -> None:
    page = look.at("/")
    page.keyboard.press("/")
    assert page.evaluate(FOCUSED) == "by-text"
    page.keyboard.type("jk?t")  # letters in a field are text
    assert page.input_value("#by-text") == "jk?t"
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement.id") == "main"


def test_keyboard_help_and_theme(look: Look) -> None:
    page = look.at("/")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys and signs")
    expect(dialog).to_be_visible()
    assert [text.split()[-1] for text in dialog.locator(".light").all_inner_texts()] == [
        "green",
        "yellow",
        "orange",
        "red",
        "unknown",
    ]
    assert dialog.locator("kbd").all_inner_texts()[:3] == ["j, k", "Enter", "/"]
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    page.keyboard.press("t")
    expect(page.locator("#theme")).to_have_text("Theme: dark")
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == dark, "it is kept"
    page.evaluate("localStorage.clear()")


def test_keyboard_pages(look: Look) -> None:
    page = look.at("/")
    for key, name in (
        ("f", "Fleet"),
        ("l", "Lessons"),
        ("u", "Guard"),
        ("e", "Experiments"),
        ("c", "Compare two sessions"),
        ("s", "Sessions"),
    ):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(name)


def test_keyboard_skip_link_leads_past_the_bar(look: Look) -> None:
    page = look.at("/")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "main"


@pytest.mark.parametrize("name", PATHS)
def test_keyboard_tab_reaches_everything_and_the_focus_is_seen(look: Look, name: str) -> None:
    page = look.at(PATHS[name])
    wanted = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
                 .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled).length"""
    )
    page.evaluate("document.activeElement.blur()")
    reached: set[str] = set()
    for _ in range(wanted + 10):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            """() => {
              const one = document.activeElement;
              if (one === document.body) return null;
              const box = one.closest(".row") ?? (one.matches(".node") ? one.querySelector(".box") : one);
              const style = getComputedStyle(box);
              const rings = style.outlineStyle !== "none" || style.strokeWidth === "3px";
              const id = [...document.querySelectorAll("*")].indexOf(one);
              return [id, rings, one.outerHTML.slice(0, 100)];
            }"""
        )
        if seen is None:
            break
        assert seen[1], f"no ring around {seen[2]}"
        reached.add(seen[0])
    # rows of the event list come and go as it scrolls
    assert len(reached) >= wanted - (25 if name == "session" else 0)
