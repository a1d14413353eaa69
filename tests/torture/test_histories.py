"""Random histories of many processes on one store, with everything that may happen to them, against a model.

The model: of the texts that one thread of one process has recorded, the store holds the first ones, in order, each
once; at least those that a flush has acknowledged; and all of them if the monitor was closed.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import time
import warnings
from collections import defaultdict
from functools import partial
from pathlib import Path

import pytest

from coherence import Monitor
from coherence.store.store import Store
from torture.players import AGENT, THREADS, Life, aside, audit, hold_lock

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGKILL and SIGSTOP")

SESSIONS = ("shared", "shared", "own")
ENDURED = ("kill", "stop", "lock", "restart", "audit", "nothing")
SUFFIXES = ("", "-wal", "-shm")


def texts_of(path: Path) -> dict[tuple[str, int], list[int]]:
    """Return (life, thread) -> the numbers of its texts in the file, in the order of the chain."""
    found = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Store(path) as store:
            assert store.verify() == []
            for row in store.audit_rows():
                if row.event.kind == "message":
                    name, thread, number = json.loads(row.event.data)["content"].split()
                    found[name, int(thread)].append(int(number))
    return found


class History:
    """A store, the lives on it, and what happens to them.

    Parameters
    ----------
    path : Path
        The store.
    seed : int
        For everything.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.lives: list[Life] = []
        self.removals: list[tuple[float, Path]] = []
        """Time at which the file was moved away, and its new place."""
        self._dice = random.Random(seed)
        self._helpers: list[int] = []
        self._playing = [self._begin(session) for session in SESSIONS]

    def _begin(self, session: str) -> Life:
        life = Life(self.path, session, f"life{len(self.lives)}", self._dice.getrandbits(32))
        self.lives.append(life)
        return life

    def happen(self, what: str) -> None:
        """Let one thing happen, to one of those who play."""
        place = self._dice.randrange(len(self._playing))
        life, pause = self._playing[place], self._dice.uniform(0.0, 0.2)
        life.play_on(self._dice.choice((0, 1, 5, 10)))
        if what == "stop":
            os.kill(life.pid, signal.SIGSTOP)
            time.sleep(pause)
            os.kill(life.pid, signal.SIGCONT)
        elif what in ("kill", "restart"):
            if what == "kill":
                os.kill(life.pid, signal.SIGKILL)
            else:
                life.ask_to_close()
            life.wait()
            self._playing[place] = self._begin(life.session)
        elif what == "lock":
            self._helpers.append(aside(partial(hold_lock, self.path, pause)))
        elif what == "audit":
            self._helpers.append(aside(partial(audit, self.path)))
        elif what == "remove":
            self._remove()
        elif what == "go on":
            for each in self._playing:
                each.play_on(len(each.acks) + 2 * THREADS)
        time.sleep(pause)
        for each in self._playing:
            each.listen()

    def _remove(self) -> None:
        """Move the file and its log away, while nobody can open one of them without the other."""
        for life in self._playing:
            os.kill(life.pid, signal.SIGSTOP)
        moved = self.path.with_name(f"moved{len(self.removals)}.db")
        for suffix in SUFFIXES:
            if Path(f"{self.path}{suffix}").exists():
                os.rename(f"{self.path}{suffix}", f"{moved}{suffix}")
        self.removals.append((time.monotonic(), moved))
        for life in self._playing:
            os.kill(life.pid, signal.SIGCONT)

    def end(self) -> None:
        """Close everything that is open."""
        for life in self._playing:
            life.ask_to_close()
        for life in self._playing:
            life.wait()
        ends = [os.waitpid(helper, 0)[1] for helper in self._helpers]
        assert self.removals or ends == [0] * len(ends)

    def check(self) -> None:
        """Compare the files with what was acknowledged."""
        assert [fault for life in self.lives for fault in life.faults] == []
        assert self.removals or [each for life in self.lives for each in life.refusals] == []
        moved = [texts_of(path) for _, path in self.removals]
        present = texts_of(self.path)
        for life in self.lives:
            for thread in range(THREADS):
                key = (life.name, thread)
                kept = [*(number for texts in moved for number in texts[key]), *present[key]]
                acked = [ack for ack in life.acks if ack.thread == thread]
                # one file after another may hold a text twice: what was still held was written again
                assert sorted(set(kept)) == list(range(1, len(set(kept)) + 1)), key
                assert self.removals or kept == sorted(set(kept)), key
                assert not acked or acked[-1].number <= len(set(kept)), key
                assert life.recorded is None or self.removals or len(kept) == life.recorded[thread], key
                if self.removals:
                    since = {ack.number for ack in acked if ack.began > self.removals[-1][0]}
                    assert since <= set(present[key]), key
        assert sum(len(life.acks) for life in self.lives) > 2 * len(self.lives)


def live(path: Path, seed: int, happenings: list[str]) -> None:
    history = History(path, seed)
    try:
        for what in happenings:
            history.happen(what)
    finally:
        history.end()
    history.check()


@pytest.mark.parametrize(
    ("part", "times"),
    [
        pytest.param(0, 2, marks=pytest.mark.slow),
        *(pytest.param(part, 40, marks=pytest.mark.torture) for part in range(1, 5)),
    ],
)
def test_store_keeps_every_history_of_kills_stops_locks_and_wrong_clocks(
    tmp_path: Path, seed: int, part: int, times: int
) -> None:
    dice = random.Random(seed)
    happenings = [*ENDURED] * times
    dice.shuffle(happenings)
    live(tmp_path / "s.db", dice.getrandbits(32), happenings)


@pytest.mark.parametrize(
    ("part", "length"),
    [
        pytest.param(0, 3, marks=pytest.mark.slow),
        *(pytest.param(part, 100, marks=pytest.mark.torture) for part in range(1, 3)),
    ],
)
def test_store_keeps_every_history_in_which_its_file_is_taken_away_too(
    tmp_path: Path, seed: int, part: int, length: int
) -> None:
    dice = random.Random(seed)
    happenings = [dice.choice((*ENDURED, "remove")) for _ in range(length)]
    live(tmp_path / "s.db", dice.getrandbits(32), [*happenings, "remove", "go on"])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["removed", "moved", "removed without its log"])
@pytest.mark.parametrize("durability", ["batched", "full"])
def test_monitor_notices_a_removed_file_says_so_and_goes_on_in_a_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, durability: str, how: str
) -> None:
    path = tmp_path / "s.db"
    m = Monitor(store=path, agent=AGENT, embedder=False, durability="full" if durability == "full" else "batched")
    m.message("assistant", "life0 0 1")
    m.flush()
    for suffix in SUFFIXES[:1] if how == "removed without its log" else SUFFIXES:
        if how == "moved":
            os.rename(f"{path}{suffix}", f"{path}.moved{suffix}")
        else:
            os.unlink(f"{path}{suffix}")
    m.message("assistant", "life0 0 2")
    m.flush()
    m.message("assistant", "life0 0 3")
    m.close()
    assert texts_of(path)["life0", 0][-2:] == [2, 3]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING]
