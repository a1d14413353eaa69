"""An agent's process on a disk that fails on demand: each plan that comes in is carried out in a child forked for it.

Run with ``faultfs.so`` preloaded, by :mod:`torture.faultfs`. A plan and its report are one line of JSON each.
"""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import coherence.lessons.store
import coherence.monitor.lesson_recall
import coherence.monitor.stored_session  # noqa: F401 - loaded once, before the forks
from coherence import Monitor
from coherence.monitor.monitor import Durability
from coherence.store.errors import StoreError, StoreWarning
from coherence.store.rows import EventRow
from coherence.store.store import Store

LINES = 8
"""Texts that a script records."""

DEADLINE_S = 60.0
"""Seconds after which a child is held to be wedged."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One life of an agent's process, and how the disk fails in it."""

    path: str
    script: str
    at: int = 0
    """The operation of ``classes`` at which the failing begins, from 1 on; 0 = none fails."""
    times: int = 1
    kind: int = 1
    """Way in which an operation fails: :data:`~torture.faultfs.EIO` and others."""
    classes: int = 14
    """Operations that may fail, a sum: by default all but reads."""
    crash: int = 0
    """The operation (no read) at which the power goes; 0 = it stays."""
    seed: int = 1
    durability: Durability = "full"
    strict: bool = True
    killed_after: int = -1
    """The line after whose acknowledgement the process is killed; -1 = it is not."""


class Report(msgspec.Struct, frozen=True):
    """Outcome of a plan."""

    code: int
    wedged: bool
    said: list[list[Any]]

    def all(self, what: str) -> list[Any]:
        """Return what was said of one kind."""
        return [line[1] if len(line) > 1 else True for line in self.said if line[0] == what]


class Told:
    """Report of a child, line by line into a pipe: what it said before it was killed is known."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def __call__(self, what: str, *more: object) -> None:
        os.write(self._pipe, (json.dumps([what, *more]) + "\n").encode())


class TellLog(logging.Handler):
    """Tell what is logged at a level that a user sees."""

    def __init__(self, told: Told) -> None:
        super().__init__(logging.WARNING)
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told("log", record.getMessage()[:300])


def run_store(path: str, plan: Plan, told: Told, mend: Callable[[], None]) -> None:
    """Write one transaction a line, and open the file anew in the middle."""
    store = Store(path)
    with store.transaction() as transaction:
        session = transaction.add_session(session="s", agent="a", parent=None, source="api", started=1.0, config="{}")
    for number in range(LINES):
        if number == LINES // 2:
            store.close()
            mend()
            store = Store(path)
        try:
            with store.transaction() as transaction:
                seq = transaction.last_seq(session.id) + 1
                data = json.dumps({"content": f"line {number}", "filling": "x" * 5_000})
                transaction.add_events(session, [EventRow(seq, 1.0, "message", data)])
                transaction.add_snapshot(session.id, seq, b"x" * 3_000)
        except StoreError as error:
            told("refused", number, str(error))
        else:
            told("ack", number)
    store.close()
    told("closed")


def run_monitor(path: str, plan: Plan, told: Told, mend: Callable[[], None]) -> None:
    """Tell a monitor one line after another, with a measurement of each, and a failed call."""
    full = plan.durability == "full"
    m = Monitor(store=path, agent="a", session="s", embedder=False, durability=plan.durability, strict=plan.strict)
    told("opened")
    for number in range(LINES):
        if number == LINES // 2:
            mend()
        try:
            m.message("assistant", f"line {number}")
            if number == 2:
                call = m.tool_call("Bash", {"command": "pytest"})
                m.tool_result("ImportError: no module named yaml", error=True, call=call)
            if not full and number % 2:
                m.flush()
        except StoreError as error:
            told("refused", number, str(error))
        else:
            # without strict, nobody is told of a write that failed but by the log
            if plan.strict and (full or number % 2):
                told("ack", number)
        if number == plan.killed_after:
            os.kill(os.getpid(), signal.SIGKILL)
    try:
        m.close()
    except StoreError as error:
        told("close refused", str(error))
    else:
        told("closed")


def run_continue(path: str, plan: Plan, told: Told, mend: Callable[[], None]) -> None:
    """Go on with the store of an earlier version, which is upgraded at opening."""
    with Monitor(store=path, agent="new", session="s", embedder=False, durability="full", strict=True) as m:
        for number in range(2):
            m.message("assistant", f"line {number}")
            told("ack", number)
    told("closed")


def run_fork(path: str, plan: Plan, told: Told, mend: Callable[[], None]) -> None:
    """Fork while a refused line waits in memory, and go on when the disk is mended."""
    m = Monitor(store=path, agent="a", session="s", embedder=False, durability="full", strict=True)
    ctypes.CDLL(None).faultfs_fail(1, plan.times, plan.kind, plan.classes)
    try:
        m.message("assistant", "line 0")
    except StoreError as error:
        told("refused", 0, str(error))
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    mend()
    m.message("assistant", "line 1")
    told("ack", 1)
    m.close()
    told("closed")


SCRIPTS = {"store": run_store, "monitor": run_monitor, "continue": run_continue, "fork": run_fork}


def child(plan: Plan, told: Told) -> None:
    """Carry out a plan on the disk that it asks for."""
    disk = ctypes.CDLL(None)
    log = logging.getLogger("coherence")
    log.addHandler(TellLog(told))
    log.propagate = False
    disk.faultfs_watch(plan.path.encode())
    disk.faultfs_fail(plan.at, plan.times, plan.kind, plan.classes)
    disk.faultfs_crash(plan.crash, plan.seed)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", StoreWarning)
            SCRIPTS[plan.script](plan.path, plan, told, disk.faultfs_mend)
        for each in caught:
            if issubclass(each.category, StoreWarning):
                told("moved aside", str(each.message))
    except StoreError as error:
        told("not opened", str(error), traceback.format_exc())
    except BaseException:
        told("raised", traceback.format_exc())
    disk.faultfs_counted.restype = ctypes.c_long
    disk.faultfs_crashed.restype = ctypes.c_long
    told("counted", disk.faultfs_counted(), disk.faultfs_crashed())


def carry_out(plan: Plan) -> Report:
    """Fork a child for a plan, and return what became of it."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(receiver)
        os.dup2(2, 1)  # nothing but reports goes to the driver
        try:
            child(plan, Told(sender))
        finally:
            os._exit(0)
    os.close(sender)
    said, until, wedged = b"", time.monotonic() + DEADLINE_S, False
    while True:
        ready, _, _ = select.select([receiver], [], [], max(until - time.monotonic(), 0))
        if not ready:
            wedged = True
            os.kill(pid, signal.SIGKILL)
            until += DEADLINE_S
            continue
        part = os.read(receiver, 65_536)
        if not part:
            break
        said += part
    os.close(receiver)
    _, status = os.waitpid(pid, 0)
    lines = [json.loads(line) for line in said.decode().splitlines()]
    return Report(os.waitstatus_to_exitcode(status), wedged, lines)


def main() -> None:
    """Carry out plans until there are no more."""
    for line in sys.stdin:
        plan = msgspec.json.decode(line, type=Plan)
        Path(plan.path).parent.mkdir(parents=True, exist_ok=True)
        print(msgspec.json.encode(carry_out(plan)).decode(), flush=True)


if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # children share what is loaded
    main()
