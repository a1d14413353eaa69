"""A file that goes while it is open, or turns out to be damaged: noticed, said, and gone on with in another one."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coherence.store.errors import StoreError, StoreWarning
from coherence.store.rows import EventRow
from coherence.store.store import Store
from store.rows import append, begin

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted or renamed there")


def delete(path: Path) -> None:
    path.unlink()


def delete_all(path: Path) -> None:
    for side in ("", "-wal", "-shm"):
        Path(f"{path}{side}").unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("kept.db"))


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "store.db"


@pytest.mark.parametrize("lose", [delete, delete_all, rename, remove_folder])
def test_transaction_after_its_file_is_gone_goes_to_a_new_one_and_says_so_once(
    path: Path, lose: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    with Store(path) as store, caplog.at_level(logging.WARNING, "coherence"):
        append(store, begin(store, "old"), 5)
        assert (store.generation, store.lost) == (0, False)
        lose(path)
        assert store.lost
        append(store, begin(store, "new"), 3)
        append(store, begin(store, "newer"), 2)
        assert (store.generation, store.lost) == (1, False)
        assert [row.session for row in store.sessions()] == ["new", "newer"]
    assert [record.getMessage() for record in caplog.records] == [f"coherence: {store.begun_anew}"]
    assert "the store's file was deleted or renamed while it was in use" in store.begun_anew
    with Store(path) as store:  # what was acknowledged is where whoever looks for it finds it
        assert store.count_events() == 5
        assert store.verify() == []


def test_transaction_leaves_a_renamed_file_complete_without_its_log(path: Path) -> None:
    with Store(path) as store:
        append(store, begin(store, "old"), 5)
        rename(path)
        begin(store, "new")
    with Store(path.with_name("kept.db")) as kept:
        assert kept.count_events() == 5
        assert kept.verify() == []


def test_transaction_of_a_file_that_goes_before_its_end_is_not_acknowledged(path: Path) -> None:
    def write_and_lose(store: Store) -> None:
        row = begin(store)
        with store.transaction() as transaction:
            transaction.add_events(row, [EventRow(1, 1.0, "message", "{}")])
            path.unlink()

    with Store(path) as store:
        with pytest.raises(StoreError, match=r"store\.db: the file was deleted or renamed while it was written"):
            write_and_lose(store)
        begin(store)
        assert store.count_events() == 0


def test_transaction_goes_to_the_file_that_another_one_has_begun(path: Path) -> None:
    with Store(path) as one, Store(path) as other:
        begin(one, "old")
        path.unlink()
        begin(one, "one")
        begin(other, "other")
        assert [row.session for row in one.sessions()] == [row.session for row in other.sessions()] == ["one", "other"]
        assert "replaced by another one" in other.begun_anew


def test_transaction_of_two_stores_after_the_main_file_alone_was_deleted_share_no_log(path: Path) -> None:
    # the one that has not noticed goes on in the old file and its log; a new file beside that must not read it
    with Store(path) as old:
        append(old, begin(old, "old"), 50)
        path.unlink()
        with Store(path) as new:
            append(new, begin(new, "new"), 50)
            append(old, begin(old, "later"), 50)
            assert new.verify() == [] and new.count_events() == 100
    with Store(path) as store:
        assert store.verify() == [] and store.count_events() == 100


def test_transaction_without_a_place_for_a_new_file_fails_and_works_once_there_is_one(path: Path) -> None:
    with Store(path) as store:
        begin(store, "old")
        shutil.rmtree(path.parent)
        path.parent.write_text("no folder")
        for _ in range(2):
            with pytest.raises(StoreError, match="its folder cannot be made"):
                begin(store, "new")
        path.parent.unlink()
        begin(store, "new")
        assert [row.session for row in store.sessions()] == ["new"]


def overwrite(path: Path, pages: range) -> None:
    with open(path, "r+b") as file:
        for page in pages:
            file.seek(4096 * page)
            file.write(b"\xa5" * 4096)


def big(path: Path) -> int:
    """Fill a store; return its number of pages, all of them in the main file."""
    with Store(path, synchronous="NORMAL") as store:
        append(store, begin(store), 300, data=f'"{"x" * 500}"')
    return path.stat().st_size // 4096


def test_transaction_of_a_file_that_is_damaged_in_use_goes_to_a_new_one(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pages = big(path)
    with Store(path) as store:
        (row,) = store.sessions()
        overwrite(path, range(4, pages))
        with pytest.raises(StoreError, match="the file is damaged"):
            append(store, row)
        assert store.lost
        append(store, begin(store, "new"), 3)
        assert store.recovered_from is not None and store.recovered_from.exists()
        assert (store.generation, store.count_events(), store.verify()) == (1, 3, [])
    assert "the store was damaged" in caplog.text
    aside = store.recovered_from.name
    moved = {file.name for file in path.parent.glob("*.damaged-*")}
    assert moved == {aside, f"{aside}-wal", f"{aside}-shm"}  # its log may hold the newest commits


def read_all(store: Store) -> None:
    for _ in store.audit_rows():
        pass


def test_transaction_after_a_read_that_failed_once_goes_on_in_the_same_file(path: Path) -> None:
    pages, sound = big(path), path.read_bytes()
    with Store(path) as store:
        (row,) = store.sessions()
        overwrite(path, range(6, pages))
        with pytest.raises(StoreError, match="the file is damaged"):
            read_all(store)
        assert store.lost
        path.write_bytes(sound)  # the disk can be read again
        append(store, row)
        assert (store.generation, store.count_events(), store.verify()) == (0, 301, [])


def test_transaction_of_a_file_that_seems_damaged_twice_goes_to_a_new_one(path: Path) -> None:
    pages = big(path)
    with Store(path) as store:
        overwrite(path, range(pages * 3 // 4, pages - 8))  # not what an opening looks at
        for generation in range(2):
            with pytest.raises(StoreError, match="the file is damaged"):
                read_all(store)
            begin(store, "new")
            assert store.generation == generation
        assert [row.session for row in store.sessions()] == ["new"]


def test_fetch_that_finds_damage_leaves_the_file_until_something_is_written(path: Path) -> None:
    pages = big(path)
    with Store(path) as store:
        overwrite(path, range(6, pages))
        with pytest.raises(StoreError, match="the file is damaged"):
            list(store.events(1))
        assert store.lost and store.generation == 0
        assert store.secured(store.count_events) == 0  # it reads the file that takes its place
        assert store.generation == 1


def test_store_that_is_damaged_while_another_one_has_it_open_is_moved_aside(path: Path) -> None:
    pages = big(path)
    with Store(path) as one:
        overwrite(path, range(pages))
        with pytest.warns(StoreWarning, match="the store was damaged"):
            other = Store(path)
        with other:
            begin(other, "other")
            begin(one, "one")
            assert [row.session for row in other.sessions()] == ["other", "one"]


def test_connections_of_a_renamed_file_keep_the_log_of_the_new_one_when_they_close(path: Path) -> None:
    # SQLite removes a log by its name when the last connection closes, unless it sees that the file has moved
    with Store(path) as new:
        begin(new, "old")
        reader = sqlite3.connect(path)
        assert reader.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
        rename(path)
        append(new, begin(new, "new"), 20)
        reader.close()
        assert os.path.exists(f"{path}-wal")
        with sqlite3.connect(path) as fresh:
            assert fresh.execute("SELECT count(*) FROM events").fetchone() == (20,)
        fresh.close()
