"""``coherence explain``, and ``coherence label`` of a firing, as a user runs them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from integrations.running import fail, running
from views.recorded import fails

from coherence import Monitor
from coherence.cli.main import main
from coherence.monitor.replay import Replay
from coherence.store.store import Store


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def fired(store: Path) -> list[str]:
    with Monitor(agent="a", session="s1", source="hook", goal="Test", store=store, embedder=False) as m:
        return fails(m, 8)


def explained(store: Path, firing: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(run("explain", firing, "--store", store, "--json").stdout)
    return found


def test_explain_lists_the_firings_newest_first(store: Path, fired: list[str]) -> None:
    lines = run("explain", "--store", store).stdout.splitlines()
    assert lines[0].split() == ["id", "time", "session", "told", "label", "text"]
    assert [line.split()[0] for line in lines[1:]] == fired[::-1]
    assert lines[1].split()[3:7] == ["a/s1", "not", "seen", "-"] and lines[-1].split()[3:6] == [
        "a/s1",
        "delivered",
        "-",
    ]
    assert len(run("explain", "--store", store, "--limit", "2").stdout.splitlines()) == 3


def test_explain_says_what_was_seen_told_and_came_of_it(store: Path, fired: list[str]) -> None:
    first = explained(store, fired[0])
    # goal; call and result and tick of the first failure; those of the second
    assert (first["pattern"], first["session"], first["seq"], first["step"]) == ("bash_retry", "s1", 7, 2)
    assert first["finding"]["rule"] == "bash_retry" and first["finding"]["threshold"] == 0.5  # type: ignore[index]
    assert [event["seq"] for event in first["evidence"]] == [3, 6]  # type: ignore[attr-defined]
    assert first["delivered"] is not None and str(first["text"]).startswith("Bash returned the same error 2 times")
    # two events an action, six are shown
    assert [event["event"]["kind"] for event in first["afterwards"]] == ["tool_call", "tool_result"] * 3  # type: ignore[attr-defined]
    text = run("explain", fired[0], "--store", store).stdout
    for part in (
        "firing     bash_retry-",
        "of         a/s1, step 2, event 7, ",
        "told       Bash returned the same error 2 times",
        "delivered  yes: the client's transcript shows it, event ",
        "rule       bash_retry (guide): ",
        "label      none: coherence label bash_retry-",
        "seen\n     3  ",
        "afterwards\n",
    ):
        assert part in text
    assert "not confirmed" in run("explain", "last", "--store", store).stdout


def test_explain_outcomes_are_told_once_they_are_known(store: Path) -> None:
    with Monitor(agent="a", goal="Test", store=store, embedder=False) as m:
        (first, *_) = fails(m, 13)  # it fires at the second one
    horizons = [outcome["horizon"] for outcome in explained(store, first)["outcomes"]]  # type: ignore[attr-defined]
    assert horizons == [1, 5, 10]
    assert "outcome    1 action later: the pressure had risen by 0.10, the newest action failed, with the same" in (
        run("explain", first, "--store", store).stdout
    )


def test_explain_a_name_must_mean_one_firing(store: Path, fired: list[str]) -> None:
    assert explained(store, fired[0].rpartition("-")[2][:12])["firing"] == fired[0]
    several = run("explain", "bash_", "--store", store)
    assert several.exit_code == 2 and "more than one id begins with 'bash_': " in several.stderr
    unknown = run("explain", "dance-1\x1b[2J", "--store", store)
    assert (
        unknown.exit_code == 2
        and "no firing and no refusal is called 'dance-1" in unknown.stderr
        and "\x1b" not in unknown.stderr
    )


def test_explain_what_was_purged_is_said(store: Path, fired: list[str]) -> None:
    assert run("purge", "--agent", "a", "--store", store, "--yes").exit_code == 0
    text = run("explain", fired[0], "--store", store).stdout
    assert "the text is not kept" in text and "it was purged, or has left by age" in text


def test_label_a_firing_is_judged_and_taken_back(store: Path, fired: list[str]) -> None:
    assert run("label", fired[0], "bad", "--store", store).stdout == f"{fired[0]} of a/s1 was a false alarm\n"
    assert explained(store, fired[0])["label"] == "bad"
    assert run("label", store, "last", "good").stdout == f"{fired[-1]} of a/s1 was right\n"
    assert "labelled: 0 right, 1 false alarms" in run("explain", fired[0], "--store", store).stdout
    assert run("label", fired[0], "none", "--store", store).exit_code == 0
    assert explained(store, fired[0])["label"] is None
    with Store(store) as kept:
        assert kept.verify() == []
        (row,) = kept.sessions()
        report = Replay(kept, row).report()
    assert report.differences == [] and report.ticks == 8


def test_label_of_the_host_and_of_the_command_are_one(store: Path) -> None:
    with Monitor(agent="a", goal="Test", store=store, embedder=False) as m:
        (first, *_) = fails(m, 4)
        m.label(first, good=False)
    assert explained(store, first)["label"] == "bad"


def test_label_reaches_a_monitor_that_has_the_session_open(store: Path) -> None:
    with Monitor(agent="a", goal="Test", store=store, embedder=False) as m:
        (first, *_) = fails(m, 4)
        m.flush()
        assert run("label", first, "bad", "--store", store).exit_code == 0
        m.tool_result("fine", tool="Bash")
        assert m.decide().kind
        m.flush()
    with Store(store) as kept:
        (row,) = kept.sessions()
        kinds = [event.kind for event in kept.events(row.id)]
        assert kinds.count("feedback") == 1 and kinds.count("tool_result") == 5 and kept.verify() == []


@pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")
def test_explain_and_label_while_a_daemon_follows_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # back again at the end
    folder = tmp_path / "state"
    with running(folder):
        fail("s1", 4)
        until = time.monotonic() + 30
        while not (listed := json.loads(run("explain", "--store", folder / "store.db", "--json").stdout)):
            assert time.monotonic() < until
        first = listed[-1]["firing"]
        assert run("label", first, "bad", "--store", folder / "store.db").exit_code == 0
        fail("s1", 2)
    assert explained(folder / "store.db", first)["label"] == "bad"
    with Store(folder / "store.db") as kept:
        (row,) = kept.sessions()
        kinds = [event.kind for event in kept.events(row.id)]
        assert kept.verify() == [] and (kinds.count("tool_result"), kinds.count("feedback")) == (6, 1)
        assert Replay(kept, row).report().differences == []


def test_label_an_agent_is_meant_before_a_firing(store: Path, fired: list[str]) -> None:
    with Monitor(agent="last", goal="Test", store=store, embedder=False) as m:
        m.message("assistant", "done")
    assert run("label", "last", "good", "--store", store).stdout == "run 1 of last/1 is good\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("last",), "name a firing"), (("a", "b", "c", "good"), "name a firing"), (("last", "fine"), "is not one of")],
)
def test_label_wrong_usage_is_explained(store: Path, fired: list[str], arguments: tuple[str, ...], says: str) -> None:
    done = run("label", *arguments, "--store", store)
    assert done.exit_code == 2 and says in done.stderr
