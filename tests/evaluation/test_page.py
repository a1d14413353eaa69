"""The page of an evaluation: whole, self-contained, safe with hostile names."""

from __future__ import annotations

from html.parser import HTMLParser

from coherence.evaluation.baselines import baselines
from coherence.evaluation.bootstrap import Figure
from coherence.evaluation.comparison import Evaluation, evaluate
from coherence.evaluation.page import render_evaluation
from coherence.evaluation.systems import of_steps
from evaluation.builders import run

EVIL = '<script>alert("1")</script>\u202e\x00\ud800'


def found(name: str = "mine", part: str = "bank") -> Evaluation:
    runs = [run(f"b{at}", part=f"{part}/{at % 2}", success=False, split="dev") for at in range(8)]
    runs += [run(f"g{at}", part=f"{part}/{at % 2}", success=True, split="dev") for at in range(8)]
    mine = of_steps(name, {one.id: [None, 0.5, 0.9 if one.id[0] == "b" else 0.1] for one in runs}, fitted_on="dev")
    other = of_steps("other", {one.id: [None] * 3 for one in runs}, fitted_on=("b1",))
    return evaluate(runs, [mine, other, *baselines(runs)], draws=50)


class Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.joins = False
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.links += [value or "" for key, value in attrs if key in ("href", "src", "onclick", "style")]
        assert tag != "script"
        if tag == "wbr":
            self.open.pop()
            self.joins = True

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self.joins else f" {data}"
        self.joins = False


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == [] and checker.links == []
    return checker


def test_the_page_is_well_formed_and_says_what_was_found() -> None:
    text = checked(render_evaluation(found())).text
    for words in (
        "16 labelled runs of 16 tasks, 48 steps",
        "Runs: failed against succeeded",
        "8 failed runs and 8 runs that succeeded",
        "words far from goal",
        "bank/1",
        "inside the noise",
        "better",
        "in-sample, too good by an unknown amount",
        "It does not say how another agent fails",
    ):
        assert words in text


def test_render_evaluation_hostile_names_are_text() -> None:
    text = checked(render_evaluation(found(EVIL, EVIL), title=EVIL)).text
    assert '<script>alert("1")</script>' in text
    assert "\x00" not in text and "\ud800" not in text


def test_few_tasks_have_figures_without_intervals_and_the_page_says_so() -> None:
    def of(count: int) -> Evaluation:
        # Six succeeded, and as many as asked for failed: each a task of its own.
        runs = [run(f"g{at}", success=True) for at in range(6)]
        runs += [run(f"b{at}", success=False) for at in range(count)]
        return evaluate(runs, [of_steps("mine", {one.id: [None, 0.5, float(one.id[0] == "b")] for one in runs})])

    few, enough = of(4), of(5)
    assert few.sections[0].rows[0].figures["auroc"] == Figure(1.0)
    assert enough.sections[0].rows[0].figures["auroc"] == Figure(1.0, 1.0, 1.0)
    assert few.sections[0].rows[0].folds is None
    assert "too few tasks for an interval" in checked(render_evaluation(few)).text
    assert "too few tasks for an interval" not in checked(render_evaluation(enough)).text
