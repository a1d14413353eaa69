"""The worst of each session, and sessions by name, from columns alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from coherence import Monitor, Store
from coherence.core.readings import Band
from coherence.core.strip import FROM_BEST
from coherence.monitor.codec import decode_result
from coherence.store.extremes import BANDS, Extreme, session_extremes, worst_until
from coherence.store.session_names import sessions_called


def fill(path: Path) -> None:
    with Monitor(store=path, agent="a", session="one", goal="Read the plan.", embedder=False) as m:
        m.message("assistant", "I read it.")
    with Monitor(store=path, agent="b", session="one", goal="Fix it.", embedder=False) as m:
        for _ in range(6):
            m.tool_result("boom", error=True, call=m.tool_call("Bash", {"command": "make"}))
        m.decide()
    with Monitor(store=path, agent="a", session="b", embedder=False) as m:
        m.check("Bash", {"command": "rm -rf /"})
    with Monitor(store=path, agent="a", session="empty", embedder=False):
        pass


@pytest.mark.parametrize("tallied", [True, False], ids=["with tallies", "of an earlier version"])
def test_session_extremes_are_those_of_the_decoded_rows(tmp_path: Path, tallied: bool) -> None:
    fill(tmp_path / "s.db")
    if not tallied:
        with closing(sqlite3.connect(tmp_path / "s.db")) as file, file:
            file.execute("DELETE FROM tallies")
            file.execute("DELETE FROM marks")
    assert tuple(FROM_BEST) == BANDS
    with Store(tmp_path / "s.db") as store:
        found = session_extremes(store)
        rows = store.sessions()
        assert [row.id in found for row in rows] == [True, True, True, False]
        for row in rows[:3]:
            events = list(store.events(row.id))
            results = [result for event in events if (result := decode_result(event)) is not None]
            read = [result.reading for result in results if result.reading is not None]
            indexes = [reading.coherence_index for reading in read if reading.coherence_index is not None]
            worst = max((reading.band for reading in read), key=FROM_BEST.index, default=Band.UNKNOWN)
            kinds = ("continue", "guide", "warn", "block")
            assert found[row.id] == Extreme(
                max(kinds.index(result.decision.kind) for result in results),
                FROM_BEST.index(worst),
                1.0 - min(indexes) if indexes else -1.0,
                events[-1].ts,
            )
            assert worst_until(store, row.id, events[-1].seq) == (str(worst) if read else "")
            assert worst_until(store, row.id, 0) == ""
        # refused, warned, calm
        assert sorted(found, key=found.__getitem__, reverse=True) == [rows[2].id, rows[1].id, rows[0].id]


def test_sessions_called_a_whole_name_counts_before_an_agent_before_a_session(tmp_path: Path) -> None:
    fill(tmp_path / "s.db")
    with Store(tmp_path / "s.db") as store:
        rows = store.sessions()

    def called(name: str) -> list[str]:
        return [f"{row.agent}/{row.session}" for row in sessions_called(rows, name)]

    assert called("a/one") == ["a/one"]
    assert called("a") == ["a/empty"]
    assert called("one") == ["a/one", "b/one"]
    assert called("b") == ["b/one"], "an agent, although a session is called so too"
    assert called("nobody") == []
