"""A store of an earlier, unreleased version is refused at every door, with what to do, and is left as it is."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from coherence import Fleet, Monitor
from coherence.cli.main import main
from coherence.guard import Guard
from coherence.lessons import LessonStore
from coherence.store import schema
from coherence.store.errors import StoreError
from coherence.store.store import EventRow, Store

NEWEST_UNRELEASED = 8
"""Numbers of the schema that unreleased versions wrote: 1 to 8, under an application id that is not used any more."""

SAYS = "earlier, unreleased version"


def make_unreleased(path: Path, version: int, journal: str = "WAL") -> bytes:
    """Write a store as an unreleased version left it, and return its bytes.

    The last of them had the very tables that the first release begins with.
    """
    with Store(path, synchronous="NORMAL") as store, store.transaction() as transaction:
        session = transaction.add_session(session="s", agent="a", parent=None, source="api", started=1, config="{}")
        transaction.add_events(session, [EventRow(seq, float(seq), "goal", '"mend it"') for seq in range(1, 40)])
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA application_id = {schema.UNRELEASED_ID}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.close()
    return path.read_bytes()


DOORS: dict[str, Callable[[Path], object]] = {
    "Store": Store,
    "Monitor": lambda path: Monitor(store=path),
    "Monitor lessons": lambda path: Monitor(lessons=path),
    "Fleet": lambda path: Fleet(store=path),
    "Guard": lambda path: Guard(store=path),
    "LessonStore": lambda path: LessonStore(path, embedder=False),
}


@pytest.mark.parametrize("open_door", DOORS.values(), ids=DOORS)
def test_unreleased_a_store_of_an_unreleased_version_is_refused_and_not_touched(
    tmp_path: Path, open_door: Callable[[Path], object]
) -> None:
    path = tmp_path / "old.db"
    before, mode = make_unreleased(path, NEWEST_UNRELEASED), path.stat().st_mode
    with pytest.raises(StoreError, match=rf"old\.db.*{SAYS}.*choose another path"):
        open_door(path)
    assert path.read_bytes() == before
    assert path.stat().st_mode == mode
    assert os.listdir(tmp_path) == ["old.db"]


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
@pytest.mark.parametrize("version", range(1, NEWEST_UNRELEASED + 1))
def test_unreleased_every_unreleased_version_is_refused(tmp_path: Path, version: int, journal: str) -> None:
    path = tmp_path / "old.db"
    before = make_unreleased(path, version, journal)
    with pytest.raises(StoreError, match=SAYS):
        Store(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["old.db"]


COMMANDS = [
    ["log", "--store", "old.db"],
    ["sessions", "--store", "old.db"],
    ["audit", "verify", "old.db"],
    ["replay", "--store", "old.db", "a/s"],
    ["experiments", "--store", "old.db"],
    ["calibration", "old.db"],
    ["label", "old.db", "a/s", "good"],
    ["lessons", "list", "--store", "old.db"],
    ["lessons", "add", "--store", "old.db", "--pattern", "P", "--error", "E", "--fix", "F"],
    ["guard", "status", "--store", "old.db"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_unreleased_a_command_refuses_a_store_of_an_unreleased_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = make_unreleased(tmp_path / "old.db", NEWEST_UNRELEASED)
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2, result.output
    assert SAYS in " ".join(result.output.split())
    assert (tmp_path / "old.db").read_bytes() == before
    assert os.listdir(tmp_path) == ["old.db"]


def test_unreleased_a_damaged_store_of_an_unreleased_version_is_not_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    whole = make_unreleased(path, NEWEST_UNRELEASED)
    damaged = whole[:4096] + b"\xff" * (len(whole) - 4096)
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match=SAYS):
        Store(path)
    assert path.read_bytes() == damaged
    assert os.listdir(tmp_path) == ["old.db"]
