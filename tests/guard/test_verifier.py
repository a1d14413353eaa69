"""The trail of a guard is part of the store's chain, and explains every step that the guard took by rule."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main
from coherence.guard import Guard
from coherence.guard.patch_events import Decision, GuardedCall
from coherence.guard.traces import Entry, encode_account, read_account, read_trail, write_decision
from coherence.guard.verifier import verify_agent, verify_guards
from coherence.monitor.monitor import Monitor
from coherence.store import schema
from coherence.store.store import Store
from guard.helpers import Boom, Both, Clock, Memory, failing, patched
from guard.trails import Row, Stuck, Varies, trail


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a patch of the agent ``a`` that makes it worse was rolled back."""
    folder = tmp_path_factory.mktemp("lived")
    trail(folder, Memory(), lambda level: 0.9 if level == 1 else 0.5, canary_share=0.5, canary_slice=30)
    return folder / "guard.db"


def verify(path: Path, *options: str) -> Result:
    arguments = ["guard", "verify", *options, "--store", str(path)]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def unlocked(path: Path) -> sqlite3.Connection:
    """Open a store as somebody who drops what guards its tables first."""
    connection = sqlite3.connect(path, isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


def test_guard_verify_command_tells_that_an_untouched_trail_is_verified(lived: Path) -> None:
    result = verify(lived)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("VERIFIED, newest hash ")
    assert max(map(len, result.stdout.splitlines()[:-1])) <= 80
    found = json.loads(verify(lived, "a", "--json").stdout)
    (agent,) = found["agents"]
    assert (found["verdict"], found["chain"], agent["faults"], agent["unknown"]) == ("verified", [], [], 0)
    first = agent["rollbacks"][0]
    assert (first["derived"], first["metric"], first["evidence"] >= first["limit"]) == ("yes", "success", True)
    result = verify(lived, "nobody")
    assert (result.exit_code, "no agent under guard is called 'nobody'; known: a" in result.stderr) == (2, True)


CUT = "DELETE FROM events WHERE seq > 400"
COLUMNS = "ts, kind, source, data, prev_hash, hash"
OTHER = "FROM events AS e WHERE e.seq = events.seq + 100"
HARMS = {
    "a call": ["UPDATE events SET data = replace(data, 'false', 'true') WHERE kind = 'guard_call' AND seq < 50"],
    "a decision": ["UPDATE events SET data = json_set(data, '$.why', 'none') WHERE data LIKE '%\"ending\"%'"],
    "a time": ["UPDATE events SET ts = ts - 3600 WHERE seq = 20"],
    "the tail": [CUT],
    "the tail with the anchors of chain and session": [  # the account that is kept goes further
        CUT,
        "UPDATE heads SET last_seq = 400",
        "UPDATE chain SET count = 400, head = (SELECT hash FROM events WHERE seq = 400)",
    ],
    "a removed run": ["DELETE FROM events WHERE seq BETWEEN 50 AND 60"],
    "a spliced run": [
        f"UPDATE events SET data = (SELECT data {OTHER}), hash = (SELECT hash {OTHER}) WHERE seq BETWEEN 5 AND 14"
    ],
    "an appended run": [
        f"INSERT INTO events (session_id, agent, seq, {COLUMNS}) SELECT session_id, agent, seq + 100000, {COLUMNS} "
        "FROM events WHERE seq BETWEEN 5 AND 14"
    ],
}


def changed_account(connection: sqlite3.Connection) -> None:
    """Change what is kept beside the events, and what a start goes on from."""
    (data,) = connection.execute("SELECT data FROM guard_accounts").fetchone()
    account = msgspec.msgpack.decode(data)
    account["rolling"]["failures"] = 0
    connection.execute("UPDATE guard_accounts SET data = ?", (msgspec.msgpack.encode(account),))


@pytest.mark.parametrize("harm", [*HARMS, "the account"])
def test_guard_verify_command_finds_what_was_changed_behind_the_back_of_the_store(
    lived: Path, tmp_path: Path, harm: str
) -> None:
    path = tmp_path / "guard.db"
    shutil.copy(lived, path)
    connection = unlocked(path)
    for statement in HARMS.get(harm, ()):
        connection.execute(statement)
    if harm == "the account":
        changed_account(connection)
    connection.close()
    result = verify(path)
    assert (result.exit_code, "WRONG" in result.stdout) == (1, True), result.stdout


def test_verify_agent_finds_a_decision_that_does_not_follow_from_the_calls(lived: Path, tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    shutil.copy(lived, path)
    with Store(path) as store:
        assert verify_guards(store).verdict == "verified"
        with store.transaction() as transaction:  # by the store's own means: the chain is intact
            account = read_account(transaction, "a")
            step = Decision("ending", owner="me", why="I say so", metric="success", evidence=1e6, limit=1.0)
            account.observe(account.clock.now_s or 0.0, step)
            write_decision(transaction, "a", Entry(2e9, step), account)
        found = verify_guards(store)
        assert (found.verdict, found.chain) == ("wrong", [])
        assert found.agents[0].rollbacks[-1].derived == "no"
        assert "was due, not 'ending'" in found.agents[0].faults[0].what


@pytest.mark.parametrize(
    ("policy", "adapter", "rates"),
    [
        ("sequential", Memory, (0.9, 0.5)),
        ("sequential", Both, (0.7, 1.0)),
        pytest.param("sequential", Stuck, (0.8, 0.8), marks=pytest.mark.slow),
        ("classic", Memory, (0.7, 1.0)),
        ("classic", Stuck, (0.9, 0.5)),
    ],
)
def test_verify_agent_derives_every_step_of_real_lives(
    tmp_path: Path, policy: Any, adapter: type[Memory], rates: tuple[float, float]
) -> None:
    def act(guard: Guard, call: int) -> None:
        if call == 200:
            guard.propose("a", {"level": 7}, "mine")
        if call == 260:
            guard.rollback("a", "not that")

    trail(
        tmp_path, adapter(), lambda level: rates[level > 1], calls=400, act=act, policy=policy, canary_share=0.5,
        canary_slice=5, return_on_decay=True,
    )  # fmt: skip
    with Store(tmp_path / "guard.db") as store:
        found = verify_agent(store, "a")
    assert (found.faults, found.unknown) == ([], 0)
    assert found.steps > 0
    assert [one.why for one in found.rollbacks if one.derived == "by hand"] in (["not that"], [])


def test_verify_agent_after_retention_does_not_know_what_calls_decided(lived: Path, tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    shutil.copy(lived, path)
    with Store(path) as store:
        before = read_account(store, "a")
        assert store.prune(max_events=300) > 0
        found = verify_guards(store)
        assert (found.verdict, found.chain, found.agents[0].faults) == ("unknown", [], [])
        assert encode_account(read_account(store, "a")) == encode_account(before)
        store.prune(max_events=0)
        assert read_account(store, "a").seq == before.seq
    with Guard(store=path) as guard:  # goes on counting from the account that is kept
        guard.run(lambda: 1, agent="a")
        assert guard.traces("a")[-1].seq == before.seq + 1


def rows_of(store: Store) -> list[Row]:
    return [{"seq": seq, "at": at, "entry": entry} for seq, at, entry in read_trail(store, "a")]


def as_version_1(path: Path, removed: int) -> None:
    """Write a store anew as version 1 of the schema kept it, without some of the first calls."""
    with Store(path) as store:
        rows, ((kept, data),) = rows_of(store), store.fetch("SELECT kept, data FROM guard_accounts")
    for file in path.parent.glob("guard.db*"):
        file.unlink()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    schema.migrate(connection, 1)
    connection.execute("INSERT INTO guard_agents VALUES (1, 'a', ?, ?, 0, ?)", (rows[-1]["seq"], kept, data))
    for row in rows:
        entry = row["entry"]
        if isinstance(entry, GuardedCall):
            told = (entry.success, entry.duration_s, entry.cost, entry.index, entry.band, entry.epoch, entry.patched)
            values: tuple[object, ...] = ("call", *told, entry.task, entry.error, json.dumps(entry.arguments))
        else:
            values = (entry.kind, *(None,) * 9, msgspec.json.encode(entry).decode())
        if row["seq"] > removed or not isinstance(entry, GuardedCall):
            connection.execute(
                f"INSERT INTO guard_trail VALUES (1, ?, ?{', ?' * 11})", (row["seq"], row["at"], *values)
            )
    connection.close()


@pytest.mark.parametrize("removed", [0, 100])
def test_move_guard_trail_brings_a_store_of_version_1_into_the_chain(tmp_path: Path, removed: int) -> None:
    memory = Memory()
    agent = failing(lambda level: 0.7, memory)
    path = tmp_path / "guard.db"
    with patched(path, memory, strategy=Varies(), clock=Clock()) as guard:
        for _ in range(150):
            with suppress(Boom):
                guard.run(agent, agent="a", task="answer")
    with Store(path) as store:
        before, account = rows_of(store), read_account(store, "a")
    as_version_1(path, removed)
    with Store(path) as store:
        left = [row for row in before if row["seq"] > removed or not isinstance(row["entry"], GuardedCall)]
        assert rows_of(store) == left
        assert encode_account(read_account(store, "a")) == encode_account(account)
        found = verify_guards(store)
        expected = "verified" if not removed else "unknown"
        assert (found.verdict, found.chain) == (expected, [])
        assert store.sessions() == []  # what a guard has recorded is not a run


def test_a_guard_and_a_monitor_of_one_agent_share_a_store_and_its_chain(tmp_path: Path) -> None:
    path = tmp_path / "both.db"
    for _ in range(2):
        with Monitor(agent="a", store=path, resume=True) as monitor, Guard(store=monitor.store or path) as guard:
            monitor.goal("answer")
            guard.run(lambda: "done", agent="a")
    with Store(path) as store:
        assert [row.session for row in store.sessions()] == ["1"]  # the second monitor went on with it
        found = verify_guards(store)
        assert (found.verdict, found.agents[0].calls) == ("verified", 2)
        kinds = [row.event.kind for row in store.audit_rows()]
        assert kinds.count("guard_call") == kinds.count("goal") == 2
