"""A store without texts: nothing that the agent was told, said or did can be read in any file beside it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from coherence import Monitor, Store
from coherence.cli.main import main
from coherence.core.errors import TranscriptError
from coherence.lessons import LessonStore
from coherence.monitor.codec import decode_result
from coherence.monitor.no_text import NoText, read_key, words
from coherence.monitor.replay import Replay, ReplayError
from coherence.providers import HashingEmbedder
from coherence.report.recorded import read_recorded
from coherence.store.errors import StoreError
from monitor.helpers import rows

WORDS = ("aldermaston", "tumour", "wexcombe", "grepfoo", "mytool", "quillmodel", "nofile", "callident", "notetext")
"""Words of the life below, each of another place in it."""


def monitor(path: Path, **options: Any) -> Monitor:
    config = {"privacy": "no-text", "implicit_corrections": True, "guidance": {"cooldown": 0}}
    return Monitor(
        agent="a",
        goal="Heal the tumour of aldermaston",
        store=path,
        config=config,
        embedder=HashingEmbedder(16),
        **options,
    )


def live(m: Monitor) -> None:
    m.message("user", "Write to wexcombe about the tumour")
    for _ in range(5):
        call = m.tool_call("mytool", {"query": "grepfoo aldermaston"}, call=f"callident{_}")
        m.tool_result("nofile: aldermaston: missing", error=True, call=call)
        m.decide()
    m.usage(tokens_in=10, tokens_out=5, model="quillmodel")
    m.correction("Never mention aldermaston to wexcombe")
    m.memory("notetext of wexcombe", id="notetext-1")
    m.feedback(0.5, text="notetext")
    m.check("mytool", {"query": "rm -rf /home/aldermaston"})
    m.fault("notetext", "aldermaston failed")
    m.outcome(success=False, text="wexcombe was not told")
    m.decide()


def files(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(path.parent.rglob("*")) if each.is_file()).lower()


def test_monitor_without_texts_leaves_none_in_any_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path) as m:
        live(m)
        m.flush()
        while_open = files(path)
        decision = m.decide()
    assert [word for word in WORDS if word.encode() in while_open + files(path)] == []
    kinds = {kind for (kind,) in rows(path, "SELECT DISTINCT kind FROM events")}
    assert {"goal", "message", "tool_call", "tool_result", "tick", "correction", "memory", "outcome"} <= kinds
    assert rows(path, "SELECT kind FROM decisions ORDER BY seq DESC LIMIT 1") == [(decision.kind,)]
    tables = ("vectors", "snapshots", "lessons")
    assert [rows(path, f"SELECT count(*) FROM {table}") for table in tables] == [[(0,)]] * 3
    with Store(path) as store:
        assert store.verify() == []


def test_monitor_with_texts_leaves_them(tmp_path: Path) -> None:
    # the test above would notice each of these words
    path = tmp_path / "s.db"
    with Monitor(agent="a", goal="Heal the tumour of aldermaston", store=path, embedder=HashingEmbedder(16)) as m:
        live(m)
    assert [word for word in WORDS if word.encode() not in files(path)] == []


def test_no_text_keeps_what_numbers_and_decisions_need(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path) as m:
        live(m)
        findings = [(each.rule, each.score, each.active) for each in m.decide().findings]
        assert m.latest is not None
        metrics = m.latest.metrics
    (decision,) = rows(path, "SELECT data FROM decisions ORDER BY seq DESC LIMIT 1")[0]
    kept = [(each["rule"], each["score"], each.get("active", False)) for each in json.loads(decision)["findings"]]
    assert kept == findings
    (reading,) = rows(path, "SELECT data FROM readings ORDER BY seq DESC LIMIT 1")[0]
    assert json.loads(reading)["reading"]["metrics"] == metrics
    results = rows(
        path, "SELECT json_extract(data, '$.\"gen_ai.tool.call.result\"') FROM events WHERE kind = 'tool_result'"
    )
    assert len(results) == 5 and len(set(results)) == 1  # the same text five times
    assert re.fullmatch(r"#[0-9a-f]{16}:28", results[0][0])  # "nofile: aldermaston: missing" has 28 characters


def test_fingerprint_depends_on_the_key_of_the_store_and_is_equal_in_its_sessions(tmp_path: Path) -> None:
    one, other = read_key(tmp_path / "one.db"), read_key(tmp_path / "other.db")
    assert one == read_key(tmp_path / "one.db")
    assert NoText(one).fingerprint("yes") != NoText(other).fingerprint("yes")
    assert (tmp_path / "one.db.key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "one.db.key").write_bytes(b"short")
    with pytest.raises(StoreError, match="must have 32 bytes, not 5"):
        read_key(tmp_path / "one.db")


def test_words_are_names_of_fields_and_of_values() -> None:
    assert {"gen_ai.tool.name", "coherence_index", "findings", "warn", "tool_result", "assistant"} <= words()


def test_replay_of_a_session_without_texts_says_what_cannot_be_done(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path) as m:
        live(m)
    with Store(path) as store, pytest.raises(ReplayError, match=r"privacy='no-text'.*none can be computed again"):
        Replay(store, store.sessions()[0])
    with pytest.raises(TranscriptError, match="without a session"):
        read_recorded(path)
    with Monitor(agent="b", goal="Fix the build", store=path, embedder=HashingEmbedder(16)) as m:
        m.message("user", "hello")
        m.decide()
    said = CliRunner().invoke(main, ["replay", str(path), "--check"])
    assert said.exit_code == 0 and "left out: 1 sessions without texts" in said.stderr
    assert "b/1" in said.stdout


def test_monitor_does_not_go_on_with_a_session_without_texts(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path) as m:
        live(m)
        assert m.session == "1"
    with monitor(path, resume=True) as m:
        assert (m.session, m.counters.calls) == ("1~2", 0)
        live(m)
    with Monitor(agent="a", store=path, embedder=HashingEmbedder(16), resume=True) as m:
        assert (m.session, m.counters.calls) == ("1~3", 0)
    with Store(path) as store:
        assert store.verify() == []


def test_monitor_without_texts_goes_on_without_texts_where_its_file_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "s.db"
    with monitor(path) as m:
        live(m)
        m.flush()
        shutil.rmtree(path.parent)
        live(m)
    assert [word for word in WORDS if word.encode() in files(path)] == []
    assert rows(path, "SELECT count(*) FROM events WHERE kind = 'tool_call'") == [(10,)]


def test_monitor_without_texts_takes_no_lessons(tmp_path: Path) -> None:
    with monitor(tmp_path / "s.db") as m:
        assert m.lessons is None
    with (
        LessonStore(tmp_path / "lessons.db", embedder=False) as lessons,
        pytest.raises(ValueError, match="lessons are texts"),
    ):
        monitor(tmp_path / "s.db", lessons=lessons)


def test_no_text_readings_with_evidence_can_be_read_again(tmp_path: Path) -> None:
    config = {"privacy": "no-text"}
    with Monitor(store=tmp_path / "s.db", goal="Find the treasure.", embedder=False, config=config) as m:
        for _ in range(4):
            m.tool_result("no such island", error=True, call=m.tool_call("Sail", {"to": "Tortuga"}))
        m.decide()
        measured = m.result
    assert measured is not None and measured.reading is not None and measured.reading.evidence
    with Store(tmp_path / "s.db") as store:
        (row,) = store.sessions()
        newest = [decode_result(event) for event in store.events(row.id) if event.reading is not None][-1]
    assert newest is not None and newest.reading is not None
    assert newest.reading.metrics == measured.reading.metrics
    assert newest.appraisal.signals.keys() == measured.appraisal.signals.keys()
    assert newest.reading.evidence.keys() == measured.reading.evidence.keys()
    quoted = [text for found in measured.reading.evidence.values() for text in found.texts]
    assert not [text for found in newest.reading.evidence.values() for text in found.texts if text in quoted]
