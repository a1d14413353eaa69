"""Tables in Parquet, read back with pyarrow and pandas."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

import pandas
import pyarrow.parquet
from click.testing import CliRunner, Result

from coherence import Fleet, Monitor
from coherence.cli.main import main
from coherence.export import parquet
from coherence.export.parquet import COMMON, EVENT_COLUMNS, METRIC, READING_COLUMNS, write_parquet
from coherence.store.store import Store

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).parents[2]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for session in ("s1", "s2"):
        with Fleet(store=tmp_path / "runs.db", embedder=False) as fleet:
            agents = [fleet.agent("main", session=session), fleet.agent("child", parent="main", session=session)]
            agents[0].goal("Make the tests pass")
            for at in range(6):
                for agent in agents:
                    agent.message("assistant", f"try {at} — ünïcode")
                    agent.usage(tokens_in=100, tokens_out=20, cost_usd=0.1, tokens_cached=7, model="m-1")
                    call = agent.tool_call("Bash", {"command": f"pytest {at % 2}"})
                    agent.tool_result("ImportError", error=True, call=call, duration_s=0.25)
                    agent.decide()
            agents[1].check("Bash", {"command": "rm -rf /"})
            agents[1].outcome(success=False)
    return tmp_path / "runs.db"


def test_export_parquet_is_what_the_store_holds(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "tables"
    done = run("export", store, "--parquet", folder)
    assert done.exit_code == 0, done.stderr
    readings = pandas.read_parquet(folder / "readings.parquet")
    events = pyarrow.parquet.read_table(folder / "events.parquet").to_pylist()
    assert done.stderr == f"{len(events)} events and {len(readings)} readings of 4 sessions: {folder}\n"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    told: list[dict[str, Any]] = []
    with Store(store) as kept:
        rows = [(session, row) for session in kept.sessions() for row in kept.events(session.id)]
        assert len(rows) == len(events) == kept.count_events()
        for (session, row), event in zip(rows, events, strict=True):
            data = json.loads(row.data)
            assert (event["agent"], event["session"], event["source"]) == (session.agent, session.session, "api")
            assert (event["seq"], event["ts"], event["kind"]) == (row.seq, row.ts, row.kind)
            assert event["decision"] == (None if row.decision is None else row.decision.kind)
            assert event["tool"] == ("Bash" if row.kind == "tool_result" else data.get("gen_ai.tool.name"))
            assert event["role"] == data.get("role")
            assert event["input_tokens"] == data.get("gen_ai.usage.input_tokens")
            if "gen_ai.tool.call.arguments" in data:
                assert json.loads(event["arguments"]) == data["gen_ai.tool.call.arguments"]
            if row.reading is not None:
                told.append({"row": row, "data": json.loads(row.reading.data), "session": session})
    assert len(told) == len(readings) > 0
    names = [name.removeprefix(METRIC) for name in readings.columns if name.startswith(METRIC)]
    assert set(names) == {name for each in told for name in each["data"]["reading"]["metrics"]}
    for each, (_, found) in zip(told, readings.iterrows(), strict=True):
        kept_row, reading = each["row"].reading, each["data"]["reading"]
        assert (found["agent"], found["session"]) == (each["session"].agent, each["session"].session)
        assert (found["seq"], found["ts"]) == (each["row"].seq, each["row"].ts)
        assert found["index"] == kept_row.coherence_index and found["band"] == reading["band"]
        assert found["pressure"] == kept_row.pressure and found["mode"] == kept_row.mode
        assert found["risk"] == reading["risk"] and found["coverage"] == reading["coverage"]
        assert found["cause"] == reading["cause"] and found["scale"] == reading["scale"]
        decision = json.loads(each["row"].decision.data)
        assert found["decision"] == decision["kind"]
        assert list(found["findings"]) == [one["rule"] for one in decision["findings"] if one.get("active")]
        for name in names:
            value = reading["metrics"].get(name)
            assert math.isnan(found[METRIC + name]) if value is None else found[METRIC + name] == value


def test_export_parquet_amounts_have_their_units(store: Path, tmp_path: Path) -> None:
    assert run("export", "main/s1", "--store", store, "--parquet", tmp_path).exit_code == 0
    events = pandas.read_parquet(tmp_path / "events.parquet")
    assert set(events["agent"]) == {"main"} and set(events["session"]) == {"s1"}
    usage = events[events["kind"] == "usage"]
    assert usage[["input_tokens", "cached_tokens", "output_tokens"]].sum().tolist() == [600, 42, 120]  # six calls
    assert usage["cost_usd"].tolist() == [0.1] * 6 and set(usage["model"]) == {"m-1"}
    results = events[events["kind"] == "tool_result"]
    assert results["duration_s"].tolist() == [0.25] * 6 and results["error"].all() and results["ends_step"].all()
    assert events["ends_step"].sum() == 12  # six answers, six results
    assert set(events["text"].dropna()) >= {"Make the tests pass", "try 5 — ünïcode", "ImportError"}


def test_write_parquet_row_groups_are_bounded_by_rows_and_by_text(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def groups(folder: str) -> list[int]:
        with Store(store) as kept:
            write_parquet(kept, kept.sessions(), tmp_path / folder)
        meta = pyarrow.parquet.ParquetFile(tmp_path / folder / "events.parquet").metadata
        return [meta.row_group(at).num_rows for at in range(meta.num_row_groups)]

    [count] = groups("one")
    monkeypatch.setattr(parquet, "MAX_ROWS", 50)
    assert groups("rows") == [50] * (count // 50) + [count % 50] * bool(count % 50)
    monkeypatch.setattr(parquet, "MAX_TEXT", 1)
    assert len(groups("text")) > count // 50 + 1
    one, other = (pyarrow.parquet.read_table(tmp_path / name / "events.parquet") for name in ("one", "text"))
    assert one.equals(other)


def test_export_parquet_of_purged_and_empty_stores(store: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "empty.db"):
        pass
    done = run("export", tmp_path / "empty.db", "--parquet", tmp_path / "none")
    assert done.exit_code == 0 and done.stderr.startswith("0 events and 0 readings of 0 sessions")
    assert pandas.read_parquet(tmp_path / "none" / "readings.parquet").columns.tolist() == [
        column.name for column in READING_COLUMNS
    ]
    Monitor(agent="later", store=store, embedder=False, config={"privacy": "no-text"}).close()
    with Store(store) as kept:
        kept.purge("child")
    assert run("export", store, "--parquet", tmp_path / "rest").exit_code == 0
    assert "child" not in set(pandas.read_parquet(tmp_path / "rest" / "events.parquet")["agent"])


def test_export_parquet_refuses_what_would_be_lost(store: Path, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "events.parquet").symlink_to(tmp_path / "elsewhere")
    linked = run("export", store, "--parquet", tmp_path / "tables")
    assert linked.exit_code == 2 and "symbolic link" in linked.stderr and not (tmp_path / "elsewhere").exists()
    both = run("export", store, "--parquet", tmp_path / "x", "-o", tmp_path / "y")
    assert both.exit_code == 2 and "--parquet names the folder" in both.stderr


def test_parquet_page_and_metadata_tell_of_every_column(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "how-to" / "parquet.md").read_text("utf-8")
    for column in (*EVENT_COLUMNS, *READING_COLUMNS):
        assert f"`{column.name}`" in page
    assert run("export", store, "--parquet", tmp_path / "tables").exit_code == 0
    for field in pyarrow.parquet.read_schema(tmp_path / "tables" / "readings.parquet"):
        assert field.metadata[b"description"]
    monkeypatch.chdir(tmp_path)
    [code] = [block for block in re.findall(r"^```text\n(.*?)^```", page, re.M | re.S) if "import" in block]
    exec(code, {})
    printed = capsys.readouterr().out
    assert "child" in printed and "Bash    1.0" in printed and "repeated_failure_pattern" in printed
    assert len({column.name for column in COMMON}) == len(COMMON)
