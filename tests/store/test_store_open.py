"""Opening a path: ours, new, too new, someone else's, damaged, or nothing that can be a store."""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from coherence.store import schema
from coherence.store.errors import StoreError, StoreWarning
from coherence.store.store import Store
from store.rows import append, begin, run_at_once

InChild: TypeAlias = Callable[[Callable[[], object]], str]


posix = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and resource limits")


def fill(path: Path) -> None:
    with Store(path, synchronous="NORMAL") as store:
        append(store, begin(store), 300, data=f'"{"x" * 500}"')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    fill(path)
    return path


@pytest.mark.parametrize("wal", [False, True])
def test_open_store_a_newer_schema_is_refused_and_not_touched(path: Path, wal: bool) -> None:
    newest = schema.newest_version()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {newest + 3}")
    connection.execute("CREATE TABLE future (x)")
    connection.commit()
    if not wal:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
    before = path.read_bytes() if not wal else b""
    with pytest.raises(StoreError, match=rf"schema {newest + 3}.*up to {newest}.*pip install -U coherence-sensor"):
        Store(path)
    if wal:
        connection.close()
    else:
        assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("wal", ["DELETE", "WAL"])
@pytest.mark.parametrize("owner", [0, 0x12345678])
def test_open_store_another_programs_file_is_refused_and_not_touched(tmp_path: Path, wal: str, owner: int) -> None:
    path = tmp_path / "bookmarks.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {wal}")
    connection.execute(f"PRAGMA application_id = {owner}")
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="SQLite file of another program"):
        Store(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def interrupt(path: Path, target: Path, begun: bool) -> None:
    """Copy a file and its journal out of the midst of a transaction, which makes the file unless it is ``begun``."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # pages are written before the end
    if begun:
        connection.execute("CREATE TABLE of_others (x)")
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE big AS SELECT zeroblob(100000) AS x")
    for suffix in ("", "-journal"):
        Path(f"{target}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    connection.close()
    assert target.stat().st_size and Path(f"{target}-journal").stat().st_size


def test_open_store_a_file_whose_first_transaction_was_interrupted_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    interrupt(tmp_path / "other.db", path, begun=False)
    with Store(path) as store:
        assert store.recovered_from is None
        assert append(store, begin(store), 3) == 3
        assert store.verify() == []


def test_open_store_another_programs_interrupted_transaction_is_not_undone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    interrupt(tmp_path / "other.db", path, begun=True)
    before = [Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-journal")]
    with pytest.raises(StoreError):
        Store(path)
    assert [Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-journal")] == before


def test_open_store_another_programs_unfinished_log_is_not_touched(tmp_path: Path) -> None:
    path, copy = tmp_path / "live.sqlite", tmp_path / "copy.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.commit()
    for suffix in ("", "-wal"):  # as if that program had been killed
        (tmp_path / f"copy.sqlite{suffix}").write_bytes((tmp_path / f"live.sqlite{suffix}").read_bytes())
    connection.close()
    before = {suffix: (tmp_path / f"copy.sqlite{suffix}").read_bytes() for suffix in ("", "-wal")}
    with pytest.raises(StoreError, match="SQLite file of another program"):
        Store(copy)
    assert {suffix: (tmp_path / f"copy.sqlite{suffix}").read_bytes() for suffix in ("", "-wal")} == before


GARBAGE = b"SQLite format 3\0" + b"x" * 52 + schema.APPLICATION_ID.to_bytes(4, "big") + b"this is no database. " * 500
"""It has our mark where a header has it."""

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "short": lambda content: b"SQLite f",
    "zeros": lambda content: bytes(len(content)),
    "half a header": lambda content: content[:50],
    "torn": lambda content: content[:-10_000],
    "first page only": lambda content: content[:4096],
    "broken schema": lambda content: content[:100] + b"\xff" * 3996 + content[4096:],
    "broken magic": lambda content: b"\0" + content[1:],
    "garbage": lambda content: GARBAGE,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("with_log", [False, True])
def test_open_store_a_damaged_file_is_moved_aside_and_a_new_one_begun(path: Path, damage: str, with_log: bool) -> None:
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    if with_log:
        Path(f"{path}-wal").write_bytes(b"torn")
    content = path.read_bytes()
    with pytest.warns(StoreWarning, match="the store was damaged") as caught:
        store = Store(path)
    with store:
        assert store.recovered_from is not None
        assert re.fullmatch(r"store\.db\.damaged-\d{8}T\d{6}Z", store.recovered_from.name)
        assert store.recovered_from.read_bytes() == content
        assert store.count_events() == 0
        assert store.verify() == []
    assert caught[0].filename == __file__
    assert not Path(f"{path}-wal").exists()
    with Store(path) as store:
        assert store.recovered_from is None


@pytest.mark.parametrize("side", ["-wal", "-shm", ".lessons"])
def test_open_store_what_lies_beside_it_tells_that_a_file_without_a_header_was_a_store(path: Path, side: str) -> None:
    path.write_bytes(b"\x17random" * 900)
    Path(f"{path}{side}").mkdir() if side == ".lessons" else Path(f"{path}{side}").write_bytes(b"torn")
    with pytest.warns(StoreWarning, match="the store was damaged"):
        Store(path).close()


FOREIGN = {
    "word": (b"hello", "a file of another kind"),
    "text": (b"dear diary, " * 900, "a file of another kind"),
    "page": (b"x" * 4096, "a file of another kind"),
    "json": (b'\xef\xbb\xbf [{"pattern": "p", "error": "e", "fix": "f"}]', "JSON; .*`coherence lessons import FILE`"),
    "lines": (b'{"pattern": "p"}\n' * 700, "JSON; .*`coherence lessons import FILE`"),
    "zip": (b"PK\x03\x04" + b"\0" * 600 + b"x", "a zip archive"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "a file of another kind"),
    "zeros, then data": (bytes(2**20 + 200) + b"x", "a file of another kind"),
    "SQLite 2": (b"** This file contains an SQLite 2.1 database **" + b"\0" * 3000, "a file of another kind"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_open_store_a_file_that_never_was_a_store_is_refused_and_not_touched(tmp_path: Path, name: str) -> None:
    content, why = FOREIGN[name]
    path = tmp_path / "mistyped"
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(StoreError, match=f"mistyped: this is no store of evidence or lessons, but {why}"):
            Store(path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == [path.name]


def test_open_store_two_damaged_files_in_one_second_are_both_kept(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for _ in range(3):
        path.write_bytes(GARBAGE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Store(path).close()
    assert len(list(tmp_path.glob("store.db.damaged-*"))) == 3


def test_open_store_a_warning_that_is_an_error_leaves_a_store_that_can_be_opened(path: Path) -> None:
    path.write_bytes(GARBAGE)
    with pytest.raises(StoreWarning):
        Store(path)
    with Store(path) as store:
        assert store.recovered_from is None


def test_open_store_a_damaged_file_of_another_program_is_refused(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[68:72] = b"abcd"
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)
    with pytest.raises(StoreError, match="belongs to another program"):
        Store(path)
    assert path.read_bytes() == bytes(content)


def test_verify_damage_that_shows_later_is_an_error_that_says_what_to_do(path: Path) -> None:
    content = bytearray(path.read_bytes())
    starts = range(0, len(content), 4096)
    of_events = [start for start in starts if b"x" * 500 in content[start : start + 4096]]
    for start in of_events[len(of_events) // 3 : 2 * len(of_events) // 3]:  # opening looks at the ends
        content[start : start + 3000] = b"\xff" * 3000
    path.write_bytes(content)
    with Store(path) as store:
        assert store.recovered_from is None
        with pytest.raises(StoreError, match=r"the file is damaged.*`coherence audit verify`") as raised:
            list(store.events(1))
        assert str(path) in str(raised.value)
        faults = store.verify()
        assert any("the file is damaged" in fault.message for fault in faults)
    assert path.read_bytes() == bytes(content)


@posix
def test_store_a_path_that_no_store_can_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    refused: dict[str | Path, str] = {
        tmp_path: "this is a folder",
        tmp_path / "file" / "store.db": "its folder cannot be made",
        tmp_path / "pipe": "no regular file",
        os.devnull: "no regular file",
        tmp_path / ("x" * 5000): "cannot be opened",
        ":memory:": "a store is a file",
    }
    for path, why in refused.items():
        with pytest.raises(StoreError, match=why):
            Store(path)


def test_store_a_relative_path_in_a_missing_folder_becomes_one_file_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Store("b c/ü#?%.db") as store:
        monkeypatch.chdir("/")
        with store.transaction() as transaction:
            transaction.set_baselines("a", 1, b"x")
        assert store.baselines("a") == b"x"
    assert os.listdir(tmp_path / "b c") == ["ü#?%.db"]  # a closed store is one file


@posix
@pytest.mark.parametrize("there", [False, True])
def test_open_store_a_read_only_folder_is_refused(public_folder: Path, in_child: InChild, there: bool) -> None:
    path = public_folder / "store.db"
    if there:
        fill(path)
    public_folder.chmod(0o555)

    def open_as_nobody() -> None:
        if os.geteuid() == 0:
            os.setuid(65534)  # root may write everywhere
        Store(path).close()

    said = in_child(open_as_nobody)
    assert said.startswith(f"StoreError: {path}")
    assert "read-only" in said


def test_transaction_a_full_disk_rolls_back_and_keeps_what_was_there(path: Path) -> None:
    with Store(path) as store:
        session = store.sessions()[0]
        with store.transaction() as transaction:
            (pages,) = transaction.execute("PRAGMA page_count")[0]
            transaction.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(StoreError, match="the disk is full"):
            append(store, session, 100, data=f'"{"y" * 800}"')
        assert store.count_events() == 300
        assert append(store, session) == 301
        assert store.verify() == []


@posix
def test_transaction_a_file_that_may_not_grow_keeps_what_was_there(path: Path, in_child: InChild) -> None:
    def write_until_it_fails() -> str:
        with Store(path) as store:
            session = store.sessions()[0]
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
            written = store.last_seq(session.id)
            try:
                while True:
                    written = append(store, session, 50, data=f'"{"y" * 800}"')
            except StoreError as error:
                assert (store.last_seq(session.id), store.verify()) == (written, [])
                return f"{written} {error}"

    written, _, message = in_child(write_until_it_fails).strip("'").partition(" ")
    assert message.startswith(f"{path}: reading or writing failed")
    with Store(path) as store:
        assert store.verify() == []
        assert store.last_seq(1) == int(written) >= 300


@posix
@pytest.mark.parametrize(
    "start", ["missing", "damaged", *(pytest.param(start, marks=pytest.mark.slow) for start in ("empty", "version 1"))]
)
def test_open_store_processes_that_open_at_the_same_moment_all_succeed(tmp_path: Path, start: str) -> None:
    path = tmp_path / "store.db"
    if start == "empty":
        path.touch()
    elif start == "version 1":
        connection = sqlite3.connect(path, isolation_level=None)
        schema.migrate(connection, 1)
        connection.close()
    elif start == "damaged":
        path.write_bytes(GARBAGE)

    def race(name: str) -> None:
        warnings.simplefilter("ignore")
        with Store(path, timeout_s=30) as store:
            append(store, begin(store, name))

    run_at_once(*(partial(race, f"{number}") for number in range(4)))
    with Store(path) as store:
        assert len(store.sessions()) == 4
        assert store.count_events() == 4
        assert store.verify() == []
    assert len(list(tmp_path.glob("*.damaged-*"))) == (start == "damaged")
