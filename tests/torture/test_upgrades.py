"""Real files of every earlier schema, made by the code of their time: opened, upgraded, verified and gone on with."""

from __future__ import annotations

import lzma
import random
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store.rows import run_at_once

from coherence import Monitor
from coherence.fleet.fleet import read_trust
from coherence.guard import Guard
from coherence.lessons import LessonStore
from coherence.monitor.replay import Replay
from coherence.providers import HashingEmbedder
from coherence.store import schema
from coherence.store.errors import StoreError
from coherence.store.rows import GUARD_SESSION
from coherence.store.store import Store
from torture.agent import Plan, Report
from torture.build_store import CALLS
from torture.faultfs import EIO, ENOSPC, TORN, Disk

STORES = Path(__file__).parents[1] / "data" / "stores"
VERSIONS = sorted(path.name.removesuffix(".db.xz") for path in STORES.glob("v*.db.xz"))
SAMPLE = 2
"""Operations that a short run lets fail, of each sort."""


def unpack(name: str, path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.decompress((STORES / f"{name}.db.xz").read_bytes()))
    return path


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Read by SQLite alone, without a line of this package."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


EVENTS = (
    "SELECT s.session, s.agent, e.seq, e.ts, e.kind, e.data, e.hash FROM events AS e "
    f"JOIN sessions AS s ON s.id = e.session_id WHERE s.session <> '{GUARD_SESSION}' ORDER BY e.id"
)
OTHERS = (
    "SELECT agent, data FROM baselines ORDER BY agent",
    "SELECT data FROM trust",
    f"SELECT session, agent, parent, source, config FROM sessions WHERE session <> '{GUARD_SESSION}' ORDER BY id",
    "SELECT pattern, error_text, fix_text, tool FROM lessons ORDER BY id",
    "SELECT firing_id, pattern, pair, arm, text, delivered FROM firings ORDER BY event_id",
    "SELECT session_id, seq, data FROM readings ORDER BY 1, 2",
    "SELECT session_id, seq, kind, data FROM decisions ORDER BY 1, 2",
)
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


def test_newest_version_every_schema_has_a_file_that_its_own_code_made() -> None:
    assert [f"v{number}" for number in range(1, schema.newest_version() + 1)] == VERSIONS
    for number, name in enumerate(VERSIONS, start=1):
        header = lzma.decompress((STORES / f"{name}.db.xz").read_bytes())[:72]
        assert int.from_bytes(header[60:64], "big") == number  # where SQLite keeps user_version


@pytest.mark.parametrize("name", VERSIONS)
def test_store_of_an_earlier_version_keeps_everything_through_the_upgrade(tmp_path: Path, name: str) -> None:
    old, fresh = unpack(name, tmp_path / "a" / "s.db"), tmp_path / "fresh.db"
    before = [rows(old, sql) for sql in (EVENTS, *OTHERS)]
    assert all(before[:-2])
    Store(fresh).close()
    with Store(old) as store:
        assert store.recovered_from is None
        assert store.verify() == []
        assert sum(len(list(store.events(row.id))) for row in store.sessions()) == len(before[0])
    assert [rows(old, sql) for sql in (EVENTS, *OTHERS)] == before
    assert rows(old, SCHEMA) == rows(fresh, SCHEMA)


@pytest.mark.parametrize("name", VERSIONS)
def test_store_of_an_earlier_version_is_gone_on_with(tmp_path: Path, name: str) -> None:
    path, embedder = unpack(name, tmp_path / "a" / "s.db"), HashingEmbedder(16)
    count = len(rows(path, EVENTS))
    with Monitor(store=path, agent="a", resume=True, embedder=embedder, strict=True) as m:
        m.message("user", "and now the linter, please")
        call = m.tool_call("Bash", {"command": "python run.py"})
        m.tool_result("ModuleNotFoundError: No module named 'numpy'", error=True, call=call)
        assert m.decide().seq
    with LessonStore(path, embedder=embedder) as lessons:
        (found, *_) = lessons.query("ModuleNotFoundError: No module named 'numpy'")
        assert found.fix_text == "uv add numpy"
    with Guard(store=path) as guard:
        assert guard.status("g").calls == CALLS
        guard.run(lambda: 1, agent="g")
        assert guard.status("g").calls == CALLS + 1
        # of the six old ones each third failed
        assert [trace.success for trace in guard.traces("g")] == [True, True, False, True, True, False, True]
    with Store(path) as store:
        assert [(edge.source, edge.target, edge.weight) for edge in read_trust(store).edges] == [
            ("sub", "planner", 0.25)
        ]
        assert store.verify() == []
        assert sum(len(list(store.events(row.id))) for row in store.sessions()) > count + 3
        for row in store.sessions():
            assert Replay(store, row).report().ticks > 0 or row.agent != "a"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize(
    "name", [VERSIONS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in VERSIONS[1:-1]), VERSIONS[-1]]
)
def test_store_of_an_earlier_version_is_upgraded_once_by_processes_that_open_it_at_once(
    tmp_path: Path, name: str
) -> None:
    path = unpack(name, tmp_path / "a" / "s.db")
    before = rows(path, EVENTS)
    run_at_once(*[lambda: Store(path, timeout_s=60).close()] * 4)
    with Store(path) as store:
        assert store.verify() == []
    assert rows(path, EVENTS) == before


def test_store_of_before_the_first_schema_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = unpack("unreleased", tmp_path / "s.db")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["s.db"]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    with Disk(tmp_path_factory.mktemp("faultfs")) as made:
        yield made


FAILURES = {
    "EIO": Plan(path="", script="continue", at=1, kind=EIO),
    "ENOSPC": Plan(path="", script="continue", at=1, kind=ENOSPC),
    "torn": Plan(path="", script="continue", at=1, kind=TORN),
    "power cut": Plan(path="", script="continue", crash=1),
}


@pytest.mark.parametrize(
    "short", [pytest.param(True, marks=pytest.mark.slow), pytest.param(False, marks=pytest.mark.torture)]
)
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("name", VERSIONS)
def test_store_of_an_earlier_version_survives_an_upgrade_that_the_disk_interrupts(
    disk: Disk, tmp_path: Path, seed: int, name: str, failure: Plan, short: bool
) -> None:
    dice, path = random.Random(seed), tmp_path / "a" / "s.db"
    before = rows(unpack(name, path), EVENTS)
    told = disk.run(Plan(path=str(path), script="continue"))
    ((_, counted, written),) = [line for line in told.said if line[0] == "counted"]
    operations = range(1, (written if failure.crash else counted) + 1)
    for at in sorted(dice.sample(operations, SAMPLE if short else len(operations) // 3)):
        unpack(name, path)
        plan = Plan(
            path=str(path),
            script="continue",
            at=failure.at and at,
            kind=failure.kind,
            crash=failure.crash and at,
            seed=dice.getrandbits(32),
        )
        report = disk.run(plan)
        try:
            check(plan, report, before)
        except (AssertionError, StoreError, sqlite3.Error) as error:
            raise AssertionError(f"{error}\n{plan}\n{report}") from error
        finally:
            shutil.rmtree(path.parent)


def check(plan: Plan, report: Report, before: list[tuple[Any, ...]]) -> None:
    """Compare a file with what it held and with what was acknowledged since."""
    assert not report.wedged
    assert report.code == 0 or (plan.crash and report.code == -signal.SIGKILL)
    assert report.all("raised") == [] == report.all("moved aside")
    with Store(plan.path) as store:
        assert store.recovered_from is None
        assert store.verify() == []
    after = rows(Path(plan.path), EVENTS)
    assert after[: len(before)] == before
    new = [row[5] for row in after[len(before) :] if row[4] == "message"]
    assert all(f"line {number}" in text for number, text in enumerate(new))
    assert len(new) >= len(report.all("ack"))
