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
from coherence.core.readings import Counters
from coherence.providers import HashingEmbedder, Step, Transcript
from coherence.providers.transcript import TranscriptCall
from coherence.report.html import render_html, write_html
from coherence.report.score import ScoredRun, score_transcript

VOID = {"meta", "br", "hr", "img", "link", "input", "wbr"}
HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!-- <style>*{display:none}</style>",
    "\x00\x1b[31m",
    "\u202eright to left",
    "\ud800 lone",
    "&lt;b&gt; javascript:alert(1)",
    "one\u2028two\u2029three",
    "]]><svg onload=alert(1)>",
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
    # in each of two runs: three inverted classic metrics, three detectors, eight signs of the course, uncertainty,
    # drift, repetition, step_drift; the other vitals (error rate, budgets, context window) are never known here
    assert text.count("high is bad") == 2 * (3 + 3 + 9 + 4)
    assert "token_usage" not in text
    assert text.count("unknown throughout: no memories") == 2


def test_render_html_a_run_says_by_which_scale_its_index_was_made_and_which_rule_asked_for_the_band() -> None:
    failed = [Step(role="tool", tool_name="Bash", content="boom", is_error=True)] * 8
    run = score_transcript(Transcript(id="stuck", goal="run it", steps=tuple(failed)), embedder=HashingEmbedder(32))
    text = "".join(parsed(render_html([run])).text)
    assert "scale events-5, which compares no meanings" in text
    assert run.lowest is not None and run.asked(run.lowest) is not None
    assert run.why(run.lowest)[:40] in text.replace("\u2068", "").replace("\u2069", "")


def test_render_html_nothing_is_fetched_and_scripts_are_pinned() -> None:
    page = render_html([RUN])
    assert page == render_html([RUN])
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
    call = TranscriptCall(evil, {evil: evil, "list": [evil, {evil: 1}]}, evil)
    steps = (
        Step(role="user", content=evil),
        Step(role="assistant", content=evil * 3, tool_calls=(call, TranscriptCall(evil, evil)), agent=evil),
        Step(role="tool", content=evil, tool_name=evil, is_error=True),
    )
    transcript = Transcript(id=evil, goal=evil, steps=steps, outcome=evil, went_wrong=True, warnings=(evil,))
    page = render_html([score_transcript(transcript, embedder=HashingEmbedder(32))], title=evil)
    page.encode("utf-8")
    checker = parsed(page)
    assert [tag for tag, _ in checker.tags].count("script") == 1
    assert not [tag for tag, _ in checker.tags if tag in ("img", "iframe", "object")]
    assert [tag for tag, _ in checker.tags].count("style") == 1
    for _, attributes in checker.tags:
        assert not [name for name in attributes if name.startswith("on")]
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


def view(page: str, step: int) -> str:
    """Return the view of a step of the first run, as its text."""
    found = re.search(rf'<article class="at" id="run-1-at-{step}">.*?</article>', page, re.DOTALL)
    assert found is not None
    return " ".join("".join(parsed(found[0]).text).split())


def test_render_html_a_step_is_shown_with_what_was_said_done_and_spent_and_its_light() -> None:
    used = Counters(tokens_in=1200, tokens_out=80, cost_usd=0.0123)
    call = TranscriptCall("Bash", {"command": "pytest -k login\nls", "timeout": 30}, "1")
    steps = [Step(role="user", content="Find out why the login test fails", ts=100.0)]
    for at in range(4):
        said = Step(role="assistant", content="I run it.", tool_calls=(call,), usage=used, ts=101.5 + 10 * at)
        steps += [said, Step(role="tool", content="ImportError: x", tool_name="Bash", is_error=True, latency_s=0.25)]
    run = score_transcript(Transcript(id="r", steps=tuple(steps)), embedder=HashingEmbedder(32))
    page = render_html([run])
    agent, result = view(page, 1), view(page, 8)
    assert "Step 1 assistant" in agent and "Message I run it." in agent
    assert "Call of Bash command: pytest -k login ls timeout: 30" in agent
    assert "latency 1.5 stokens in 1,200tokens out 80cost $0.0123" in agent  # 101.5 - 100
    assert "Step 8 tool · Bash failed" in result and "Result, an error ImportError: x" in result
    assert "latency 250 mstokens in, tokens out, cost: not recorded" in result
    reading, decision = run.readings[8], run.decisions[8]
    assert f"{reading.band} index {reading.coherence_index:.2f} · decision {decision.kind}" in result
    assert "the newest calls failed" in result and "by their share of the risk" in result
    shares = [int(share) for share in re.findall(r"(\d+)%", result.partition("by their share")[2])]
    assert shares == sorted(shares, reverse=True) and 90 <= sum(shares) <= 102


def test_render_html_long_texts_are_cut_with_a_note_and_the_page_stays_small() -> None:
    words = "".join(f"word{n} " for n in range(1_000))
    steps = [Step(role="user", content="Book a flight to Oslo")]
    for at in range(7):
        call = TranscriptCall("search", {"query": f"{at} {words}"}, str(at))
        steps += [
            Step(role="assistant", content=f"{at} {words}", tool_calls=(call,)),
            Step(role="tool", content=words, tool_name="search"),
        ]
    page = render_html([score_transcript(Transcript(id="r", steps=tuple(steps)), embedder=HashingEmbedder(32))])
    assert len(page.encode()) < 130_000  # the texts take 40,000 of it
    # 15 steps share 40,000 characters: 2,666 of a step's one text, 1,333 of each of its two, are shown
    assert f"{len(words) - 2666:,} more characters are not shown" in view(page, 2)
    assert view(page, 1).count(f"{len(words) + 2 - 1333:,} more characters are not shown") == 1


def test_render_html_runs_are_filtered_by_what_differs_between_them() -> None:
    runs = [RUN, score_transcript(Transcript(id="quiet", steps=RUN.transcript.steps[:1]), embedder=False)]
    page = render_html(runs)
    worst = RUN.worst_band
    assert f'<option value="{worst}">{worst} (1)</option>' in page
    assert '<option value="unknown">unknown (1)</option>' in page
    assert 'data-filter="outcome"' not in page  # of both it is unknown
    assert f'data-run="run-1" data-outcome="unknown" data-decision="guide" data-band="{worst}"' in page


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
    assert len(page) < 1_700_000
    assert page.count('class="t ') < 2_000


def test_write_html_a_page_that_cannot_be_made_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    write_html(path, [RUN])
    old = path.read_bytes()
    monkeypatch.setattr(page_module, "count_verdicts", lambda runs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_html(path, [RUN])
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_the_page_holds_no_secret_of_a_transcript() -> None:
    secret = "ghp_" + "a1B2" * 9
    page = render_html([scored(f"export GITHUB_TOKEN={secret}", f"using {secret}", goal=f"deploy with {secret}")])
    assert secret not in page
    assert "[redacted:github-token]" in page
