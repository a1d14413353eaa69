"""Whether the runs that one process tells are tasks of its own, or mixed with what another one tells.

One agent's life may be told by several processes, one event each if need be. But where another one tells a goal or an
outcome in the midst of the task that is told here, there are two tasks in one run, and nobody can say whose outcome it
is: such a run teaches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from coherence.core.events import Goal, Message, Outcome, ToolCall, ToolResult
from coherence.monitor.codec import Record
from coherence.monitor.session_header import CONTINUED, began_as
from coherence.store.rows import SessionRow
from coherence.store.runs import RunRow
from coherence.store.transaction import Transaction

_OTHERS_TASK = (
    "SELECT 1 FROM events WHERE session_id = ? AND seq > ? AND seq <= ? AND kind IN ('goal', 'outcome') LIMIT 1"
)

_TASK = (Goal, Message, ToolCall, ToolResult, Outcome)


class Telling:
    """What one process has told of a session.

    Parameters
    ----------
    session : SessionRow
        The session.
    seen : int
        Number of the newest event that was in the store when this process read it.
    """

    def __init__(self, session: SessionRow, seen: int) -> None:
        self._session = session
        self._seen = seen
        self._run = 0
        """The run at the newest event that was written here, 0 = none was."""
        self._midst = False
        """Whether some of a task was told here, and not yet its outcome."""
        self._left: int | None = None
        """The run that was under way when another process went on under the next name."""
        self._shared = False
        """Whether some of it was told here."""
        self.mixed = False
        """Whether another process has told a goal or an outcome since."""

    def look(self, transaction: Transaction, last: int) -> None:
        """Look at what others have written up to event number ``last``."""
        if self._midst and last > self._seen:
            self.mixed |= bool(transaction.execute(_OTHERS_TASK, (self._session.id, self._seen, last)))

    def marked(self, rows: Sequence[RunRow], run: int) -> list[RunRow]:
        """Return rows of runs as they are to be written; ``run``: the number of the present one.

        If another process came between, all runs since then are marked.
        """
        if not self.mixed:
            return list(rows)
        marked = [msgspec.structs.replace(row, mixed=True) for row in rows]
        return [*marked, *(RunRow(number, mixed=True) for number in range(self._run or run, run + 1))]

    def wrote(self, records: Sequence[Record], last: int, run: int, *, told: bool) -> None:
        """Take in what was written here, up to event number ``last``, in the run of that number.

        ``told``: how runs stand as well. What was mixed stays so until an outcome is told here.
        """
        self._seen = last
        for record in records:
            if type(record.event) is Outcome:
                self._midst = False
            elif type(record.event) in _TASK:
                self._midst = True
        if told or (records and not self.mixed):
            self._run = run
        if told:
            self.mixed = self.mixed and self._midst

    def left_behind(
        self, transaction: Transaction, rows: Sequence[RunRow], records: Sequence[Record]
    ) -> list[RunRow] | None:
        """Return what is to be written of runs where another process goes on with the session under the next name.

        ``None`` if nobody does. Runs have their numbers there: of the one that was under way only how far its metrics
        rose is told, and whether it is told here as well.
        """
        agent, name = self._session.agent, self._session.session
        base = began_as(transaction, agent, name)
        number = 1 if base == name else int(name[len(base) + len(CONTINUED) :])
        following = f"{base}{CONTINUED}{number + 1}"
        if transaction.session(agent, following) is None:
            return None
        if self._left is None:
            self._left, self._shared = self._run, self._midst
        found = [RunRow(row.run, row.maxima) for row in rows if row.run == self._left]
        if self._shared and any(type(record.event) in _TASK for record in records):
            found.append(RunRow(self._left, mixed=True))
        return found
