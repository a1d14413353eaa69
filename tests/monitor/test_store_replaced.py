"""A monitor whose store is deleted, renamed or damaged: it says so and goes on in another file with what it holds."""

from __future__ import annotations

import logging
import random
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from coherence import Monitor, Store
from coherence.core.events import Fault
from coherence.monitor import folding
from coherence.monitor.monitor import Durability
from coherence.providers import HashingEmbedder
from coherence.store.errors import StoreWarning
from monitor.helpers import check_replay, rows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted or renamed there")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "runs.db"


@pytest.fixture(autouse=True)
def _log_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "coherence")


def monitor(path: Path, durability: Durability = "batched", *, resume: bool = False) -> Monitor:
    return Monitor(
        agent="a", goal="Fix the build", store=path, embedder=HashingEmbedder(16), durability=durability, resume=resume
    )


def work(m: Monitor, first: int, last: int) -> None:
    for number in range(first, last):
        call = m.tool_call("Bash", {"command": f"make part{number}"})
        m.tool_result(f"part {number} is built", call=call)


def remove(path: Path) -> None:
    shutil.rmtree(path.parent)


def rename(path: Path) -> None:
    path.rename(path.with_name("kept.db"))


@pytest.mark.parametrize(
    ("lose", "durability"),
    [
        (remove, "batched"),
        (rename, "full"),
        (Path.unlink, "batched"),
        *(
            pytest.param(lose, durability, marks=pytest.mark.slow)
            for lose, durability in ((remove, "full"), (rename, "batched"), (Path.unlink, "full"))
        ),
    ],
)
def test_monitor_whose_file_is_gone_writes_all_that_it_holds_to_a_new_one(
    path: Path, lose: Callable[[Path], None], durability: Durability, caplog: pytest.LogCaptureFixture
) -> None:
    with monitor(path, durability) as m:
        work(m, 0, 5)
        first = m.decide()
        m.flush()
        lose(path)
        work(m, 5, 9)
        m.flush()  # from here on all of it is safe again
        with Store(path) as found:
            (row,) = found.sessions()
            kept = [event.seq for event in found.events(row.id)]
            assert kept[:20] == list(range(1, 21))  # a goal, 9 calls with results, one measurement: 20 events or more
            assert found.fetch("SELECT kind FROM decisions WHERE seq = ?", (first.seq,)) == [(first.kind,)]
        m.decide()
    faults = [event.event for event in m.events() if isinstance(event.event, Fault)]
    assert [fault.where for fault in faults] == ["store"]
    assert "deleted or renamed while it was in use" in faults[0].message
    assert sum("deleted or renamed while it was in use" in line for line in caplog.messages) == 1
    check_replay(path)


def test_flush_with_nothing_new_notices_that_the_file_is_gone(path: Path) -> None:
    with monitor(path) as m:
        work(m, 0, 3)
        m.flush()
        path.unlink()
        m.flush()
        with Store(path) as found:
            assert found.count_events() >= 7  # a goal, 3 calls with results
    check_replay(path)


def test_monitor_goes_on_with_its_numbers_where_the_oldest_events_are_held_no_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "MAX_EVENTS", 10)
    with monitor(path) as m:
        work(m, 0, 20)
        m.decide()
        m.flush()
        held = [event.seq for event in m.events()]
        assert len(held) == 10
        path.unlink()
        work(m, 20, 22)
        m.flush()
        m.decide()
        pressure = m.pressure
    # 4 events of the two last calls came after those that were held then, and more afterwards
    assert rows(path, "SELECT min(seq) FROM events") <= [(held[0] + 4,)]
    seqs = [seq for (seq,) in rows(path, "SELECT seq FROM events ORDER BY id")]
    assert seqs == list(range(seqs[0], seqs[-1] + 1)) and seqs[0] > 1
    with monitor(path, resume=True) as m:  # the state is whole, although its events are not
        assert m.counters.calls == 22
        assert m.pressure == pressure
    check_replay(path)  # from the state that was written with them on


def test_monitor_of_one_session_with_another_one_agrees_with_it_in_the_new_file(path: Path) -> None:
    one, other = monitor(path), None
    with one:
        work(one, 0, 3)
        one.flush()
        other = Monitor(agent="a", session=one.session, store=path, embedder=HashingEmbedder(16))
        with other:
            path.unlink()
            work(one, 3, 6)
            one.flush()
            work(other, 6, 8)
            other.flush()
            work(one, 8, 9)
            one.flush()
    with Store(path) as store:
        assert store.verify() == []
    calls = rows(path, "SELECT count(*) FROM events WHERE kind = 'tool_call'")
    assert calls == [(9,)]


def test_monitor_goes_on_in_a_copy_that_was_put_back(path: Path) -> None:
    with monitor(path) as m:
        work(m, 0, 3)
        m.flush()
        copy = path.with_name("copy.db")
        with Store(path) as store:
            store.fetch("PRAGMA wal_checkpoint(FULL)")
        shutil.copy(path, copy)
        work(m, 3, 6)
        m.flush()
        copy.rename(path)
        work(m, 6, 8)
        m.flush()
    assert rows(path, "SELECT count(*) FROM events WHERE kind = 'tool_call'") == [(8,)]
    check_replay(path)


def overwrite(path: Path, page: int, seed: int) -> None:
    with open(path, "r+b") as file:
        file.seek(4096 * page)
        file.write(random.Random(seed).randbytes(4096))


def test_monitor_of_a_file_that_is_damaged_in_use_goes_on_in_a_new_one(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with monitor(path, "full") as m:
        work(m, 0, 30)
        m.flush()
        with Store(path) as store:
            store.fetch("PRAGMA wal_checkpoint(FULL)")
        for page in range(1, path.stat().st_size // 4096):
            overwrite(path, page, page)
        Path(f"{path}-wal").write_bytes(b"")
        work(m, 30, 60)
        m.flush()
        m.decide()
    assert "the store was damaged" in caplog.text
    assert len(list(path.parent.glob("runs.db.damaged-*Z"))) == 1
    calls = rows(path, "SELECT count(*) FROM events WHERE kind = 'tool_call'")
    assert calls == [(60,)]
    check_replay(path, kept=None)  # vectors could not be read for a moment


@pytest.mark.slow
def test_monitor_whatever_page_of_an_old_store_is_bad_begins_and_works(tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    with monitor(old) as m:
        m.message("user", "The build must pass on Linux. " * 400)  # a text of several pages
        work(m, 0, 10)
        m.decide()
    pages = old.stat().st_size // 4096
    moved = 0
    for page in range(1, pages):  # a file without its header is recognised by nobody, and not touched
        path = tmp_path / f"page{page}.db"
        shutil.copy(old, path)
        overwrite(path, page, page)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)
            with monitor(path, resume=True) as m:
                work(m, 10, 12)
                m.decide()
                m.flush()
        moved += bool(list(tmp_path.glob(f"{path.name}.damaged-*Z")))
        newest = rows(path, "SELECT kind FROM events ORDER BY id DESC LIMIT 8")  # older pages may be bad unnoticed
        assert newest.count(("tool_call",)) >= 2
    assert moved > pages // 3


def test_close_that_notices_the_loss_first_records_it_too(path: Path) -> None:
    with monitor(path) as m:
        work(m, 0, 3)
        m.flush()
        path.unlink()
    assert rows(path, "SELECT count(*) FROM events WHERE kind = 'fault'") == [(1,)]
    check_replay(path)


def test_begin_again_leaves_nothing_waiting_and_counts_no_bytes_of_it(path: Path) -> None:
    with monitor(path) as m:
        work(m, 0, 3)
        m.flush()
        path.unlink()
        work(m, 3, 5)
        m.flush()
        m.flush()  # the fault too
        recorder = m._worker.recorder
        assert recorder is not None
        assert (recorder.pending, recorder.pending_bytes) == (0, 0)
