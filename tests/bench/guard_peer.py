"""The guard beside self-improving-loop 0.1.3, which runs in an environment of its own: the same work, in turns.

Run ``python tests/bench/guard_peer.py``. The peer's part needs ``.venv-sil`` (``make bench`` makes it); without it
nothing is shown. Stores lie in memory if there is a folder for it: the peer waits for the disk in every call, and would
be slower still on one. Both are told how long calls take where that decides.
"""

from __future__ import annotations

import json
import logging
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from guard_cost import MEMORY, Fixed, fail, fine, timed
from guard_life import Life, guarded
from guard_lives import decays
from peers.client import Peer
from showing import row, say

from coherence.guard import Guard
from coherence.guard.baseline import CallOutcome
from coherence.guard.bounds import Bound, Bounds
from coherence.guard.trigger import Override

ROOT = Path(__file__).resolve().parents[2]
SIL = ROOT / ".venv-sil" / "bin" / "python"
SCRIPT = Path(__file__).parent / "peers" / "sil.py"
STORED = {0: 100, 1_000: 30, 10_000: 20, 100_000: 3}
"""Traces that are stored: calls of the peer that are timed where it reads them all."""
CALL_US = 60.0
START_MS = 50.0
BEFORE, AFTER = 100, 300
"""Calls of a life before and after a patch."""
LIVES = 30
KILLS = 10
AGENTS = 40
PATCH = 20_000
"""Characters of a patch."""


class Given(NamedTuple):
    """A world whose next call is known."""

    outcome: CallOutcome

    def call(self, chance: random.Random) -> CallOutcome:
        """Return it."""
        return self.outcome


def our_cost(folder: Path, stored: int) -> dict[str, list[float]]:
    """Do what the peer's ``cost`` does, with as many calls of each kind; microseconds."""
    path = folder / f"{stored}.db"
    with Guard(store=path) as guard:
        for _ in range(stored // 1000):
            timed(guard, fine, 1000)
            guard.flush()
    begin = time.perf_counter()
    guard = Guard(store=path)
    timed(guard, fine, 1)
    found = {"start": [time.perf_counter() - begin]}
    with guard:
        found |= {"succeeds": timed(guard, fine, 1000), "fails": timed(guard, fail, 1000)}
    once, fixed = {"a": Override(failures=1, cooldown_h=0)}, Fixed({"level": 2})
    bounds = Bounds({"level": Bound(least=0, most=9)})
    with Guard(
        store=path, strategy=fixed, config_adapter=fixed, bounds=bounds, thresholds=once, canary_slice=10_000
    ) as guard:
        while guard.status("a").phase != "serving":
            timed(guard, fail, 1)
        found["open"] = timed(guard, fine, 200)
    return {name: [each * 1e6 for each in took] for name, took in found.items()}


def costs(peer: Peer, folder: Path) -> None:
    for stored, few in STORED.items():
        at = str(folder / str(stored))
        peer.ask(op="fill", folder=at, stored=stored)
        theirs = peer.ask(op="cost", folder=at, many=300, few=few)
        ours = our_cost(folder, stored)
        for name, told in (("succeeds", "succeeds"), ("fails", "fails"), ("open", "succeeds while a patch is open")):
            mine, other = statistics.median(ours[name]), statistics.median(theirs[name])
            row(f"a call that {told}, {stored:,} stored: ours", mine, CALL_US, " us")
            say("  the peer's, and over ours", f"{other:,.0f} us", "", f"{other / mine:,.1f}x")
        row(f"start and first call, {stored:,} stored: ours", ours["start"][0] / 1e3, START_MS, " ms")
        say("  the peer's", f"{theirs['start'][0] / 1e3:.1f} ms", "")


def our_rollbacks(lives: Sequence[Sequence[tuple[bool, float]]]) -> int:
    """Return how many lives are rolled back within their calls."""
    found = 0
    with guarded() as (guard, host):
        for number, calls in enumerate(lives):
            life = Life(guard, host, f"life {number}", random.Random(number))
            outcomes = [Given(CallOutcome(success, took_s)) for success, took_s in calls]
            for outcome in outcomes[:BEFORE]:
                host.wall_s += 5400.0
                life.call(outcome)
            life.until_patch(Given(CallOutcome(False, 1.0)), calls=0)
            for outcome in outcomes[BEFORE:]:
                life.call(outcome)
                if host.ended:
                    found += host.ended != "confirmed"
                    break
    return found


def harmless(peer: Peer, folder: Path) -> None:
    for success in (0.7, 0.9):
        chance = random.Random(1)
        lives = []
        for _ in range(LIVES):
            sigma = chance.uniform(0.3, 1.0)
            calls = BEFORE + AFTER
            lives.append([(chance.random() < success, chance.lognormvariate(1.0, sigma)) for _ in range(calls)])
        theirs = peer.ask(op="lives", folder=str(folder / f"lives{success}"), calls=lives, before=BEFORE)["calls"]
        gone = sum(each is not None for each in theirs)
        row(
            f"harmless patches rolled back within {AFTER} calls, {success}", 100 * our_rollbacks(lives) / LIVES, 5, " %"
        )
        say("  the peer's, same calls", f"{100 * gone / LIVES:.0f} %", "")


def decayed(peer: Peer, folder: Path) -> None:
    bad = 400
    calls = [(at % 10 != 9, 1.0) for at in range(BEFORE)]
    calls += [(True, 1.0)] * 400 + [(at % 2 == 0, 1.0) for at in range(bad)]
    (theirs,) = peer.ask(op="lives", folder=str(folder / "decay"), calls=[calls], before=BEFORE)["calls"]
    ours = decays(1, 1.0, None, lives=1).delays[0]
    row("400 good calls, then every second one fails: calls until told", ours, 15, "")
    say("  the peer's", f"{theirs - 400}" if theirs else f"not in {bad}", "")


def results(peer: Peer, folder: Path) -> None:
    """Return the results of successful calls while notifier, text of the task, or store make trouble."""

    def call(guard: Guard, task: str = "answer") -> bool:
        with suppress(Exception):
            return guard.run(lambda: "done", agent="a", task=task).result == "done"
        return False

    def trouble(notice: Any) -> None:
        raise ConnectionError("the chat cannot be reached")

    fixed, bounds = Fixed({"level": 2}), Bounds({"level": Bound(least=0, most=9)})
    path = folder / "results.db"
    with Guard(store=path, strategy=fixed, config_adapter=fixed, bounds=bounds, notifier=trouble) as guard:
        timed(guard, fine, 20)
        timed(guard, fail, 15)
        ours = {"notifier": call(guard), "text": call(guard, "broken \ud800 text")}
        if not any("notifier" in stage for stage in guard.errors):
            raise RuntimeError(f"the notifier was not called: {guard.errors}")
    with Guard(store=path, durability="full") as guard:
        if guard.store is not None:
            guard.store.close()
        ours["store"] = call(guard)
        with suppress(Exception):
            guard.close()
    theirs = peer.ask(op="results", folder=str(folder / "results"))
    if not theirs["nothing"]:
        raise RuntimeError("without any trouble the peer's result should come back")
    for name, told in (("notifier", "the notifier fails"), ("text", "the task is broken text"), ("store", "no store")):
        say(f"{told}: result came back, ours and the peer's", f"{ours[name]}, {theirs[name]}", "True")


def write(folder: str, agents: Sequence[str], size: int) -> dict[str, Any]:
    """Do what the peer's ``write`` does."""
    patch = {"text": "x" * size}
    host = Fixed(patch)
    bounds = Bounds({"text": Bound(choices=(patch["text"],))})
    with Guard(store=Path(folder) / "guard.db", strategy=host, config_adapter=host, bounds=bounds) as guard:
        for agent in agents:
            while guard.status(agent).phase != "serving":
                with suppress(ValueError):
                    guard.run(fail, agent=agent)
            Path(folder, "begun").touch()
    return {}


def writing(ours: bool, folder: Path, first: int, agents: int) -> subprocess.Popen[str]:
    """Start a process in which agents get patches."""
    names = [f"agent{number}" for number in range(first, first + agents)]
    request = json.dumps({"op": "write", "folder": str(folder), "agents": names, "size": PATCH})
    command = [sys.executable, __file__, "--write"] if ours else [str(SIL.absolute()), "-I", str(SCRIPT)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    process.stdin.write(request + "\n")
    process.stdin.close()
    return process


def kept(ours: bool, folder: Path) -> int:
    """Return the agents whose patch is known in a folder.

    Raises
    ------
    ValueError, sqlite3.DatabaseError
        If the state is torn.
    """
    if not ours:
        return len(json.loads((folder / "loop_state.json").read_text()).get("backups", {}))
    with sqlite3.connect(folder / "guard.db") as file:
        if file.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise ValueError("torn")
        names = [name for (name,) in file.execute("SELECT agent FROM guard_accounts")]
    file.close()
    with Guard(store=folder / "guard.db") as guard:
        return sum(guard.status(name).patch is not None for name in names)


def torn(ours: bool, folder: Path) -> int:
    """Return after how many kills the state cannot be read."""
    chance, found = random.Random(1), 0
    for number in range(KILLS):
        at = folder / f"kill-{ours}-{number}"
        at.mkdir()
        process = writing(ours, at, 0, 1000)
        while not (at / "begun").exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.2, 0.6))
        process.send_signal(signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            raise RuntimeError("it ended before it was killed")
        try:
            kept(ours, at)
        except (ValueError, sqlite3.DatabaseError, msgspec.MsgspecError):
            found += 1
    return found


def two(ours: bool, folder: Path) -> int:
    """Return how many patches are known after two processes have applied as many."""
    at = folder / f"two-{ours}"
    at.mkdir()
    for process in [writing(ours, at, AGENTS * number, AGENTS) for number in range(2)]:
        process.wait(60)
    try:
        return kept(ours, at)
    except ValueError:
        return 0


def main() -> None:
    """Print every figure."""
    if not SIL.exists():
        say("self-improving-loop, side by side", "make bench", "", "not installed")
        return
    logging.disable()
    try:
        with TemporaryDirectory(dir=MEMORY) as name, Peer(SIL, SCRIPT) as peer:
            folder = Path(name)
            say(f"the guard beside self-improving-loop {peer.ask(op='version')['version']}", "measured", "target")
            costs(peer, folder)
            harmless(peer, folder)
            decayed(peer, folder)
            results(peer, folder)
            row(f"{KILLS} kills while patches are written: torn state, ours", torn(True, folder), 0, "")
            say("  the peer's", f"{torn(False, folder)}", "")
            row(f"2 processes, {2 * AGENTS} patches: known, ours", two(True, folder), 2 * AGENTS, "", least=True)
            say("  the peer's", f"{two(False, folder)}", "")
    finally:
        logging.disable(logging.NOTSET)


if __name__ == "__main__":
    if "--write" in sys.argv:
        asked = json.loads(sys.stdin.readline())
        write(asked["folder"], asked["agents"], asked["size"])
    else:
        main()
