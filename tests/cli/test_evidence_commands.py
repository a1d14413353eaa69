"""``coherence sessions``, ``log``, ``replay`` and ``audit``, as a user runs them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coherence import Monitor, Store
from coherence.cli.main import main
from coherence.providers import HashingEmbedder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two agents; the second one fails."""
    path = tmp_path / "runs.db"
    for agent, error in (("good", False), ("bad", True)):
        with Monitor(agent=agent, goal="make the tests pass", store=path, embedder=HashingEmbedder()) as m:
            for at in range(8):
                m.tool_call("Bash", {"command": f"pytest {at}"})
                m.tool_result(f"result\n{at}\x1b[31m", error=error)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_evidence_sessions_are_listed_with_their_newest_decision(store: Path) -> None:
    lines = run("sessions", "--store", store).stdout.splitlines()
    assert lines[0].split() == ["session", "source", "started", "events", "index", "pressure", "decision"]
    assert lines[1].startswith("good/1") and lines[1].endswith("continue")
    # 1 goal, 8 calls, 8 results, 8 ticks
    assert lines[2].startswith("bad/1") and " 25 " in lines[2] and lines[2].endswith("block")
    rows = json.loads(run("sessions", "--store", store, "--json").stdout)
    assert [(row["agent"], row["events"], row["decision"]) for row in rows] == [
        ("good", 25, "continue"),
        ("bad", 25, "block"),
    ]


@pytest.mark.parametrize("command", [("log",), ("sessions", "--store"), ("audit", "verify")])
def test_opened_a_damaged_store_stays_where_it_is(store: Path, command: tuple[str, ...]) -> None:
    data = bytearray(store.read_bytes())
    data[100:12_000] = b"\xff" * 11_900
    store.write_bytes(data)
    done = run(*command, store)
    assert done.exit_code == 2
    assert "the file is damaged" in done.output
    assert store.read_bytes() == data
    assert [path.name for path in store.parent.iterdir() if "damaged" in path.name] == []


def test_evidence_the_log_shows_one_event_a_line_without_control_characters(store: Path) -> None:
    output = run("log", store).stdout
    assert "\x1b" not in output
    lines = output.splitlines()
    assert len(lines) == 2 * (25 + 1)
    assert any("tool_result" in line and "ERROR" in line for line in lines)
    assert any("pressure" in line and "block" in line for line in lines)
    only = run("log", "bad", "--store", store, "--kind", "tool_result", "--limit", "3").stdout.splitlines()
    assert only[0] == "bad/1" and len(only) == 4
    as_json = [json.loads(line) for line in run("log", "bad/1", "--store", store, "--json").stdout.splitlines()]
    assert [line["seq"] for line in as_json] == list(range(1, 26))
    assert as_json[-1]["decision"]["kind"] == "block"


def test_evidence_the_log_tells_answers_to_refusals_and_notes_apart(tmp_path: Path) -> None:
    with Monitor(agent="a", store=tmp_path / "runs.db", embedder=False) as m:
        refused = m.check("Bash", {"command": "rm -rf ~"})
        m.confirm(refused, "right")
        m.unblock("wrong")
        m.note("the model changed")
        m.usage(tokens_in=100, tokens_out=5, tokens_cached=90)
    told = run("log", tmp_path / "runs.db").stdout
    assert "input_tokens 100, cache_read.input_tokens 90, output_tokens 5" in told
    assert all(text in told for text in ("refusal confirmed right", "unblock wrong", "note the model changed"))


def test_evidence_a_replay_is_checked_and_its_status_tells(store: Path) -> None:
    result = run("replay", store, "--check")
    assert result.exit_code == 0
    assert result.stdout.count("8 of 8 ticks are equal bit for bit") == 2
    with sqlite3.connect(store) as connection:  # somebody takes the guard away and changes a result
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        changed = connection.execute(
            "UPDATE events SET data = replace(data, '\"error\":true', '\"error\":false') WHERE kind = 'tool_result'"
        )
        assert changed.rowcount == 16
    connection.close()
    result = run("replay", store, "--check")
    assert result.exit_code == 1
    assert "bad/1: 25 events, 0 of 8 ticks are equal" in result.stdout
    assert "appraisal.pressure was 0.2, is 0.0" in result.stdout
    audited = run("audit", "verify", store)
    assert audited.exit_code == 1
    assert "not what was written" in audited.stdout and audited.stdout.endswith("NOT INTACT\n")
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE events SET data = '\"x\"' WHERE kind = 'tool_call'")
    connection.close()
    result = run("replay", store, "--check")
    assert result.exit_code == 2 and "event 2 of good/1 cannot be read" in result.stderr


def test_evidence_a_moment_and_the_first_alarm_can_be_looked_at(store: Path) -> None:
    shown = run("replay", "bad", "--store", store, "--until-fire").stdout
    # the second error in a row is event 6, its tick event 7
    assert shown.startswith("bad/1, event 7: guide: pressure 0.30: 2 errors in a row")
    for words in ("signal error_rate", "goal: make the tests pass", 'Bash({"command":"pytest 1"})'):
        assert words in shown
    assert run("replay", "good", "--store", store, "--until-fire").stdout == "nothing fires\n"
    assert run("replay", "bad", "--store", store, "--at", "4").stdout.startswith("bad/1, event 4: continue")
    plain = json.loads(run("replay", "bad", "--store", store, "--at", "25", "--json").stdout)
    assert plain["decision"]["kind"] == "block" and plain["equal"] is True


def test_evidence_other_settings_are_compared(store: Path, tmp_path: Path) -> None:
    strict = tmp_path / "strict.toml"
    strict.write_text("[pressure]\nguide = 0.1\nwarn = 0.25\nblock = 0.4\n")
    result = run("replay", store, "--config", strict)
    assert result.exit_code == 0
    assert "bad/1 event 4: continue -> guide" in result.stdout
    # 0.20 .30 .40 .50 .60 .70 .76 .76: one guide, one warn, six blocks; before: one, two (guide), three (warn), two
    assert result.stdout.splitlines()[-1] == "6 of 16 decisions would differ"
    strict.write_text("[pressure]\nguid = 0.1\n")
    wrong = run("replay", store, "--config", strict)
    assert wrong.exit_code == 2 and "guid" in wrong.stderr
    strict.write_text("[weights]\ngoal_drft = 1\n")
    wrong = run("replay", store, "--config", strict)
    assert wrong.exit_code == 2 and "goal_drft" in wrong.stderr


def test_evidence_the_audit_trail_is_exported_and_verified(store: Path, tmp_path: Path) -> None:
    said = run("audit", "verify", store).stdout
    assert said.startswith("50 events from number 1 on, newest hash ") and said.endswith(": intact\n")
    folder = tmp_path / "audit"
    assert run("audit", "export", store, folder).exit_code == 0
    assert run("audit", "verify", folder / "audit.jsonl").stdout == said
    assert run("audit", "verify", folder).stdout == said
    lines = (folder / "audit.jsonl").read_text().splitlines()
    assert len(lines) == 50
    (folder / "audit.jsonl").write_text("\n".join([*lines[:10], *lines[11:]]) + "\n")
    result = run("audit", "verify", folder / "audit.jsonl")
    assert result.exit_code == 1 and "1 event before it is missing" in result.stdout
    faults = json.loads(run("audit", "verify", folder / "audit.jsonl", "--json").stdout)
    assert faults[0]["id"] == 12
    (folder / "audit.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    cut = run("audit", "verify", folder).stdout  # what was cut off at the end shows in count and hash only
    assert cut.startswith("49 events") and cut.endswith(": intact\n") and cut != said
    (folder / "audit.jsonl").write_text("")
    assert run("audit", "verify", folder).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sessions", "--store", "missing.db"), "no such file"),
        (("log", "nobody", "--store", "RUNS"), "is called 'nobody'"),
        (("replay", "TEXT"), "not a store"),
        (("audit", "verify", "missing.db"), "no such file"),
        (("replay", "EMPTY", "--check"), "no sessions"),
    ],
)
def test_evidence_wrong_usage_is_explained_and_nothing_is_changed(
    store: Path, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("my notes")
    empty = tmp_path / "empty.db"
    Store(empty).close()
    names = {"RUNS": store, "TEXT": text, "EMPTY": empty}
    result = run(*(names.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2
    assert says in result.stderr
    assert text.read_text() == "my notes"
    assert not Path("missing.db").exists()


def test_evidence_purge_wipes_an_agent_after_asking_and_the_audit_says_so(store: Path) -> None:
    asked = CliRunner().invoke(main, ["purge", "--agent", "bad", "--store", str(store)], input="n\n")
    assert asked.exit_code == 1 and "bad (1 session)" in asked.output
    assert (
        "purged: 25 events of 1 sessions, 0 lessons" in run("purge", "--agent", "bad", "--store", store, "--yes").stdout
    )
    assert " from number 1 on, 25 of them purged, newest hash" in run("audit", "verify", store).stdout
    assert "bad/1" not in run("sessions", "--store", store).stdout
    assert run("log", store).exit_code == run("replay", store, "--check").exit_code == 0
    unknown = run("purge", "--agent", "nobody", "--store", store, "--yes")
    assert unknown.exit_code == 2 and "there is no agent nobody" in unknown.output
