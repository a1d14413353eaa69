"""``coherence experiments``, as a user runs it, and what follows from its verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main
from coherence.policy.experiment import judge_pattern, policies
from coherence.store.rows import EventRow, FiringOutcomeRow, FiringRow
from coherence.store.store import Store


def fill(path: Path, pattern: str, pairs: int, told: float, untold: float, *, source: str = "api") -> None:
    """Record pairs that all came to the same, a treatment that was not delivered, and half a pair."""
    rows: list[EventRow] = []

    def add(**more: object) -> None:
        rows.append(EventRow(len(rows) + 1, 1.0, "tick", "{}", **more))  # type: ignore[arg-type]

    for pair in range(pairs + 1):
        for arm, change in (("control", untold), ("treatment", told)):
            name = f"{source}-{pattern}-{arm}-{pair}"
            add(firing=FiringRow(name, pattern, pair, arm, "text"))
            known = FiringOutcomeRow(firing=name, horizon=5, pressure_change=change, error_resolved=change > 0.2)
            done = FiringOutcomeRow(firing=name, horizon=0, task_success=arm == "treatment")
            add(delivered=name if pair < pairs else None, outcomes=(known, done))
    add(firing=FiringRow(f"{source}-{pattern}-last", pattern, pairs + 1, "control", "text"))
    with Store(path, synchronous="NORMAL") as store, store.transaction() as transaction:
        session = transaction.add_session(
            session=f"{pattern}-{source}", agent="a", parent=None, source=source, started=1.0, config="{}"
        )
        transaction.add_events(session, rows)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    fill(path, "good", 40, 0.6, 0.2)
    fill(path, "bad", 40, 0.1, 0.5)
    fill(path, "idle", 200, 0.3, 0.3)
    fill(path, "few", 12, 0.9, 0.1)
    fill(path, "quiet\x1b[31m", 0, 0.9, 0.1)
    fill(path, "tried", 50, 0.9, 0.1, source="test")
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["experiments", *map(str, arguments)])


def test_experiments_every_pattern_has_its_line(store: Path) -> None:
    result = run("--store", store)
    assert result.exit_code == 0 and "\x1b" not in result.stdout
    head, bad, few, good, idle, quiet, foot = result.stdout.splitlines()
    assert foot.startswith("Effect: ") and "told minus withheld" in foot
    assert head.split() == ["pattern", "firings", "delivered", "pairs", "effect", "95", "%", "interval", "verdict"]
    # 40 pairs, 1 that was not delivered and half a one: 83 firings
    assert good.split()[:7] == ["good", "83", "40", "of", "41", "40", "+0.400"]
    assert good.endswith("helps (after 30 pairs); left out: 1 undelivered, 1 half a pair")
    assert "-0.400" in bad and "harms (after 30 pairs)" in bad
    assert "+0.000" in idle and "no difference (after 105 pairs)" in idle  # test_nothing_ever_differs has the 105
    assert "+0.800" in few and "no verdict yet (12 of 30 pairs)" in few
    assert "-1.000 to +1.000" in quiet and "no verdict yet (0 of 30 pairs)" in quiet and "  -  " in quiet
    assert "tried" not in result.stdout


def test_experiments_only_the_measure_named_beforehand_gives_a_verdict(store: Path) -> None:
    for arguments in (("--measure", "error"), ("--measure", "task"), ("--horizon", "1")):
        lines = run("--store", store, *arguments).stdout.splitlines()[1:]
        assert len(lines) == 5 and all("secondary, not for a verdict" in line for line in lines)
    assert "+1.000" in run("--store", store, "--measure", "task").stdout  # at the end of the task, unless told other
    rows = json.loads(run("--store", store, "--measure", "error", "--json").stdout)
    assert all(row["verdict"] is row["policy"] is row["e_helps"] is None and not row["primary"] for row in rows)
    assert [row["effect"] for row in rows if row["pattern"] == "good"] == [1.0]


def test_experiments_a_verdict_promotes_or_retires(store: Path) -> None:
    with Store(store) as kept:
        assert policies(kept) == {"bad": "retire", "good": "promote", "idle": "retire"}
        assert judge_pattern(kept, "few").judgement.pairs == 12


def test_experiments_wrong_usage_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = run("--store", tmp_path / "missing.db")
    assert missing.exit_code == 2 and "no such file" in missing.stderr
    assert run("--measure", "mood").exit_code == 2
    assert run("--horizon", "2").exit_code == 2
    empty = tmp_path / "empty.db"
    Store(empty).close()
    assert run("--store", empty).stdout == "no pattern has fired\n"
    assert json.loads(run("--store", empty, "--json").stdout) == []
    monkeypatch.setenv("COHERENCE_STORE", str(empty))
    assert run().exit_code == 0
