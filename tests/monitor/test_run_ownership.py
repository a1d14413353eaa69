"""Two monitors that record one session, or one agent, at once: nothing wrong is learned from their runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coherence.monitor.monitor import Monitor
from coherence.store.runs import count_runs, labelled_runs
from coherence.store.store import Store


class Odd:
    """A metric that shows what it is set to."""

    name, inverted, version, value = "odd", True, "1", 0.0

    def compute(self) -> float:
        return self.value


class Teller:
    """A monitor of its own, which knows no more of others than another process would."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self._odd = Odd()
        self._monitor = Monitor(resume=True, store=path, embedder=False, metrics=[self._odd], **settings)
        self.session = self._monitor.session

    def tell(self, *lines: str) -> None:
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "goal":
                self._monitor.goal(rest)
            elif word == "outcome":
                self._monitor.outcome(success=rest == "good")
            else:
                self._odd.value = float(rest)
                self._monitor.tool_result("seen", call=self._monitor.tool_call("look", {}))
                self._monitor.decide()
            self._monitor.flush()

    def end(self) -> None:
        self._monitor.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    Store(path).close()
    return path


def learned(path: Path) -> list[tuple[bool, float]]:
    with Store(path) as store:
        return [(run.good, run.maxima["odd", "1"]) for run in labelled_runs(store, "main")]


def test_run_ownership_tasks_that_interleave_in_one_session_teach_nothing_and_later_ones_do(path: Path) -> None:
    one, other = Teller(path), Teller(path)
    one.tell("goal write the report", "step 0.1")
    other.tell("goal pay the bill", "step 0.9")  # the bad one
    one.tell("step 0.1", "outcome good")
    other.tell("step 0.9", "outcome bad")
    assert learned(path) == [], "0.9 was no part of the good run, nor 0.1 of the bad one"
    one.end()
    other.tell("goal a task for itself", "step 0.3", "outcome good")
    assert learned(path) == [(True, 0.3)]
    other.end()
    assert learned(path) == [(True, 0.3)]
    with Store(path) as store:
        assert count_runs(store, "main").mixed >= 1


def test_run_ownership_tasks_of_one_session_one_after_the_other_teach_whoever_tells_them(path: Path) -> None:
    one, other = Teller(path), Teller(path)
    one.tell("goal the first", "step 0.1", "outcome good")
    other.tell("goal the second", "step 0.9", "outcome bad")
    one.tell("goal the third", "step 0.2", "outcome good")
    one.end()
    other.end()
    assert learned(path) == [(True, 0.1), (False, 0.9), (True, 0.2)]


def test_run_ownership_one_task_may_be_told_by_two_processes(path: Path) -> None:
    one, helper = Teller(path), Teller(path)
    one.tell("goal write the report", "step 0.1")
    helper.tell("step 0.6")
    one.tell("step 0.2")
    helper.end()
    one.tell("outcome good")
    one.end()
    assert learned(path) == [(True, 0.6)]


def test_run_ownership_an_outcome_that_another_process_has_changed_is_not_changed_back_at_the_end(path: Path) -> None:
    one = Teller(path)
    one.tell("goal write the report", "step 0.1", "outcome good")
    other = Teller(path)
    other.tell("outcome bad")
    one.end()
    other.end()
    assert learned(path) == [(False, 0.1)]


def test_run_ownership_a_process_that_others_have_left_behind_under_other_settings_does_not_mix_with_them(
    path: Path,
) -> None:
    one = Teller(path)
    one.tell("goal write the report", "step 0.1")
    other = Teller(path, config={"window": 7})
    assert (one.session, other.session) == ("1", "1~2")
    other.tell("goal pay the bill", "step 0.2", "outcome good")
    one.tell("step 0.9", "outcome bad", "goal again", "step 0.9", "outcome bad")
    assert learned(path) == [], "the first run was told by both"
    other.tell("goal a second one", "step 0.3", "outcome good")
    one.end()
    other.end()
    assert learned(path) == [(True, 0.3)]


def test_run_ownership_a_session_that_goes_on_under_other_settings_keeps_what_was_measured_before(path: Path) -> None:
    one = Teller(path)
    one.tell("goal write the report", "step 0.7")
    other = Teller(path, config={"window": 7})
    one.end()
    other.tell("step 0.2", "outcome bad")
    other.end()
    assert learned(path) == [(False, 0.7)]
