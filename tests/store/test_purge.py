"""Purging: nothing of an agent is left in any file, and the chain can still be checked."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from coherence import Monitor, Store
from coherence.guard import Guard
from coherence.lessons import LessonStore
from coherence.lessons.records import Origin
from coherence.monitor.replay import Replay
from coherence.providers import HashingEmbedder
from coherence.store.jsonl import export_jsonl, read_trail, verify_jsonl
from coherence.store.purge import PurgeReport
from coherence.store.rows import EventRow

SECRET = "the tumour of Mr Aldermaston"
OTHER = "the harbour of Wexcombe"


def live(store: Store, agent: str, text: str, session: str | None = None, *, corrects: bool = True) -> str:
    with Monitor(agent=agent, goal=f"Write to {text}", store=store, session=session, embedder=HashingEmbedder(16)) as m:
        m.message("user", f"Please look at {text}. " * 300)  # over several pages
        for _ in range(5):
            call = m.tool_call("Bash", {"command": f"grep '{text}' notes.txt"})
            m.tool_result(f"grep: {text}: no such file", error=True, call=call)
            m.decide()
        if corrects:  # the agent's later sessions remember it
            m.correction(f"Never write about {text} again")
        m.tool_result(f"wrote {text}")
        m.outcome(success=True)
        m.decide()
        return m.session


def guard_call(store: Store, text: str) -> None:
    with Guard(store=store) as guard:
        guard.run(lambda: 1, agent="patient", task=f"call for {text}")


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lived") / "store.db"
    with Store(path) as store:
        live(store, "patient", SECRET)
        live(store, "patient", SECRET)
        live(store, "port", OTHER)
        guard_call(store, SECRET)
        with LessonStore(store, embedder=HashingEmbedder(16)) as lessons:
            for agent, text in (("patient", SECRET), ("port", OTHER)):
                origin = Origin(agent, "1", (1,))
                lessons.record(pattern="p", error_text=f"{text} failed", fix_text=f"{text} again", origin=origin)
            assert lessons._searching is not None
            lessons._searching.follow()
            lessons._searching._save(lessons._searching.index)  # type: ignore[arg-type]
    return path


@pytest.fixture
def path(lived_in: Path, tmp_path: Path) -> Path:
    shutil.copytree(lived_in.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "store.db"


def found(path: Path, text: str) -> list[str]:
    """Return the files beside a store that hold a text, in any encoding that this package writes."""
    return [
        each.name for each in sorted(path.parent.rglob("*")) if each.is_file() and text.encode() in each.read_bytes()
    ]


def test_purge_leaves_no_trace_of_an_agent_in_any_file_and_an_intact_chain(path: Path) -> None:
    assert found(path, "Aldermaston") == ["store.db"]
    with Store(path) as store:
        events = store.fetch("SELECT count(*) FROM events WHERE agent = 'patient'")[0][0]
        report = store.purge("patient")
        assert report == PurgeReport(sessions=3, events=events, lessons=1)  # two runs and the guarded calls
        assert found(path, "Aldermaston") == []  # with the file open, its log included
        assert found(path, "Wexcombe") == ["store.db"]
        assert store.verify() == []
        assert (store.count_purged(), store.count_events()) == (events, store.extent()[0])
        assert [row.agent for row in store.sessions()] == ["port"]
    assert found(path, "Aldermaston") == []


def test_purge_leaves_no_vector_snapshot_or_baseline_of_the_agent(path: Path) -> None:
    with Store(path) as store:
        store.purge("patient")
        left = {
            table: store.fetch(f"SELECT count(*) FROM {table} {where}")[0][0]
            for table, where in {
                "vectors": "",
                "snapshots": "WHERE session_id IN (SELECT id FROM sessions WHERE agent = 'patient')",
                "baselines": "WHERE agent = 'patient'",
                "runs": "WHERE agent = 'patient'",
                "lesson_origins": "WHERE agent = 'patient'",
                "readings": "WHERE session_id IN (SELECT id FROM sessions WHERE agent = 'patient')",
            }.items()
        }
        assert set(left.values()) == {0}, left
        assert store.baselines("port") is not None


def test_purge_of_a_session_leaves_the_others_and_takes_those_that_went_on_from_it(path: Path) -> None:
    with Store(path) as store:
        first = live(store, "patient", "the first matter", session="a", corrects=False)
        with Monitor(
            agent="patient", session="a", store=store, embedder=HashingEmbedder(16), config={"window": 5}
        ) as m:
            assert m.session == "a~2"  # other settings: it goes on from the state of the first
        live(store, "patient", "the second matter", session="ab", corrects=False)
        assert store.purge("patient", first).sessions == 2
        assert found(path, "the first matter") == []
        assert found(path, "the second matter") == ["store.db"]
        assert store.verify() == []


def test_purge_of_a_session_takes_all_its_agents_and_names_those_that_were_told_its_lessons(path: Path) -> None:
    with Store(path) as store:
        for agent in ("main", "main/child"):
            live(store, agent, "the shared matter", session="s", corrects=False)
        with LessonStore(store, embedder=HashingEmbedder(16)) as lessons:
            origin = Origin("main/child", "s", (1,))
            lessons.record(pattern="p", error_text="the shared matter failed", fix_text="again", origin=origin)
        ((lesson,),) = store.fetch("SELECT id FROM lessons WHERE error_text LIKE '%shared matter%'")
        with store.transaction() as transaction:
            told = transaction.add_session(
                session="s2", agent="main", parent=None, source="api", started=1.0, config="{}"
            )
            data = f'{{"kind":"tick","recalled":[{{"lesson":{lesson},"similarity":1.0,"fix":"x","ts":1.0}}]}}'
            transaction.add_events(told, [EventRow(1, 1.0, "tick", data)])
        report = store.purge(session="s")
        assert (report.sessions, report.lessons, report.recalled_in) == (2, 1, ("main/s2",))
        assert found(path, "the shared matter") == [] and found(path, "Wexcombe") == ["store.db"]
        assert store.verify() == []
        with pytest.raises(ValueError, match="name an agent, a session or both"):
            store.purge()


def test_purge_an_agent_works_on_under_its_name(path: Path) -> None:
    with Store(path) as store:
        store.purge("patient")
        with Monitor(agent="patient", store=store, embedder=HashingEmbedder(16), resume=True) as m:
            assert m.counters.calls == 0
            m.message("user", "hello")
            m.decide()
        with Monitor(agent="patient", session="1", store=store, embedder=HashingEmbedder(16)) as m:
            assert m.session == "1~2"  # the name is taken by what was purged
            m.message("user", "hello")
        guard_call(store, "another matter")
        with Guard(store=store) as guard:
            assert guard.status("patient").calls == 1
        assert store.verify() == []


def test_replay_of_another_session_after_a_purge_takes_its_readings_as_recorded(path: Path) -> None:
    with Store(path) as store:
        store.purge("patient")
        (row,) = store.sessions(agent="port")
        report = Replay(store, row).report()
        assert report.differences == [] and report.equal == report.ticks > 0


@pytest.mark.parametrize(
    ("forge", "why"),
    [
        (
            """UPDATE events SET kind = 'purged', data = '{"kind":"purged"}' WHERE kind = 'goal' AND agent = 'port'""",
            "its content was removed by hand",
        ),
        (
            """UPDATE events SET data = '{"kind":"goal","text":"other"}' WHERE kind = 'purged' AND seq = 1""",
            "is not what was written",
        ),
    ],
)
def test_verify_accepts_only_what_was_purged_by_this_package(path: Path, forge: str, why: str) -> None:
    with Store(path) as store:
        store.purge("patient")
        export_jsonl(store, path.parent / "before")
        assert verify_jsonl(path.parent / "before") == []
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER events_update")
        assert connection.execute(forge).rowcount
    connection.close()
    with Store(path) as store:
        assert why in store.verify()[0].message
        export_jsonl(store, path.parent / "after")
    assert why in verify_jsonl(path.parent / "after")[0].message


def test_verify_jsonl_of_a_trail_with_purged_events_says_how_many(path: Path) -> None:
    with Store(path) as store:
        events = store.purge("patient").events
        export_jsonl(store, path.parent / "trail")
        trail = read_trail(path.parent / "trail")
        assert (trail.faults, trail.purged, trail.events) == ([], events, store.count_events())
        assert found(path, "Aldermaston") == []


def test_purge_events_cannot_be_changed_to_anything_else_even_then(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO maintenance VALUES (1)")
        with pytest.raises(sqlite3.IntegrityError, match="except that it is purged"):
            connection.execute("UPDATE events SET data = '{}' WHERE id = 1")
        with pytest.raises(sqlite3.IntegrityError, match="except that it is purged"):
            connection.execute("UPDATE sessions SET config = '{}' WHERE id = 1")
        connection.rollback()
    connection.close()
