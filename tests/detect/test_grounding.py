"""Values that an answer may not state, each beside the near miss that it may; and what is said of them."""

from __future__ import annotations

import pytest

from coherence.detect.grounding import Grounds
from coherence.metrics import compute_grounding

PAPERS = """arXiv:2310.06825v2 Mistral 7B, Jiang et al., 10 Oct 2023
arXiv:1706.03762v7 Attention Is All You Need, Vaswani et al., 2 Aug 2023
CVE-2021-44228 Remote code execution in Log4j 2
PROJ-123: Login fails with an empty password"""
RECORDS = """- id_: '7'
  filename: vacation-plans.docx
  owner: Doe, Jane
  size: 634
- id_: '25'
  filename: quarterly-report.docx
  owner: Max Muster
  size: 1204"""
BILL = "Order 59XX6W of 2024-05-01 17:30: price 1200 USD, tax 12.5 %, weight 1500 g, took 180 min, pi = 3.14159"
PAGE = "Population of Oslo: 1,234,567 inhabitants. “The ﬁrst snow fell on the quiet harbour that night,” she wrote."


def judged(answer: str, *sources: str, goals: tuple[str, ...] = ()) -> Grounds:
    return compute_grounding(answer, sources or (PAPERS, RECORDS, BILL, PAGE), goals=goals)


@pytest.mark.parametrize(
    ("answer", "flaw", "near", "seq"),
    [
        ("Mistral 7B is arXiv 2401.99999.", "absent", "", 0),  # invented
        ("Mistral 7B is arXiv 2310.06825v3.", "version", "2310.06825v2", 1),
        ("The hole is CVE-2021-44229.", "altered", "CVE-2021-44228", 1),
        ("Order 59XX6V", "altered", "59XX6W", 3),
        ("It costs 1,300 dollars.", "altered", "1200 USD", 3),
        ("It costs $1,317.00.", "absent", "", 0),
        ("Oslo has 1,234,568 inhabitants.", "altered", "1,234,567", 4),
        ("The order is of May 2, 2024, at 17:30.", "altered", "2024-05-01", 3),
        ("It was placed at 5:40 PM.", "altered", "17:30", 3),
        ("Pi is 3.15.", "absent", "", 0),
        ("It took 4 h.", "absent", "", 0),
        ("See https://example.org/snow.", "absent", "", 0),
        ("See src/parser/lexer.py.", "absent", "", 0),
        ("She wrote “nobody ever saw a summer as long as mine”.", "absent", "", 0),
    ],
)
def test_grave_names_values_that_no_source_has(answer: str, flaw: str, near: str, seq: int) -> None:
    found = judged(answer)
    assert [(each.flaw, each.near, each.seq) for each in found.grave] == [(flaw, near, seq)]
    assert found.value is not None and found.value < 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "Mistral 7B is arXiv 2310.06825.",  # without a version it is the same paper
        "The hole is cve-2021-44228, fixed with PROJ-\n123.",
        "The paper of Vaswani et al. is “Attention Is All You Need” (arXiv:1706.03762v7).",
        "The file vacation-plans.docx (ID: 7) is shared.",
        "It costs $1,200.00, or 1200 dollars, and 1.5 kg took 3 hours.",
        "Oslo has 1.23 million inhabitants.",
        "The order is of May 1, 2024, at 5:30 PM.",
        "Pi is 3.14, the tax is 0.125 of it, or 12.5%.",
        "With tax it is $1,350.",  # 1200 + 12.5 %
        "Both files have 1838 bytes.",  # 634 + 1204
        "Jane Doe wrote “The first snow fell on the quiet harbour”.",
        'She wrote "the first snow fell ... that night".',
        "1. Open it.\n2. Close it.\n13. Five things remain, 3 of them today.",
        "<thinking>maybe order 99ZZ99?</thinking>It is 59XX6W.",  # said to oneself
    ],
)
def test_grave_another_way_of_writing_it_passes(answer: str) -> None:
    assert judged(answer).grave == ()


def test_grounds_values_weigh_by_kind() -> None:
    # one id of weight 3 is invented, one date of weight 2 and one amount of weight 1 are given: (2 + 1) / 6
    assert judged("Order 77AB77 of 2024-05-01 for $1200").value == 0.5


def test_compute_grounding_an_answer_without_any_look_up_says_so() -> None:
    found = compute_grounding("Oslo has 709,037 inhabitants.", ())
    assert (found.value, found.looked_up) == (0.0, False)
    assert compute_grounding("You said 709,037.", (), goals=("Is 709,037 right?",)).value == 1.0


def test_compute_grounding_small_talk_has_nothing_to_check() -> None:
    for text in ("", "You're welcome! Safe travels.", "I did both, in 2 steps.", "and/or, e.g. this; see it at 24/7"):
        assert compute_grounding(text, [RECORDS]).value is None


def test_compute_grounding_any_sum_of_two_far_numbers_is_not_grounded() -> None:
    rows = "\n".join(f"- item: {name}\n  number: {37 * at * at + 101}\n" for at, name in enumerate("abcdefghijkl"))
    near, far = 101 + 138, 101 + 37 * 121 + 101  # the first and the second row; the first and the last
    assert compute_grounding(f"Together {near} pieces", [rows]).value == 1.0
    assert compute_grounding(f"Together {far} pieces", [rows]).value == 0.0
    assert compute_grounding(f"In all {sum(37 * at * at + 101 for at in range(12))} pieces", [rows]).value == 1.0


def test_names_are_reordered_where_they_are_looked_for() -> None:
    said = "It is owned by Jane Doe and Max Muster, not by Eva Braun."
    assert [flaw.text for flaw in compute_grounding(said, [RECORDS], extractors=("names",)).flaws] == ["Eva Braun"]


CODE = "import torch\n\ndef load_weights(path):\n    return torch.load(path)"


@pytest.mark.parametrize("said", ["Call `load_wights(path)`.", "Call self.load_wights(path) first."])
def test_functions_a_name_that_real_code_does_not_have_is_found_with_the_nearest(said: str) -> None:
    [flaw] = compute_grounding(said, [CODE]).flaws
    assert (flaw.text, flaw.flaw, flaw.near, flaw.seq) == ("load_wights", "altered", "load_weights", 1)
    assert compute_grounding(said.replace("wights", "weights"), [CODE]).flaws == ()


def test_functions_count_where_a_source_has_some_and_brackets_behind_a_word_are_none() -> None:
    assert compute_grounding("It calls torch.load(path), see torch.load", [CODE]).flaws == ()
    assert compute_grounding("I can use `send_money` for that.", [BILL]).value is None  # a tool, maybe
    assert compute_grounding("Check the file(s), the model (old) and others(2).", [CODE]).value is None


def test_grave_a_source_may_name_a_day_that_there_is_not() -> None:
    source = "born 24.13.2024, joined 2019-03-01, left 2053-03-01"
    assert [flaw.text for flaw in judged("She is 47 years old.", source).grave] == ["47"]
    assert not judged("She is 34 years old.", source).grave
