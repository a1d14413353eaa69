"""Processes that record on one store at once, and what may happen to them and to the file."""

from __future__ import annotations

import json
import logging
import os
import random
import select
import signal
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from store.rows import fork

import coherence.lessons.store
import coherence.monitor.lesson_recall
import coherence.monitor.stored_session  # noqa: F401 - loaded once, before the forks
from coherence import Monitor
from coherence.store.errors import StoreError
from coherence.store.store import Store

THREADS = 2
MAX_SKEW_S = 100_000.0
"""Seconds by which a process's clock is wrong at most, either way; it jumps again and again."""

AGENT = "a"


class Ack(msgspec.Struct, frozen=True, array_like=True):
    """Acknowledgement that everything of a thread up to a number is safe."""

    thread: int
    number: int
    began: float
    """Time of the monotonic clock before the flush."""


class Life:
    """One life of a process that records, seen from outside.

    Parameters
    ----------
    path : Path
        The store.
    session : str
        Name of the session that it begins or continues.
    name : str
        Name of this life, which no other has; it stands before each text.
    seed : int
        For what it does.
    """

    def __init__(self, path: Path, session: str, name: str, seed: int) -> None:
        self.session = session
        self.name = name
        self.acks: list[Ack] = []
        self.recorded: list[int] | None = None
        """Texts of each thread, once it has closed its monitor."""
        self.faults: list[str] = []
        self.refusals: list[str] = []
        """Store errors, which a strict monitor raises."""
        self._said = b""
        self._pipe, sender = os.pipe()
        ends, self._end = os.pipe()
        self.pid = fork()
        if self.pid == 0:
            try:
                os.close(self._pipe)
                _record(path, session, name, seed, sender, ends)
            finally:
                os._exit(0)
        os.close(sender)
        os.close(ends)

    def listen(self, wait_s: float = 0.0) -> bool:
        """Take in what it says; return whether it can say more."""
        while select.select([self._pipe], [], [], wait_s)[0]:
            wait_s = 0.0
            part = os.read(self._pipe, 65_536)
            if not part:
                return False
            *lines, self._said = (self._said + part).split(b"\n")
            for line in lines:
                what, more = json.loads(line)
                if what == "ack":
                    self.acks.append(msgspec.convert(more, Ack))
                elif what == "closed":
                    self.recorded = more
                elif what == "refused":
                    self.refusals.append(more)
                else:
                    self.faults.append(f"{what}: {more}")
        return True

    def play_on(self, acks: int, deadline_s: float = 20.0) -> None:
        """Let it go on until it has acknowledged so much since its beginning, however busy the machine is."""
        until = time.monotonic() + deadline_s
        while len(self.acks) < acks and self.listen(0.02) and time.monotonic() < until:
            pass

    def ask_to_close(self) -> None:
        """Ask it to close its monitor and to end."""
        with suppress(BrokenPipeError):  # it has failed, and said so
            os.write(self._end, b"x")

    def wait(self, deadline_s: float = 60.0) -> None:
        """Wait for its end, and kill it if that does not come."""
        until = time.monotonic() + deadline_s
        while self.listen(0.05):
            if time.monotonic() > until:
                self.faults.append("it did not end")
                os.kill(self.pid, signal.SIGKILL)
                until += deadline_s
        os.waitpid(self.pid, 0)
        os.close(self._pipe)
        os.close(self._end)


def _record(path: Path, session: str, name: str, seed: int, pipe: int, ends: int) -> None:
    """Record on several threads until asked to end; for the child."""

    def told(what: str, more: object) -> None:
        os.write(pipe, (json.dumps([what, more]) + "\n").encode())

    skew = [0.0]
    clock = time.time
    time.time = lambda: clock() + skew[0]
    logging.getLogger("coherence").propagate = False
    stop = threading.Event()
    counts = [0] * THREADS

    def play(m: Monitor, thread: int) -> None:
        dice = random.Random(f"{seed} {thread}")
        try:
            while not stop.is_set():
                for _ in range(dice.randint(1, 5)):
                    m.message("assistant", f"{name} {thread} {counts[thread] + 1}")
                    counts[thread] += 1
                if dice.random() < 0.1:
                    skew[0] = dice.uniform(-MAX_SKEW_S, MAX_SKEW_S)
                began = time.monotonic()
                try:
                    if dice.random() < 0.1:
                        m.decide()
                    m.flush()
                except StoreError as error:
                    told("refused", str(error))
                else:
                    told("ack", [thread, counts[thread], began])
                time.sleep(dice.uniform(0, 0.05))
        except BaseException:
            told("raised", traceback.format_exc())

    try:
        m = Monitor(store=path, agent=AGENT, session=session, embedder=False, strict=True, config={"tick": "manual"})
        threads = [threading.Thread(target=play, args=(m, number)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        select.select([ends], [], [])
        stop.set()
        for thread in threads:
            thread.join()
        m.close()
        told("closed", counts)
    except StoreError as error:
        told("refused", str(error))
    except BaseException:
        told("raised", traceback.format_exc())


def aside(action: Callable[[], object]) -> int:
    """Do something in a process of its own; return its id."""
    child = fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def hold_lock(path: Path, seconds: float) -> None:
    """Keep everybody else from writing for a while, as a backup or another program may."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=20)
    connection.execute("BEGIN EXCLUSIVE")
    time.sleep(seconds)
    connection.execute("ROLLBACK")
    connection.close()


def audit(path: Path) -> None:
    """See that the chain is whole while others write."""
    with Store(path) as store:
        assert store.verify() == []
