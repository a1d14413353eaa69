"""Sessions and rows that tests write, and processes that write them at once."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable

from coherence.store.rows import DecisionRow, EventRow, ReadingRow, SessionRow
from coherence.store.store import Store


def begin(store: Store, session: str = "s", agent: str = "a", source: str = "api") -> SessionRow:
    with store.transaction() as transaction:
        return transaction.add_session(
            session=session, agent=agent, parent=None, source=source, started=1.0, config='{"x": 1}'
        )


def event(seq: int, data: str = '{"n":1}', ts: float | None = None) -> EventRow:
    return EventRow(seq, 100.0 + seq if ts is None else ts, "tool_call", data)


def tick(seq: int, ts: float | None = None) -> EventRow:
    reading = ReadingRow(0.75, "yellow", 1.5, "alert", f'{{"r":{seq}}}')
    decision = DecisionRow("warn", f'{{"d":{seq}}}')
    return EventRow(seq, 100.0 + seq if ts is None else ts, "tick", '{"n":2}', reading, decision)


def append(store: Store, session: SessionRow, count: int = 1, *, data: str = '{"n":1}', ts: float | None = None) -> int:
    """Append events to a session in one transaction, each third one with a reading and a decision; return the last."""
    with store.transaction() as transaction:
        first = transaction.last_seq(session.id) + 1
        seqs = range(first, first + count)
        transaction.add_events(session, [event(seq, data, ts) if seq % 3 else tick(seq, ts) for seq in seqs])
    return seqs[-1]


def fork() -> int:
    """Fork, also where threads of other tests are still there, which Python 3.12 warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def run_at_once(*actions: Callable[[], object]) -> None:
    """Run each action in a process of its own, all from the same moment on, and see that none of them fails."""
    starts, start = os.pipe()
    children = []
    for action in actions:
        child = fork()
        if child == 0:
            status = 1
            try:
                os.close(start)
                os.read(starts, 1)  # ends when the parent, the last of all, closes the other end
                action()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        children.append(child)
    os.close(starts)
    os.close(start)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * len(children)
