"""``coherence export``: one session as a file, and read again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from coherence import Fleet
from coherence.cli.documents import read_schema
from coherence.cli.main import main
from coherence.providers.readers import read_transcripts
from coherence.report.recorded import read_recorded


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Keep two sessions; in the first one two agents work in turns."""
    for session in ("s1", "s2"):
        with Fleet(store=tmp_path / "runs.db", embedder=False) as fleet:
            main_agent = fleet.agent("main", session=session)
            child = fleet.agent("main/child", parent="main", session=session)
            main_agent.goal("Make the tests pass")
            for at in range(6):
                for agent in (main_agent, child):
                    call = agent.tool_call("Bash", {"command": f"pytest {at}"})
                    agent.tool_result("ImportError", error=True, call=call)
                    agent.decide()
    assert run("label", tmp_path / "runs.db", "main/s1", "bad").exit_code == 0
    return tmp_path / "runs.db"


def test_export_holds_all_agents_of_one_session_in_the_order_of_time(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "s1.jsonl"
    done = run("export", "s1", "--store", store, "-o", out)
    assert done.exit_code == 0 and done.stdout == ""
    # a goal of the one, six calls, results and ticks of both
    assert done.stderr == f"37 events of 2 sessions: {out}\n"
    assert out.stat().st_mode & 0o777 == 0o600
    head, *events = map(json.loads, out.read_text().splitlines())
    Draft202012Validator(read_schema("export")).validate(head)
    for event in events:
        Draft202012Validator(read_schema("log")).validate(event)
    assert [agent["events"] for agent in head["agents"]] == [19, 18]
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    assert {event["session"] for event in events} == {"s1"}
    assert run("export", "s1", "--store", store).stdout == out.read_text()


def test_export_is_read_again_as_the_store_itself(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "s1.jsonl"
    assert run("export", "s1", "--store", store, "-o", out).exit_code == 0
    exported = {each.id: each for each in read_transcripts(out)}
    recorded = {each.id: each for each in read_recorded(store) if each.id.endswith("/s1")}
    assert exported.keys() == recorded.keys() == {"main/s1", "main/child/s1"}
    for name, each in exported.items():
        assert (each.steps, each.goal, each.outcome) == (
            recorded[name].steps,
            recorded[name].goal,
            recorded[name].outcome,
        )
    scored = run("score", out, "--embedder", "hashing")
    assert scored.exit_code == 0 and "main/s1" in scored.stdout and "hit" in scored.stdout


def test_export_an_agent_may_be_named(store: Path) -> None:
    head, *events = map(json.loads, run("export", "main/child/s2", "--store", store).stdout.splitlines())
    assert [agent["agent"] for agent in head["agents"]] == ["main/child"] and len(events) == 18


def test_export_refuses_what_is_not_there_and_what_would_be_lost(store: Path) -> None:
    unknown = run("export", "s3", "--store", store)
    assert unknown.exit_code == 2 and "no agent and no session is called 's3'" in unknown.stderr
    over = run("export", "s1", "--store", store, "-o", store)
    assert over.exit_code == 2 and "choose another name" in over.stderr


def test_export_a_whole_store_is_for_tables_only(store: Path) -> None:
    refused = run("export", store)
    assert refused.exit_code == 2 and "name a session" in refused.stderr


def test_export_parquet_without_its_extra_names_the_line_that_installs_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = run("export", store, "--parquet", tmp_path / "tables")
    assert refused.exit_code == 2 and 'pip install "coherence-sensor[parquet]"' in refused.stderr
    assert not (tmp_path / "tables").exists()
