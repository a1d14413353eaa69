"""Plain files beside a store: each entry once, in order, whatever happens to processes, disks and files."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coherence.guard import Guard
from coherence.guard.export import export_trail
from coherence.guard.mirror import Mirror
from coherence.guard.plain_files import PlainTraces
from coherence.guard.status import Status
from coherence.guard.traces import read_account
from coherence.store.store import Store
from guard.helpers import BOUNDS, Boom, Clock, Memory, Proposes, failing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "files" / "traces.jsonl"


def numbers(path: Path, agent: str = "a") -> list[int]:
    return [row["seq"] for row in PlainTraces(path).read().rows if row["agent"] == agent]


def calls(guard: Guard, count: int, agent: str = "a") -> None:
    for _ in range(count):
        guard.run(lambda: 1, agent=agent)


def test_mirror_calls_and_decisions_are_copied_as_they_are_exported_with_the_agent(tmp_path: Path, path: Path) -> None:
    memory = Memory()
    agent = failing(lambda level: 0.5, memory)
    with Guard(
        store=tmp_path / "guard.db", plain_files=path, strategy=Proposes({"level": 2}), config_adapter=memory,
        bounds=BOUNDS, clock=Clock(1.0),
    ) as guard:  # fmt: skip
        for turn in range(300):
            with suppress(Boom):
                guard.run(agent, agent="a", task="answer")
            if turn % 50 == 0:
                calls(guard, 3, "b")
                guard.flush()
        guard.flush()
        assert guard.store is not None
        exported = {}
        for name in "ab":
            file = io.BytesIO()
            export_trail(guard.store, name, file)
            exported[name] = [{"agent": name, **json.loads(line)} for line in file.getvalue().splitlines()]
        rows = PlainTraces(path).read().rows
        assert {"call", "accepted", "serving"} <= {row["kind"] for row in rows}
        for name in "ab":
            assert [row for row in rows if row["agent"] == name] == exported[name]
        calls(guard, 1, "b")
    assert numbers(path, "b") == list(range(1, 20))  # 6 times 3 and 1; closing has copied the last


def test_mirror_what_was_there_before_is_copied_and_a_second_file_gets_all(tmp_path: Path, path: Path) -> None:
    with Guard(store=tmp_path / "guard.db") as guard:
        calls(guard, 450)  # more than two pages
    for file in (path, path.with_name("other.jsonl"), path):
        with Guard(store=tmp_path / "guard.db", plain_files=str(file)) as guard:
            guard.flush()
        assert numbers(file) == list(range(1, 451))


@pytest.mark.slow
def test_mirror_the_thread_copies_without_being_asked(tmp_path: Path, path: Path) -> None:
    with Guard(store=tmp_path / "guard.db", plain_files=path) as guard:
        calls(guard, 3)
        for _ in range(3000):
            if path.exists() and len(numbers(path)) == 3:
                break
            time.sleep(0.01)
        assert numbers(path) == [1, 2, 3]
        assert guard.errors == {}


def test_mirror_files_hold_no_secrets(tmp_path: Path, path: Path) -> None:
    key = "sk-ant-api03-" + "Ab3dE5fG7h" * 9
    with Guard(store=tmp_path / "guard.db", plain_files=path) as guard:
        guard.wrap(agent="a")(lambda key: 1)(key)
    assert numbers(path) == [1]
    assert key.encode() not in path.read_bytes()


def lived(store: Path, files: PlainTraces | None) -> tuple[Any, Status, list[Any]]:
    """Return account, status and decisions after a life in which a process ends every 100 calls."""
    memory, clock = Memory(), Clock(0.0)  # threads read it as well: only calls may move it on
    agent = failing(lambda level: {1: 0.8, 2: 0.3}[level], memory)
    for part in range(12):
        with Guard(
            store=store, plain_files=files, strategy=Proposes({"level": 2}), config_adapter=memory, bounds=BOUNDS,
            clock=clock,
        ) as guard:  # fmt: skip
            for call in range(100):
                clock.now_s += 30.0
                started, error = guard._runner.start("a", "answer"), None
                try:
                    agent()
                except Boom as raised:
                    error = raised
                guard._runner.record(started, duration_s=1.0 + call % 7, error=error)
            if files is not None:
                guard.flush()
                files.compact(1)
                if part % 2:
                    guard.prune("a", keep=0)
    with Guard(store=store) as guard:
        assert guard.store is not None
        account = msgspec.to_builtins(read_account(guard.store, "a"))
        account["patching"].pop("owner")  # a name drawn at random
        decisions = [msgspec.to_builtins(past) for past in guard.history("a", 1000, slices=True)]
        for past in decisions:
            past["decision"].pop("owner", None)
        return account, guard.status("a"), decisions


def test_mirror_metrics_and_verdicts_survive_rotation_compaction_and_pruning(tmp_path: Path, path: Path) -> None:
    files = PlainTraces(path, max_bytes=1_000, keep=1)
    account, status, decisions = lived(tmp_path / "plain.db", None)
    assert lived(tmp_path / "rotated.db", files) == (account, status, decisions)
    assert status.calls == 1200
    assert {"accepted", "ending", "restored"} <= {past["decision"]["kind"] for past in decisions}
    reading = files.read()
    assert reading.missing == reading.unreadable == 0
    assert reading.removed > 1000
    with Store(tmp_path / "rotated.db") as store:
        ((left,),) = store.fetch("SELECT count(*) FROM guard_trail WHERE kind = 'call'")
        assert left < 200


def test_mirror_a_folder_that_cannot_be_written_costs_no_call_and_is_made_up_for(tmp_path: Path, path: Path) -> None:
    path.parent.write_text("a file is in the way")
    with Guard(store=tmp_path / "guard.db", plain_files=path) as guard:
        calls(guard, 150)
        guard.flush()
        assert list(guard.errors) == ["plain files: FileExistsError"]
        assert guard.prune("a", keep=0) == 0  # what the files have not got yet stays
        path.parent.unlink()
        calls(guard, 1)
        guard.flush()
        assert numbers(path) == list(range(1, 152))
        assert guard.prune("a", keep=0) >= 100  # up to the newest account that is kept
        for file in path.parent.iterdir():
            file.unlink()
        path.parent.rmdir()
        calls(guard, 2)
    assert numbers(path) == [152, 153]  # what was there went with the folder


FULL_DISK = """
import resource, sys
from coherence.guard import Guard
from coherence.guard.plain_files import PlainTraces
folder = sys.argv[1]
files = PlainTraces(folder + "/traces.jsonl")
files.max_bytes = 10**8
with open(files.path, "w") as file:
    file.write(" " * 8_000_000 + "\\n")  # so that the limit does not touch the store
with Guard(store=folder + "/guard.db", plain_files=files) as guard:
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000_500, resource.RLIM_INFINITY))
    for _ in range(30):
        assert guard.run(lambda: 7, agent="a").result == 7
        guard.flush()
    print(sorted(guard.errors), len(files.read().rows) < 5)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print([row["seq"] for row in files.read().rows] == list(range(1, 31)), files.read().missing)
"""


def start(body: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(body), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )


@pytest.mark.skipif(os.name != "posix", reason="no such limit here")
def test_mirror_a_full_disk_costs_no_call_and_is_made_up_for(tmp_path: Path) -> None:
    worker = start(FULL_DISK, str(tmp_path))
    told, _ = worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert told.splitlines() == ["['plain files: OSError'] True", "True 0"]


def test_mirror_a_store_that_cannot_keep_how_far_the_files_go_doubles_nothing(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Guard(store=tmp_path / "guard.db", plain_files=path) as guard:
        calls(guard, 5, "a")
        calls(guard, 5, "b")
        guard.flush()
        assert guard.store is not None
        monkeypatch.setattr("coherence.guard.mirror._KEEP", "INSERT INTO nowhere VALUES (?, ?, ?)")
        for _ in range(3):
            calls(guard, 5, "a")
            calls(guard, 5, "b")
            guard.flush()
        assert guard.errors == {"plain files: StoreError": guard.errors["plain files: StoreError"]}
        monkeypatch.undo()
        calls(guard, 1, "b")
    assert numbers(path, "a") == list(range(1, 21))
    assert numbers(path, "b") == list(range(1, 22))


def test_mirror_a_new_store_in_the_place_of_an_old_one_is_copied_from_its_beginning(tmp_path: Path, path: Path) -> None:
    for _ in range(2):
        with Guard(store=tmp_path / "guard.db", plain_files=path) as guard:
            calls(guard, 30)
        for file in tmp_path.glob("guard.db*"):
            file.unlink()
    assert numbers(path) == [*range(1, 31), *range(1, 31)]


KILLED = """
import os, sys
from coherence.guard import Guard
from coherence.guard.plain_files import PlainTraces, FileTurn
folder, agents, max_bytes = sys.argv[1:]
files = PlainTraces(folder + "/files/traces.jsonl", max_bytes=int(max_bytes), keep=100)
extend = FileTurn.extend
def extend_and_end(self, plain):
    extend(self, plain)
    os.kill(os.getpid(), 9)
with Guard(store=folder + "/guard.db", plain_files=files) as guard:
    for _ in range(20):
        for agent in agents:
            guard.run(lambda: 1, agent=agent)
    FileTurn.extend = extend_and_end
    guard.flush()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_mirror_a_kill_between_file_and_store_doubles_nothing_even_with_a_torn_line(tmp_path: Path, path: Path) -> None:
    for end in (1, 2):
        worker = start(KILLED, str(tmp_path), "ab", "10000000")
        worker.communicate(timeout=60)
        assert worker.returncode == -signal.SIGKILL
        assert len(numbers(path)) == 20 * end
        data = path.read_bytes()
        path.write_bytes(data[:-30])  # as if it was killed while it wrote the last line, of "b"
    with Guard(store=tmp_path / "guard.db", plain_files=path):
        pass
    assert numbers(path, "a") == numbers(path, "b") == list(range(1, 41))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_mirror_kills_before_and_after_a_rotation_double_nothing(tmp_path: Path, path: Path) -> None:
    """The second process sets the file aside that the first has written and not told; its own rows are of "b" alone."""
    files = PlainTraces(path, max_bytes=1, keep=100)
    for agents in ("ab", "b"):
        worker = start(KILLED, str(tmp_path), agents, "1")
        worker.communicate(timeout=60)
        assert worker.returncode == -signal.SIGKILL
    with Guard(store=tmp_path / "guard.db", plain_files=files):
        pass
    assert list(path.parent.glob("*.gz"))
    found = [(row["agent"], row["seq"]) for row in files.read().rows]
    for name, count in (("a", 20), ("b", 40)):
        assert [seq for agent, seq in found if agent == name] == list(range(1, count + 1))


MANY = """
import os, sys
from coherence.guard import Guard
from coherence.guard.plain_files import PlainTraces
folder, name = sys.argv[1:]
files = PlainTraces(folder + "/files/traces.jsonl", max_bytes=3_000, keep=100_000)
with Guard(store=folder + "/guard.db", plain_files=files, durability="full") as guard:
    for count in range(1, 100_000):
        guard.run(lambda: 1, agent="ab"[count % 2], task=name)
        os.write(1, b"%d\\n" % count)
        if count % 5 == 0:
            guard.flush()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.torture)])
def test_mirror_four_processes_that_are_killed_lose_no_call_and_no_row(tmp_path: Path, path: Path, rounds: int) -> None:
    acknowledged: dict[str, int] = {}
    files = PlainTraces(path, max_bytes=3_000, keep=100_000)
    for turn in range(rounds):
        workers = {f"{turn}{side}": start(MANY, str(tmp_path), f"{turn}{side}") for side in "wxyz"}
        for worker in workers.values():
            assert worker.stdout is not None
            assert worker.stdout.readline() == "1\n"
        time.sleep(0.05 + 0.03 * turn % 0.4)
        for name, worker in workers.items():
            worker.kill()
            told, _ = worker.communicate(timeout=60)
            complete = told.split("\n")[:-1]
            acknowledged[name] = int(complete[-1]) if complete else 1
    with Guard(store=tmp_path / "guard.db", plain_files=files) as guard:
        status = {name: guard.status(name).calls for name in "ab"}
        guard.flush()
        assert guard.errors == {}
    reading = files.read()
    assert reading.removed == reading.missing == 0
    for name in "ab":
        assert [row["seq"] for row in reading.rows if row["agent"] == name] == list(range(1, status[name] + 1))
    tasks = sorted(row["task"] for row in reading.rows)
    counted = {task: len(list(rows)) for task, rows in groupby(tasks)}
    assert all(counted[name] >= count for name, count in acknowledged.items())  # what "full" has acknowledged
    assert len(list(path.parent.glob("*.gz"))) > 3


@pytest.mark.slow
def test_mirror_compaction_while_processes_copy_keeps_the_order(tmp_path: Path, path: Path) -> None:
    workers = [start(MANY, str(tmp_path), side) for side in "xy"]
    files = PlainTraces(path, max_bytes=3_000, keep=100_000)
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    for _ in range(20):
        files.compact(10)
        time.sleep(0.01)
    for worker in workers:
        worker.kill()
        worker.communicate(timeout=60)
    with Guard(store=tmp_path / "guard.db", plain_files=files) as guard:
        status = {name: guard.status(name).calls for name in "ab"}
    reading = files.read()
    assert reading.missing == 0
    for name in "ab":
        found = [row["seq"] for row in reading.rows if row["agent"] == name]
        assert found == list(range(status[name] - len(found) + 1, status[name] + 1))


def test_mirror_a_forked_child_copies_its_own_calls_and_none_of_the_parents(
    tmp_path: Path, path: Path, in_child: Any
) -> None:
    guard = Guard(store=tmp_path / "guard.db", plain_files=path)
    calls(guard, 2)

    def child() -> str:
        calls(guard, 1)
        guard.flush()
        return str(guard.errors)

    assert in_child(child) == repr("{}")
    calls(guard, 3)
    guard.close()
    assert numbers(path) == [1, 2, 3, 4, 5, 6]


def test_mirror_copying_goes_on_after_a_failure_of_the_store(tmp_path: Path, path: Path) -> None:
    with Store(tmp_path / "guard.db") as store:
        with Guard(store=store, plain_files=path) as guard:
            calls(guard, 3)
            guard.flush()
        store.close()
        Mirror(store, PlainTraces(path), guard._troubles).close()
        assert list(guard.errors) == ["plain files: StoreError"]


@pytest.mark.parametrize(("given", "error"), [(3, TypeError), ("traces.txt", ValueError)])
def test_mirror_what_are_no_plain_files_is_refused_before_anything_is_made(
    tmp_path: Path, given: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"plain_files|jsonl"):
        Guard(store=tmp_path / "guard.db", plain_files=given)
    assert list(tmp_path.iterdir()) == []


def test_mirror_archives_are_read_with_the_standard_library_alone(tmp_path: Path, path: Path) -> None:
    with Guard(store=tmp_path / "guard.db", plain_files=PlainTraces(path, max_bytes=1_000, keep=9)) as guard:
        for _ in range(8):
            calls(guard, 5)
            guard.flush()
    successes = 0
    for file in [*sorted(path.parent.glob("traces-*.jsonl.gz")), path]:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        successes += sum(json.loads(line)["trace"]["success"] for line in data.splitlines())
    assert successes == 40
