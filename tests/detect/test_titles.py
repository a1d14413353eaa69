"""A title belongs to the id of its own line, row, object or sentence."""

from __future__ import annotations

import pytest

from coherence.metrics import compute_grounding

PAPERS = ("arXiv:2310.06825v2 Mistral 7B, 10 Oct 2023", "arXiv:1706.03762v7 Attention Is All You Need, 2 Aug 2023")
ONE, TWO = "Mistral 7B", "Attention Is All You Need"
FIRST, SECOND = "2310.06825v2", "1706.03762v7"
STYLES = [
    "{a} is {x}. {b} is {y}.",
    "{a} is arXiv:{x}.\n{b} is arXiv:{y}.",
    "{a}: arXiv:{x}\n{b}: arXiv:{y}",
    "1. {a} arXiv:{x}\n2. {b} arXiv:{y}",
    "- {a} (arXiv:{x})\n- {b} (arXiv:{y})",
    "**{a}** (arXiv:{x}) and **{b}** (arXiv:{y})",
    "| Title | Id |\n|---|---|\n| {a} | {x} |\n| {b} | {y} |",
    "| Id | Title |\n|---|---|\n| {x} | {a} |\n| {y} | {b} |",
    "[{x}] {a}\n[{y}] {b}",
    "{x} {a}. {y} {b}.",
    "{x}: {a}; {y}: {b}",
    '[{{"id": "{x}", "title": "{a}"}}, {{"id": "{y}", "title": "{b}"}}]',
    '[{{"title": "{a}", "id": "{x}"}},\n {{"title": "{b}", "id": "{y}"}}]',
    '{{\n  "id": "{x}",\n  "title": "{a}"\n}}\n{{\n  "id": "{y}",\n  "title": "{b}"\n}}',
]


@pytest.mark.parametrize("style", STYLES)
def test_titles_a_title_over_another_id_is_found_in_each_style_and_the_right_one_passes(style: str) -> None:
    right = compute_grounding(style.format(a=ONE, x=FIRST, b=TWO, y=SECOND), PAPERS)
    assert (right.value, right.flaws) == (1.0, ())
    swapped = compute_grounding(style.format(a=ONE, x=SECOND, b=TWO, y=FIRST), PAPERS)
    assert [(flaw.text, flaw.flaw) for flaw in swapped.flaws if flaw.kind == "id"] == [
        (SECOND, "title"),
        (FIRST, "title"),
    ]


@pytest.mark.parametrize("style", [STYLES[2], STYLES[6], STYLES[8], STYLES[9], STYLES[11]])
def test_titles_only_the_line_with_the_wrong_id_is_flagged(style: str) -> None:
    found = compute_grounding(style.format(a=TWO, x=FIRST, b=TWO, y=SECOND), PAPERS)
    assert [(flaw.text, flaw.flaw) for flaw in found.flaws] == [(FIRST, "title")]


@pytest.mark.parametrize(
    "answer",
    [
        "Quantum Basket Weaving Explained (arXiv:2310.06825v2)",
        "“Quantum Basket Weaving” (arXiv:2310.06825v2)",
        '{"id": "2310.06825v2", "title": "Quantum Basket Weaving"}',
        "| 2310.06825v2 | Quantum Basket Weaving |",
    ],
)
def test_titles_a_title_that_no_source_has_counts_fully(answer: str) -> None:
    found = compute_grounding(answer, PAPERS)
    assert ("2310.06825v2", "invented title") in [(flaw.text, flaw.flaw) for flaw in found.grave]
    assert found.value == 0.0  # the quotation, where it is one, is none of theirs either


@pytest.mark.parametrize(
    "answer",
    [
        "The Mistral paper by Jiang et al. (2310.06825v2)",
        "The small model of that company (2310.06825v2)",  # a description, no title
        "**Final Answer**: 2310.06825v2, that is Mistral 7B",
    ],
)
def test_titles_a_description_is_no_invented_title(answer: str) -> None:
    assert compute_grounding(answer, PAPERS).grave == ()


def test_titles_a_sentence_that_leads_to_an_address_is_no_title() -> None:
    mails = ("- id: 29\n  subject: Your reset link\n  by: TechServices", "- id: 30\n  body: https://example.org/r/8")
    assert compute_grounding("Your TechServices reset link is: https://example.org/r/8", mails).grave == ()


HOLES = """CVE-2014-0160: Heartbleed, a read beyond a buffer in OpenSSL, high
CVE-2014-6271: Shellshock, commands in variables of Bash, critical
CVE-2015-0235: Ghost, a heap overflow in glibc, Closed"""
NAMED = ['{x} "{a}"', "{x} “{a}”", "{x} ({a})", "{x}: **{a}**", "{a} ({x})", "“{a}” ({x})", "- {a} [{x}]", '"{a}", {x}']


@pytest.mark.parametrize("style", NAMED)
def test_titles_a_name_of_one_word_over_another_id_is_found_and_the_right_one_passes(style: str) -> None:
    assert compute_grounding(style.format(x="CVE-2014-0160", a="Heartbleed"), [HOLES]).flaws == ()
    [flaw] = compute_grounding(style.format(x="CVE-2014-0160", a="Shellshock"), [HOLES]).flaws
    assert (flaw.text, flaw.flaw, flaw.near) == ("CVE-2014-0160", "title", "CVE-2014-6271")


@pytest.mark.parametrize(
    "answer",
    [
        "CVE-2014-0160 (critical)",
        "CVE-2014-0160 (draft)",
        "CVE-2014-0160 (PDF)",
        'CVE-2014-0160 "Closed"',  # a state may have changed since
        "CVE-2014-0160 (Critical)",
        "CVE-2014-0160 (Reported)",  # nobody's name
        "CVE-2014-0160 is not Shellshock.",
        "Unlike Shellshock, CVE-2014-0160 leaks memory.",
        "Shellshock was worse than “Heartbleed” (CVE-2014-0160).",
        "CVE-2014-0160 and Shellshock (CVE-2014-6271)",
    ],
)
def test_titles_another_word_at_an_id_is_no_name(answer: str) -> None:
    assert compute_grounding(answer, [HOLES]).grave == ()
