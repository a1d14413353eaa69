"""``coherence label`` and ``coherence calibration``, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main
from coherence.monitor.monitor import Monitor
from coherence.store.rows import RunRow
from coherence.store.runs import labelled_runs, write_runs
from coherence.store.store import Store


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def work(path: Path, agent: str, tasks: int, **more: Any) -> None:
    with Monitor(resume=True, store=path, embedder=False, agent=agent, **more) as m:
        for _ in range(tasks):
            m.goal("go")
            call = m.tool_call("look", {})
            m.tool_result("seen", call=call)
            m.outcome(success=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    work(path, "a", 3)
    work(path, "b\x1b[31m", 1)
    work(path, "scored", 1, source="replay")
    return path


def labels(path: Path, agent: str = "a") -> list[tuple[int, bool]]:
    with Store(path) as store:
        return [(found.run, found.good) for found in labelled_runs(store, agent)]


def test_calibration_the_newest_run_is_labelled_or_the_one_named(path: Path) -> None:
    result = run("label", path, "a", "bad")
    assert result.exit_code == 0 and result.stdout == "run 3 of a/1 is bad\n"
    assert run("label", path, "a/1", "bad", "--run", "1").stdout == "run 1 of a/1 is bad\n"
    assert run("label", path, "a/1", "bad", "--run", "1").exit_code == 0
    assert labels(path) == [(1, False), (2, True), (3, False)]
    assert run("label", path, "a/1", "none", "--run", "1").stdout == "run 1 of a/1 has no label now\n"
    assert run("label", path, "a", "good").exit_code == 0
    assert labels(path) == [(1, True), (2, True), (3, True)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nobody", "good"), "Error: no agent and no session is called 'nobody'"),
        (("a", "fine"), "'fine' is not one of"),
        (("a", "good", "--run", "4"), "has 3 runs, not 4"),
        (("scored", "good"), "of the source 'replay'"),
    ],
)
def test_calibration_what_cannot_be_labelled_is_said(path: Path, arguments: tuple[str, ...], says: str) -> None:
    result = run("label", path, *arguments)
    assert result.exit_code == 2 and says in result.stderr


def test_calibration_a_session_of_several_agents_is_not_guessed(path: Path) -> None:
    work(path, "alone", 1, session="only")
    result = run("label", path, "1", "bad")
    assert result.exit_code == 2 and not any(labels(path, agent) != [(1, True)] for agent in ("b\x1b[31m", "alone"))
    said = " ".join(result.stderr.split())
    assert "more than one session is called '1'; name one of: a/1, b [31m/1, scored/1" in said
    assert run("label", path, "only", "bad").stdout == "run 1 of alone/only is bad\n", "no other agent has one"
    assert "AGENT alone means its newest session" in " ".join(run("label", "--help").stdout.split())


def test_calibration_names_of_agents_cannot_drive_the_terminal_in_errors(path: Path) -> None:
    work(path, "c\nError: none", 1, source="replay")
    for arguments in (
        ("label", path, "nobody", "good"),
        ("label", path, "b\x1b[31m", "good", "--run", "4"),
        ("label", path, "c\nError: none", "good"),
        ("label", path, "1", "good"),
        ("calibration", path, "--agent", "nobody"),
        ("replay", "--store", path, "b\x1b[31m", "--at", "9999"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2 and "\x1b" not in result.stderr and "\nError: none" not in result.stderr


def test_calibration_a_file_that_is_no_store_is_said_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("mine")
    for command in (("label", other, "a", "good"), ("calibration", other), ("calibration", tmp_path / "missing.db")):
        assert run(*command).exit_code == 2
    assert other.read_text() == "mine"


def test_calibration_each_agents_thresholds_are_shown(path: Path) -> None:
    result = run("calibration", path)
    assert result.exit_code == 0 and "\x1b" not in result.stdout and max(map(len, result.stdout.splitlines())) <= 100
    assert "a: 3 good runs, 0 bad, 0 without a label" in result.stdout
    assert "threshold 0.25: at most 5 % of good runs, shipped" in " ".join(result.stdout.split())
    assert "1 % of good runs" not in result.stdout, "no budget is set for refusing"
    assert run("calibration", path, "--agent", "a").stdout.count(" without a label") == 1
    assert run("calibration", path, "--agent", "nobody").exit_code == 2


def test_calibration_json_says_the_same(path: Path) -> None:
    with Store(path) as store, store.transaction() as transaction:
        risks = [number * 19 % 53 / 250 for number in range(1, 53)]  # 0.004 to 0.208, well mixed
        rows = [RunRow(number, (("goal_hijack", "3", risk),), True) for number, risk in enumerate(risks, 1)]
        write_runs(transaction, "c", "9", [*rows, RunRow(53, (("goal_hijack", "3", 0.9),), False)])
    found = json.loads(run("calibration", path, "--agent", "c", "--json").stdout)
    assert [each["agent"] for each in found] == ["c"]
    assert found[0]["runs"] == {"good": 52, "bad": 1, "unlabelled": 0, "mixed": 0}
    threshold = found[0]["thresholds"][0]
    assert (threshold["metric"], threshold["budget"], threshold["how"]) == ("goal_hijack", 0.05, "own")
    assert threshold["value"] == 0.204 and threshold["runs"] == 52, "floor(53 x 0.05) = 2: the second largest"
    assert threshold["words"] == "threshold 0.204: at most 5 % of good runs, from 52 own runs"


def test_calibration_reset_forgets_one_agent_or_all(path: Path) -> None:
    assert run("calibration", path, "--agent", "a", "--reset").stdout == (
        "a: 3 runs, their labels and what was learned from them are forgotten\n"
    )
    assert labels(path) == [] and labels(path, "b\x1b[31m") == [(1, True)]
    assert json.loads(run("calibration", path, "--reset", "--json").stdout) == {"a": 0, "b\x1b[31m": 1, "scored": 0}
    assert labels(path, "b\x1b[31m") == []
    work(path, "a", 1)
    assert labels(path) == [(3, True), (4, True)], "a session that goes on tells its newest run again"
