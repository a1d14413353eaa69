"""Trails that the machine itself makes, at random: all verify, and an altered rollback never does."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from property_sizes import examples

from coherence.guard import Guard
from coherence.guard.account import Account
from coherence.guard.adapter import FAILED
from coherence.guard.classic import Metrics
from coherence.guard.export import KNOWN_KINDS, plain_entry, read_entries
from coherence.guard.patch_events import (
    Accepted,
    Approved,
    Asked,
    Decision,
    Declined,
    Ending,
    GuardedCall,
    Late,
    NotApplied,
    Proposed,
    Restored,
    RestoreFailed,
    Serving,
    Withheld,
)
from coherence.guard.patches import LEASE_S
from coherence.guard.recount import Recount
from coherence.guard.requests import refusal, wanted_approval, wanted_rollback, wanted_trial
from coherence.guard.traces import Past, Trace
from guard.test_guard_processes import MANY, WORKER, start
from guard.trails import Row, exported, verified, written


def wants_trial(account: Account, why: str) -> Decision | None:
    return wanted_trial(account, {"level": 7}, why)


class Machine:
    """Calls and steps at random, by the rules of the account."""

    def __init__(self, seed: int, level: float, patched: float) -> None:
        self.drawn, self.late = random.Random(seed), random.Random(seed + 1)
        self.rates = level, patched
        self.account = Account()
        self.rows: list[Row] = []
        self.now_s = 1e9
        self.started: list[tuple[int, bool]] = []

    def write(self, happening: GuardedCall | Decision) -> None:
        self.account.observe(self.now_s, happening)
        seq = self.account.seq
        if isinstance(happening, GuardedCall):
            told = (happening.success, happening.duration_s, happening.cost, happening.index, None)
            entry: Trace | Past = Trace(seq, self.now_s, *told, happening.epoch, happening.patched, "", None, None)
        else:
            entry = Past(seq, self.now_s, happening)
        self.rows.append(json.loads(json.dumps(plain_entry("a", entry))))

    def go(self, length: int) -> None:
        for _ in range(length):
            self.call()
            self.step()

    def call(self) -> None:
        """Begin a call; now and then one that has begun earlier ends."""
        patching, drawn = self.account.patching, self.drawn
        trial = patching.trial
        patched = trial is not None and trial.serves(patching.phase, str(drawn.random()))
        self.started.append((patching.epoch, patched))
        while self.started and drawn.random() < 0.7:
            epoch, patched = self.started.pop(drawn.randrange(len(self.started)))
            success = drawn.random() < self.rates[patched]
            cost = drawn.choice((None, drawn.random()))
            self.write(
                GuardedCall(success, drawn.expovariate(1.0), cost, drawn.choice((None, drawn.random())), epoch, patched)
            )

    def step(self) -> None:
        """Take what is due, or do what has been claimed, or leave it to another process."""
        patching, drawn = self.account.patching, self.drawn
        if self.late.random() < 0.002:
            self.write(Late(owner="process 9", backup={"level": 0}, why="applied late"))
            return
        self.now_s += drawn.choice((60.0, 2 * LEASE_S, -7200.0)) if drawn.random() < 0.05 else 0.1
        owner = f"process {drawn.randrange(3)}"
        if patching.owner and drawn.random() < 0.8:
            self.write(patching.settled(self.result(), self.steady_s()))
            return
        now_s = self.steady_s()
        left = self.account.rolling.failures - self.account.trigger.failures_before
        if (due := patching.due(owner, now_s, returns=drawn.random() < 0.5)) is not None:
            self.write(due)
        elif patching.phase == "idle" and left > 1:
            self.write(Asked(owner=owner, failures=drawn.randint(1, left)))
        elif drawn.random() < 0.01:
            asks = drawn.choice((wanted_rollback, wanted_approval, wanted_approval, refusal, wants_trial))
            if (request := asks(self.account, "a person asked")) is not None:
                self.write(request)

    def steady_s(self) -> float:
        return replace(self.account.clock).read(self.now_s)

    def result(self) -> Decision:
        patching, drawn = self.account.patching, self.drawn
        if patching.phase in ("asking", "reviewing"):
            summary = self.account.rolling.over_newest()
            policy = drawn.choice(("classic", "sequential"))
            accepted = Accepted(
                owner=patching.owner,
                patch={"level": drawn.randrange(10**6)},
                backup={"level": 1},
                policy=policy,  # type: ignore[arg-type]
                share=1.0 if policy == "classic" else drawn.choice((0.1, 0.5, 1.0)),
                slice=drawn.choice((1, 3, 10)),
                both=drawn.random() < 0.3,
                before=Metrics(summary.success_rate or 0.0, summary.latency_mean_s or 0.0),
            )
            if patching.phase == "reviewing":
                return drawn.choice((accepted, Withheld(patch={}, why="no", waits=drawn.random() < 0.5)))
            waits = Proposed(patch={"level": drawn.randrange(3)}, why="no")
            return drawn.choice((accepted, accepted, accepted, Declined(why="no"), waits))
        if patching.phase == "applying":
            told = NotApplied(why="no"), Ending(owner=patching.owner, why=f"{FAILED}it does not show it")
            return drawn.choice(told) if drawn.random() < 0.2 else Serving()
        return RestoreFailed(why="disk full") if drawn.random() < 0.3 else Restored()


@examples(25)
@given(st.integers(0, 2**32), st.floats(0.3, 1.0), st.floats(0.0, 1.0), st.integers(0, 800))
def test_verifier_machine_what_the_machine_does_is_derived(seed: int, rate: float, patched: float, length: int) -> None:
    machine = Machine(seed, rate, patched)
    machine.go(length)
    found = verified(machine.rows)
    assert found.verdict == "verified", found.faults[:3]
    kinds = [row["kind"] for row in machine.rows]
    assert found.patches == kinds.count("accepted")
    ends = [row for row in machine.rows if row["kind"] == "dropped" or (row["kind"] == "ending" and not row["pause"])]
    assert [each.seq for each in found.rollbacks] == [row["seq"] for row in ends]
    for row in ends:
        if row["evidence"] is not None:
            row["evidence"] *= 1.001
            assert verified(machine.rows).verdict == "wrong"
            return


@pytest.mark.slow
@examples(25)
@given(st.integers(0, 2**32), st.floats(0.8, 1.0), st.floats(0.5, 1.0), st.integers(0, 1000), st.floats(0, 1))
def test_verifier_machine_what_is_left_after_pruning_is_never_called_wrong(
    seed: int, rate: float, patched: float, length: int, part: float
) -> None:
    machine = Machine(seed, rate, patched)
    machine.go(length)
    machine.rates = 0.3, 0.9
    machine.go(300)
    kept = part * len(machine.rows)
    found = verified([row for row in machine.rows if row["kind"] != "call" or row["seq"] > kept])
    assert found.faults == []
    assert [each.seq for each in found.rollbacks] == [each.seq for each in verified(machine.rows).rollbacks]


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 2**32), st.floats(0.5, 1.0), st.floats(0.0, 1.0))
def test_verifier_machine_the_second_count_agrees_all_along(seed: int, rate: float, patched: float) -> None:
    machine = Machine(seed, rate, patched)
    machine.go(600)
    machine.rates = 0.5, 0.95
    machine.go(600)
    account, recount = Account(), Recount()
    for entry in read_entries(written(machine.rows)):
        assert entry.happening is not None
        account.observe(entry.at, entry.happening)
        recount.observe(entry.happening)
        patching, trial = account.patching, account.patching.trial
        assert recount.epoch == patching.epoch
        assert (recount.trial is None, recount.standing is None) == (trial is None, patching.standing is None)
        if isinstance(entry.happening, Asked | Approved):
            before = patching.before
            assert (len(recount.before), sum(recount.before)) == (before.calls, before.successes)
        if trial is not None and recount.trial is not None:
            assert (recount.trial.calls, recount.trial.latency_s) == (trial.after.calls, trial.after.latency_s)
            if trial.trial.verdict.kind == "keep_looking":
                assert recount.trial.run == trial.trial.run


@pytest.mark.slow
def test_the_machine_reaches_every_kind_of_step() -> None:
    """Else the property above would say little."""
    seen: set[str] = set()
    rules: set[str] = set()
    for seed in range(40):
        machine = Machine(seed, 0.9, (0.0, 0.2, 0.95)[seed % 3])
        machine.go(500)
        machine.rates = 0.3, 0.9
        machine.go(500)
        seen.update(row["kind"] for row in machine.rows)
        rules.update(f"{each.rule} {each.metric}" for each in verified(machine.rows).rollbacks)
    assert seen == KNOWN_KINDS | {"call"}
    of_calls = {"classic success", "sequential success", "sequential failure_run", "decay None"}
    assert rules >= of_calls | {"owner gone None", "not applied None"}


@pytest.mark.slow
def test_verifier_machine_processes_on_one_store_leave_a_trail_that_verifies(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"level": 1}')
    fails = "drawn.random() < (0.1, 0.6)[files.get_config(agent_id='a')['level'] - 1]"
    harmful = MANY.replace("drawn.random() < 0.1", fails)
    workers = [start(harmful, tmp_path, str(seed), "400") for seed in range(2)]
    while len(list(tmp_path.glob("ready*"))) < 2:
        assert all(worker.poll() is None for worker in workers)
        time.sleep(0.01)
    (tmp_path / "go").touch()
    for worker in workers:
        worker.communicate(timeout=120)
        assert worker.returncode == 0
    with Guard(store=tmp_path / "guard.db") as guard:
        assert guard.store is not None
        found = verified(exported(guard.store))
    assert (found.verdict, found.calls) == ("verified", 800)
    assert [each.derived for each in found.rollbacks] == ["yes"]  # a cool-down of hours follows


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_another_process_took_over_from_a_killed_one_is_derived(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"level": 1}')
    killed = """
    class Hangs(Files):
        def rollback_config(self, *, agent_id, backup_config):
            os.kill(os.getpid(), 9)
    folder = sys.argv[1]
    guard = Guard(store=folder + "/guard.db", strategy=Proposes(), config_adapter=Hangs(folder), bounds=BOUNDS)
    while True:
        try:
            guard.run(lambda: 1 / 0, agent="a")
        except ZeroDivisionError:
            pass
    """
    worker = start(killed, tmp_path)
    worker.communicate(timeout=60)
    assert worker.returncode == -signal.SIGKILL
    namespace: dict[str, Any] = {}
    exec(WORKER, namespace)
    later = [0.0]
    with Guard(
        store=tmp_path / "guard.db", strategy=None, config_adapter=namespace["Files"](str(tmp_path)),
        clock=lambda: time.time() + later[0],
    ) as guard:  # fmt: skip
        guard.run(lambda: 1, agent="a")
        later[0] = LEASE_S + 1
        assert guard.run(lambda: 1, agent="a").rolled_back is False  # restored; the patch is held until a call succeeds
        assert guard.run(lambda: 1, agent="a").rolled_back
        guard.flush()
        assert guard.store is not None
        rows = exported(guard.store)
    assert json.loads((tmp_path / "config.json").read_text()) == {"level": 1}
    found = verified(rows)
    assert (found.verdict, [each.derived for each in found.rollbacks]) == ("verified", ["yes"])
    place = next(place for place, row in enumerate(rows) if row["kind"] == "retrying")
    early = [row | {"at": row["at"] - LEASE_S / 2} if number >= place - 1 else row for number, row in enumerate(rows)]
    assert verified(early).faults[0].what == "nothing was due, not 'retrying'"  # the lease had not ended
