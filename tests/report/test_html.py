"""The HTML page: whole, self-contained, safe with hostile text, and the same for the same runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

import coherence.report.html as page_module
from coherence.providers import HashingEmbedder, Step, Transcript
from coherence.report import ScoredRun, score_transcript, write_html
from coherence.report.html import render_html

VOID = {"meta", "br", "hr", "img", "link", "input", "wbr"}
HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!-- <style>*{display:none}</style>",
    "\x00\x1b[31m",
    "\u202eright to left",
    "\ud800 lone",
    "&lt;b&gt; javascript:alert(1)",
]


class Checker(HTMLParser):
    """Collects what is wrong with a page, and its parts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.problems: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"unexpected </{tag}>")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.problems == []
    assert checker.open == []
    return checker


def scored(*contents: str, name: str = "run", goal: str = "Book a flight to Oslo") -> ScoredRun:
    steps = [Step(role="user", content=goal), *(Step(role="assistant", content=content) for content in contents)]
    return score_transcript(Transcript(id=name, goal=goal, steps=tuple(steps)), embedder=HashingEmbedder(32))


RUN = scored("Searching a flight to Oslo", "Found one for 200 EUR", "zzz qqq xxx", name="oslo")


def test_render_html_the_page_is_well_formed_and_has_every_run_and_metric() -> None:
    page = render_html([RUN, scored("a", "b", name="other")])
    checker = parsed(page)
    text = "".join(checker.text)
    for words in ("2 runs, 7 steps", "oslo", "other", "A green band is not a proof", "Evidence behind the worst steps"):
        assert words in text
    for name in ("goal_drift", "memory_retention", "contradiction_pressure", "semantic_diffusion", "pressure"):
        assert text.count(name) >= 2
    # in each of two runs: three inverted classic metrics, three detectors, four signs of the course, and the vitals
    # uncertainty, drift and repetition; the others (error rate, budgets, context window) are never known here
    assert text.count("high is bad") == 2 * (3 + 3 + 4 + 3)
    assert "token_usage" not in text
    assert text.count("unknown throughout: no memories") == 2


def test_render_html_a_run_says_by_which_scale_its_index_was_made_and_which_rule_asked_for_the_band() -> None:
    failed = [Step(role="tool", tool_name="Bash", content="boom", is_error=True)] * 8
    run = score_transcript(Transcript(id="stuck", goal="run it", steps=tuple(failed)), embedder=HashingEmbedder(32))
    text = "".join(parsed(render_html([run])).text)
    assert "scale events-1, which compares no meanings" in text
    assert run.lowest is not None and run.asked(run.lowest) is not None
    assert run.why(run.lowest)[:40] in text.replace("\u2068", "").replace("\u2069", "")


def test_render_html_nothing_is_fetched_and_scripts_are_pinned() -> None:
    page = render_html([RUN])
    checker = parsed(page)
    for _, attributes in checker.tags:
        assert not {"src", "srcset", "action", "style"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        link = attributes.get("href")
        assert link is None or link.startswith("#")
    assert re.search(r"url\(|@import|https?:", page) is None
    policy = next(a["content"] for tag, a in checker.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_render_html_every_link_leads_to_a_part_of_the_page() -> None:
    checker = parsed(
        render_html([RUN, scored("a", name="short"), scored(*["w" * n for n in range(1, 30)], name="long")])
    )
    places = {attributes["id"] for _, attributes in checker.tags if "id" in attributes}
    for _, attributes in checker.tags:
        if "href" in attributes:
            assert str(attributes["href"])[1:] in places


@pytest.mark.parametrize("evil", HOSTILE)
def test_render_html_hostile_text_is_shown_as_text(evil: str) -> None:
    page = render_html([scored(evil, evil * 3, name=evil, goal=evil or "g")], title=evil)
    page.encode("utf-8")
    checker = parsed(page)
    assert [tag for tag, _ in checker.tags].count("script") == 1
    assert not [tag for tag, _ in checker.tags if tag in ("img", "iframe", "object")]
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", page) is None


@examples(25)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=4), st.text(max_size=30))
def test_render_html_any_text_gives_a_well_formed_page(contents: list[str], name: str) -> None:
    checker = parsed(render_html([scored(*contents, name=name)], title=name))
    assert [tag for tag, _ in checker.tags].count("script") == 1


def test_render_html_the_numbers_and_the_words_of_every_step_are_there_for_the_hover_text() -> None:
    text = "".join(parsed(render_html([RUN])).text)
    for step, reading in enumerate(RUN.readings):
        assert RUN.transcript.steps[step].content in text
        if reading.coverage:
            assert f"{reading.coherence_index:.2f}" in text
            assert f"step {step}: {reading.coherence_index:.2f} {reading.band}" in text
    assert "is farthest from every goal" in text


def test_render_html_the_evidence_shows_the_step_it_points_at() -> None:
    page = render_html([RUN])
    lowest = RUN.lowest
    assert lowest is not None
    assert f'id="run-1-step-{lowest.tick_seq}"' in page
    assert f"After step {lowest.tick_seq}: index {lowest.coherence_index:.2f}" in "".join(parsed(page).text)


def test_render_html_the_same_runs_give_the_same_page() -> None:
    assert render_html([RUN]) == render_html([RUN])


@pytest.mark.parametrize(
    "runs", [[], [scored()], [scored("", "  ")], [scored("x")]], ids=["none", "no context", "blank", "one step"]
)
def test_render_html_little_or_nothing_to_show_is_said(runs: list[ScoredRun]) -> None:
    text = "".join(parsed(render_html(runs)).text)
    assert "There is no run to show." in text or "run" in text


@pytest.mark.slow
def test_render_html_a_long_run_stays_small_and_legible() -> None:
    run = scored(*(f"word{n % 50} and word{n % 7}" for n in range(1000)), name="long" * 60)
    page = render_html([run])
    parsed(page)
    assert len(page) < 1_500_000
    assert page.count('class="t ') < 2_000


def test_write_html_a_page_that_cannot_be_made_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    write_html(path, [RUN])
    old = path.read_bytes()
    monkeypatch.setattr(page_module, "_overview", lambda runs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_html(path, [RUN])
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_the_page_holds_no_secret_of_a_transcript() -> None:
    secret = "ghp_" + "a1B2" * 9
    page = render_html([scored(f"export GITHUB_TOKEN={secret}", f"using {secret}", goal=f"deploy with {secret}")])
    assert secret not in page
    assert "[redacted:github-token]" in page
