from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from itertools import pairwise
from pathlib import Path

import pytest

from coherence.guard import Guard
from coherence.guard.traces import encode_account, read_account
from guard.helpers import kinds

WORKER = """
import json, os, random, sys, time
from coherence.guard import Guard
from coherence.guard.bounds import Bound
from coherence.guard.bounds import Bounds

class Files:
    def __init__(self, folder):
        self.folder = folder
    def path(self):
        return os.path.join(self.folder, "config.json")
    def log(self, what):
        with open(os.path.join(self.folder, "log.txt"), "a") as file:
            file.write(what + "\\n")
    def get_config(self, *, agent_id):
        with open(self.path()) as file:
            return json.load(file)
    def write(self, config):
        new = self.path() + str(os.getpid())
        with open(new, "w") as file:
            json.dump(config, file)
        os.replace(new, self.path())
    def apply_config(self, *, agent_id, config_patch):
        self.log("apply")
        self.write({**self.get_config(agent_id=agent_id), **config_patch})
        return True
    def rollback_config(self, *, agent_id, backup_config):
        self.log("restore")
        self.write(backup_config)

class Proposes:
    def analyze(self, *, agent_id, traces, before_metrics):
        return {"level": 2}

BOUNDS = Bounds({"level": Bound(least=0, most=9)})
"""


def start(body: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER + textwrap.dedent(body), str(folder), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


MANY = """
folder, seed, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
files = Files(folder)
drawn = random.Random(seed)
with Guard(store=folder + "/guard.db", strategy=Proposes(), config_adapter=files, bounds=BOUNDS) as guard:
    def agent():
        if drawn.random() < 0.1:
            raise ValueError("no")
    open(folder + "/ready" + str(seed), "w").close()
    while not os.path.exists(folder + "/go"):
        time.sleep(0.001)
    for _ in range(calls):
        try:
            guard.run(agent, agent="a")
        except ValueError:
            pass
    print(json.dumps(guard.errors))
"""


@pytest.mark.parametrize("calls", [50, *(pytest.param(calls, marks=pytest.mark.slow) for calls in (150, 2000))])
def test_processes_count_all_calls_and_share_one_patch(tmp_path: Path, calls: int) -> None:
    (tmp_path / "config.json").write_text('{"level": 1}')
    workers = [start(MANY, tmp_path, str(seed), str(calls)) for seed in range(4)]
    while len(list(tmp_path.glob("ready*"))) < 4:
        assert all(worker.poll() is None for worker in workers)
        time.sleep(0.01)
    (tmp_path / "go").touch()
    for worker in workers:
        told, _ = worker.communicate(timeout=120)
        assert worker.returncode == 0
        assert json.loads(told) == {}
    with Guard(store=tmp_path / "guard.db") as guard:
        status, history = guard.status("a"), guard.history("a", 10_000, slices=True)
        assert guard.store is not None
        shared = read_account(guard.store, "a")
        with guard.store.transaction() as transaction:  # the trail alone gives what the processes agreed on
            transaction.execute("UPDATE guard_accounts SET kept = 0, data = NULL")
            assert encode_account(read_account(transaction, "a")) == encode_account(shared)
    assert status.calls == 4 * calls
    log = (tmp_path / "log.txt").read_text().split()
    assert all(before != after for before, after in pairwise(log))  # never applied or restored twice
    counted = kinds(history)
    assert log.count("apply") == counted.count("accepted") + counted.count("resuming")
    assert log.count("restore") == counted.count("restored")
    assert status.phase in ("serving", "paused", "idle")
    level = json.loads((tmp_path / "config.json").read_text())["level"]
    assert level == (2 if log[-1] == "apply" else 1)


FLUSHING = """
folder = sys.argv[1]
with Guard(store=folder + "/guard.db", strategy=Proposes(), config_adapter=Files(folder), bounds=BOUNDS,
           durability=sys.argv[2]) as guard:
    count = guard.status("a").calls
    print("ready", flush=True)
    while True:
        count += 1
        try:
            guard.run(lambda: 1 // (count % 3), agent="a")
        except ZeroDivisionError:
            pass
        if sys.argv[2] == "batched" and count % 7 == 0:
            guard.flush()
        if sys.argv[2] == "full" or count % 7 == 0:
            os.write(1, b"%d\\n" % count)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("durability", ["batched", pytest.param("full", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.torture)])
def test_status_a_killed_process_loses_no_acknowledged_trace_and_tears_nothing(
    tmp_path: Path, durability: str, kills: int
) -> None:
    (tmp_path / "config.json").write_text('{"level": 1}')
    acknowledged = 0
    for kill in range(kills):
        worker = start(FLUSHING, tmp_path, durability)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        time.sleep(0.05 + 0.01 * (kill % 7))
        os.kill(worker.pid, signal.SIGKILL)
        told, _ = worker.communicate()
        complete = told.split("\n")[:-1]
        acknowledged = max([acknowledged, *map(int, complete)])
        with Guard(store=tmp_path / "guard.db") as guard:
            assert guard.store is not None
            status = guard.status("a")
            assert status.calls >= acknowledged
            (counted,) = guard.store.fetch("SELECT count(*), max(seq) FROM events WHERE kind = 'guard_call'")
            assert counted[0] == status.calls
            numbers = guard.store.fetch("SELECT count(*), max(seq) FROM events")[0]
            assert numbers[0] == numbers[1]  # without gaps
            acknowledged = status.calls
    assert acknowledged > 0
