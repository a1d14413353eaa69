"""Costs: what counts as risen over an earlier version, ratios to units, the parts of a step, ablations."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parent / "bench"


Bench = Callable[[str], Any]
"""Gives a file of the benches by its name."""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.syspath_prepend(str(BENCH))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCH) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("now", "risen"),
    [
        ([11.5, 11.2, 11.1] * 3, 1),  # more than a tenth in every pair, of all three rounds
        ([11.5, 11.2, 11.1, 11.5, 10.9, 11.5], 0),  # in the first round alone
        ([11.5, 11.2, 10.9], 0),  # not in the last of the first round, after which nothing is measured again
        ([9.0, 9.0, 9.0], 0),
    ],
)
def test_main_a_cost_has_risen_where_it_is_a_tenth_higher_in_every_pair(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, now: list[float], risen: int
) -> None:
    regression = bench("regression")
    found = iter([each for new in now for each in ({"a": 10.0}, {"a": new})])
    monkeypatch.setattr(regression, "measure", lambda tree: next(found))
    monkeypatch.setattr(regression, "checked_out", lambda commit: nullcontext(tmp_path))
    written = tmp_path / "costs.json"
    assert regression.main("HEAD", 3, written) == risen
    assert next(found, None) is None  # no round too many, none too few
    assert json.loads(written.read_text())["costs"]["a"]["before"] == 10.0


def test_main_a_base_that_this_clone_does_not_have_is_said(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("regression").main("0" * 40, 1, None) == 0
    assert "is not in this clone" in capsys.readouterr().out


def test_ratios_each_cost_over_each_unit_is_the_median_of_the_rounds(bench: Bench) -> None:
    costs = {"a": [10.0, 30.0, 12.0], "b": [1.0, 2.0, 3.0]}
    found = bench("ratios").ratios(costs, {"unit": [10.0, 10.0, 12.0], "peer": [1.0, 1.0, 1.0]})
    assert found == {
        "a": {"unit": 1.0, "peer": 12.0},  # of 1, 3, 1 and of 10, 30, 12
        "b": {"unit": 0.2, "peer": 2.0},  # of 0.1, 0.2, 0.25 and of 1, 2, 3
    }


def test_ratios_every_central_cost_is_one_of_those_compared_with_an_earlier_version(bench: Bench) -> None:
    names = {name for name, _, _ in bench("regression").costs()}
    assert set(bench("ratios").CENTRAL) <= names


def test_breakdown_a_part_is_shown_without_those_it_calls(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    breakdown = bench("breakdown")
    clock = iter([0, 1_000, 4_000, 10_000])  # ns: the outer begins, the inner, the inner ends, the outer
    monkeypatch.setattr(breakdown.time, "thread_time_ns", lambda: next(clock))

    class Step:
        def outer(self) -> None:
            self.inner()

        def inner(self) -> None:
            pass

    spent = {"outer": 0.0, "inner": 0.0}
    with breakdown.timed({"outer": [(Step, "outer")], "inner": [(Step, "inner")]}, spent):
        Step().outer()
    assert spent == {"outer": 7.0, "inner": 3.0}  # 10 - 3, and 4 - 1


def test_summary_an_ablation_is_marked_and_is_no_target(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    showing = bench("showing")
    showing.row("a", 2.0, 1.0, " us")
    showing.ablation("b", 9.0, " us")
    showing.summary(tmp_path / "bench.json", {"a": {"unit": 2.0}})
    said = capsys.readouterr().out
    assert "ablation" in said
    assert "targets met: 0 of 1" in said
    assert "missed: b" not in said
    told = json.loads((tmp_path / "bench.json").read_text())
    assert [figure["target"] for figure in told["figures"]] == [1.0, None]
    assert told["ratios"] == {"a": {"unit": 2.0}}
