"""``coherence guard``, as a user runs it, on stores that real guards have written."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from guard.helpers import BOUNDS, Boom, Memory, Proposes

from cli.refusals import complaint
from coherence.cli.main import main
from coherence.guard import Guard
from coherence.guard.bounds import Bounds
from coherence.store.store import Store


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where commands look for the store."""
    found = tmp_path / "guard.db"
    monkeypatch.setenv("COHERENCE_STORE", str(found))
    return found


def run(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(main, ["guard", *map(str, arguments)])


def read(*arguments: str | int) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(run(*arguments, "--json").stdout)


class Stuck(Memory):
    """Cannot restore."""

    def rollback_config(self, **asked: Any) -> object:
        return False


def live(path: Path, rate_of: Callable[[int, int], float], calls: int, agent: str = "support", **given: Any) -> Memory:
    """Run calls under a guard; ``rate_of`` takes the level and the number of the call."""
    config = given.pop("config_adapter", Memory())
    drawn = random.Random(1)
    usual = {"strategy": Proposes({"level": 2}), "config_adapter": config, "bounds": BOUNDS, "canary_share": 0.5}
    with Guard(store=path, **(usual | given)) as guard:
        for number in range(calls):

            def call(number: int = number) -> None:
                if drawn.random() >= rate_of(config.config["level"], number):
                    raise Boom("no")

            with suppress(Boom):
                guard.run(call, agent=agent, task="answer")
    assert isinstance(config, Memory)
    return config


def harmful(level: int, number: int) -> float:
    return 0.9 if level == 1 else 0.0


def helpful(level: int, number: int) -> float:
    return 0.85 if level == 1 else 0.98


def decaying(level: int, number: int) -> float:
    return 0.0 if number >= 500 else helpful(level, number)


def test_guard_all_agents_are_listed(path: Path) -> None:
    live(path, harmful, 200, "billing")
    live(path, helpful, 400, "support")
    live(path, helpful, 60, "prod-mail", bounds=Bounds(BOUNDS.keys, auto_apply=False))
    found = run("status")
    assert found.exit_code == 0
    head, *lines = [line.split() for line in found.stdout.splitlines()]
    assert head == ["agent", "calls", "in", "row", "success", "latency", "index", "phase", "patch"]
    assert [line[0] for line in lines] == ["billing", "prod-mail", "support"]
    assert lines[0][1] == "200" and lines[0][-2:] == ["idle", "-"]
    assert lines[1][-3:] == ["waiting", "level", "2"]
    assert lines[2][-5:] == ["confirmed", "level", "1", "->", "2"]
    assert [one["agent"] for one in read("status")] == ["billing", "prod-mail", "support"]


def test_guard_a_patch_on_trial_is_shown_with_its_evidence(path: Path) -> None:
    live(path, lambda level, number: 0.85, 60, canary_slice=8)
    state = read("status", "support")
    trial = state["trial"]
    assert state["phase"] in ("serving", "paused") and state["patch"]["patch"] == {"level": 2}
    assert 0 < trial["served"] < trial["calls"] and trial["slice_left"] == 8 - trial["calls"] % 8
    success = next(one for one in trial["evidence"] if one["metric"] == "success")
    assert success["calls"] == trial["served"] and success["harm"] < success["roll_back_at"]
    assert success["promote_at"] == 20.0  # 1 / alpha of 0.05
    text = " ".join(run("status", "support").stdout.split())
    assert "patch 1 on trial: level 1 -> 2" in text and "roll back at" in text
    assert f"{trial['served']} of the {trial['calls']} calls since it was accepted" in text


def test_guard_thresholds_by_default_and_the_cool_down(path: Path) -> None:
    live(path, lambda level, number: 0.0 if number >= 6 else 1.0, 10, strategy=None)
    state = read("status", "support")
    assert (state["counted"], state["failures_in_row"], state["cooldown_left_s"]) == (4, 4, 0)
    assert state["thresholds"] == {"failures": 3, "window_h": 24, "cooldown_h": 6}  # 3 to 10 calls in 24 hours
    text = " ".join(run("status", "support").stdout.split())
    assert "4 of the last 24 h count, a patch is asked for at 3 (by default" in text
    live(path, harmful, 60, "billing")
    assert 3 * 3600 - 60 < read("status", "billing")["cooldown_left_s"] <= 3 * 3600  # more than 10 calls
    assert "2 h 59 min left" in run("status", "billing").stdout


def test_guard_a_restore_that_failed_is_a_trouble(path: Path) -> None:
    live(path, harmful, 60, config_adapter=Stuck())
    everything, one = run("status"), run("status", "support")
    assert everything.exit_code == one.exit_code == 1
    assert (
        "! support  restore failed once, the next attempt is due" in everything.stdout
        and "restore failed" in one.stdout
    )
    live(path, harmful, 60, policy="classic", agent="other", config_adapter=Stuck())
    assert read("patches", "other", 1)["outcome"] == "restore failed"


def test_guard_a_new_alert_is_a_trouble_and_an_old_one_is_only_shown(path: Path) -> None:
    live(path, decaying, 540)
    found = run("status")
    assert found.exit_code == 1 and "! support  success got worse" in found.stdout
    live(path.with_name("old.db"), decaying, 540, clock=lambda: 1.7e9)  # November 2023
    found = run("status", "--store", path.with_name("old.db"))
    assert found.exit_code == 0 and "! support  success got worse" in found.stdout
    watch = read("status", "support")["watch"]
    assert {"success"} <= {one["metric"] for one in watch} and all(one["limit"] > 0 for one in watch)


def test_guard_decisions_in_plain_words(path: Path) -> None:
    live(path, harmful, 200)
    lines = run("history", "support").stdout.splitlines()
    whole = read("history", "support")
    assert len(lines) == len(whole) == 4
    assert [one["decision"]["kind"] for one in whole] == ["asked", "accepted", "serving", "dropped"]
    for line, one in zip(lines, whole, strict=True):
        assert line.split()[0] == str(one["seq"])
        assert time.strftime("%Y-%m-%d %H:%M:%S%z", time.localtime(one["at"])) in line
    assert lines[1].endswith("a patch goes on trial for 50% of calls: level 1 -> 2")
    assert "the patch is given up while it is not in force: success fell: 0 of " in lines[3]
    assert run("history", "support", "--limit", 2).stdout.splitlines() == lines[-2:]


def test_guard_patches_and_one_of_them(path: Path) -> None:
    live(path, harmful, 200)
    head, line = run("patches", "support").stdout.splitlines()
    assert head.split() == ["patch", "asked", "outcome", "metric", "evidence", "change", "why"]
    assert "rolled back  success" in line and "  level 1 -> 2  success fell: 0 of " in line
    one = read("patches", "support", 1)
    assert one == read("patches", "support")[0]
    assert (one["patch"], one["backup"], one["policy"], one["share"]) == ({"level": 2}, {"level": 1}, "sequential", 0.5)
    text = run("patches", "support", 1).stdout
    assert f"{one['evidence']:.3g} of {one['limit']:.3g}" in line
    assert f"success, evidence {one['evidence']:.3g}, {one['limit']:.3g} was needed" in text
    assert "    level: 1 -> 2\n" in text and '"level": 2' in text
    assert "has no patch 2, but 1" in complaint(run("patches", "support", 2))


def test_guard_the_trail_is_exported(path: Path, tmp_path: Path) -> None:
    live(path, harmful, 50)
    found = run("export", "support")
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert found.exit_code == 0 and [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert sum(row["kind"] == "call" for row in rows) == 50
    file = tmp_path / "trail.jsonl"
    assert run("export", "support", file).exit_code == 0
    assert file.read_text("utf-8") == found.stdout
    assert "exists already" in complaint(run("export", "support", file))
    assert "SQLite store" in complaint(run("export", "support", path, "--store", tmp_path / "none.db"))
    assert "cannot be written" in complaint(run("export", "support", tmp_path / "no folder" / "trail.jsonl"))
    assert file.read_text("utf-8") == found.stdout and not list(tmp_path.glob(".*.part"))


def test_guard_a_store_where_guards_write_by_default_is_found(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    live(path, helpful, 1, "elsewhere")
    live(Path("guard.db"), helpful, 1, "here")
    assert [one["agent"] for one in read("status")] == ["elsewhere"]  # the environment names that store
    monkeypatch.delenv("COHERENCE_STORE")
    assert [one["agent"] for one in read("status")] == ["here"]


def test_guard_no_store_and_no_agent(path: Path, tmp_path: Path) -> None:
    assert "no such file" in complaint(run("status"))
    assert not path.exists()
    Store(path).close()
    assert complaint(run("status")).endswith("no agents under guard; name another store with --store")
    live(path, helpful, 1, "support")
    for command in ("status", "history", "patches", "export", "rollback", "approve", "decline"):
        assert complaint(run(command, "suport")).endswith("no agent under guard is called 'suport'; known: support")
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    assert "not a store" in complaint(run("status", "--store", other)) and other.read_text() == "mine"
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE notes (text)")
    before = foreign.read_bytes()
    complaint(run("status", "--store", foreign))
    assert foreign.read_bytes() == before


def test_guard_hostile_texts_stay_on_their_line(path: Path) -> None:
    evil = "a\x1b[31m\u202eb\nc"
    patch = {evil: evil, "x" * 5000: "y" * 5000}
    live(path, lambda level, number: 0.5, 40, evil, strategy=Proposes(patch), bounds=None)
    for arguments in (["status"], ["status", evil], ["history", evil], ["patches", evil], ["patches", evil, "1"]):
        text = run(*arguments).stdout
        assert "\x1b" not in text and "\u202e" not in text and len(text) < 20_000, arguments
    assert read("patches", evil, 1)["patch"] == patch
    assert "\x1b" not in complaint(run("status", "no\x1b[2Jbody")) and complaint(run("status", "no\udcffbody"))


@pytest.mark.parametrize("columns", [80, 200])
def test_guard_no_line_is_wider_than_a_terminal(path: Path, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Of a restore that failed by a run of failures, and of an agent with a long name."""
    live(path, harmful, 60, "n" * 10_000, config_adapter=Stuck(), clock=lambda: 1.7e9)
    live(path, harmful, 60, "support", config_adapter=Stuck())
    monkeypatch.setattr("coherence.cli.columns.width", lambda: columns)
    for arguments in (["status"], ["status", "support"], ["history", "support"], ["patches", "support"]):
        for name in ("support", "n" * 10_000):
            text = run(*(name if one == "support" else one for one in arguments)).stdout
            assert max(map(len, text.splitlines())) <= columns, text
