"""Which events are gone: gaps in the positions, named by the gaps in the numbers of each session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from coherence.store.chain import Fault
from coherence.store.rows import AuditRow

MOST = 1000
"""Removed events named one by one."""
END = 2**63


class Names(NamedTuple):
    """A session, for people."""

    session: str | None
    agent: str | None


class _Absent(NamedTuple):
    session_id: int | str
    seq: int
    after: int
    """Position of the event before it in its session."""
    before: int
    """Position of the event after it in its session."""


class Missing:
    """What the numbers of the events seen so far say about those that were not seen.

    Parameters
    ----------
    from_start : bool
        Retention has removed nothing: every session begins with number 1.
    """

    def __init__(self, from_start: bool) -> None:
        self._from_start = from_start
        self._last: dict[int | str, tuple[int, int]] = {}
        self._absent: dict[tuple[int | str, int], _Absent] = {}
        self._names: dict[int | str, Names] = {}
        self._slots: list[tuple[int, int]] = []
        self.count = 0
        """Positions without an event."""

    def seen(self, key: int | str, row: AuditRow, genuine: bool) -> None:
        """Note an event, in the order of positions; ``genuine``: its hash vouches for its number."""
        seq = row.event.seq
        self._names.setdefault(key, Names(row.session, row.agent))
        before = self._last.get(key, (0, 0) if self._from_start else None)
        if before is None or seq == before[0] + 1:
            self._last[key] = (seq, row.id)
        elif genuine:
            self._absent.pop((key, seq), None)
            if seq > before[0]:
                self._expect(key, before[0] + 1, seq, before[1], row.id)
                self._last[key] = (seq, row.id)

    def ended(self, key: int | str, names: Names, last_seq: int) -> None:
        """Note how far a session got."""
        if key not in self._last and not self._from_start:
            return
        self._names.setdefault(key, names)
        seq, position = self._last.get(key, (0, 0))
        self._expect(key, seq + 1, last_seq + 1, position, END)

    def gap(self, first: int, last: int) -> None:
        """Note positions, both included, at which there is no event."""
        self._slots.append((first, last))
        self.count += last - first + 1

    def fill(self, position: int) -> bool:
        """Note that there is an event at a position after all; returns whether there was a gap."""
        for index, (first, last) in enumerate(self._slots):
            if first <= position <= last:
                halves = ((first, position - 1), (position + 1, last))
                self._slots[index : index + 1] = [(a, b) for a, b in halves if a <= b]
                self.count -= 1
                return True
        return False

    def named_between(self, after: int, before: int) -> list[Fault]:
        """Return the events that must have been between two neighbouring positions."""
        found = [a for a in self._absent.values() if a.after <= after and a.before >= before]
        return [self._fault(absent, None) for absent in found]

    def faults(self) -> list[Fault]:
        """Return a fault for each removed event, as well named as can be."""
        faults: list[Fault] = []
        nameless: list[int] = []
        pool = sorted(
            self._absent.values(), key=lambda a: (a.session_id if isinstance(a.session_id, int) else 0, a.seq)
        )
        for slot in self._positions():
            firsts: dict[int | str, _Absent] = {}
            for absent in pool:
                if absent.after < slot < absent.before:
                    firsts.setdefault(absent.session_id, absent)
            if len(firsts) == 1:
                (absent,) = firsts.values()
                pool.remove(absent)
                faults.append(self._fault(absent, slot))
            else:
                nameless.append(slot)
        named = [a for a in pool if any(a.after < slot < a.before for slot in nameless)]
        faults += [self._fault(absent, None) for absent in named]
        if len(nameless) > len(named):
            faults += [
                Fault(None, None, None, slot, "removed", f"the event with id {slot} was removed") for slot in nameless
            ]
        if self.count > MOST:
            faults.append(Fault(None, None, None, None, "removed", f"{self.count} events in all were removed"))
        return faults

    def _positions(self) -> Iterable[int]:
        left = MOST
        for first, last in self._slots:
            yield from range(first, min(last + 1, first + left))
            left -= min(left, last + 1 - first)

    def _expect(self, key: int | str, first: int, end: int, after: int, before: int) -> None:
        room = min(MOST, max(10 * MOST - len(self._absent), 0))
        for seq in range(first, min(end, first + room)):
            self._absent[key, seq] = _Absent(key, seq, after, before)

    def _fault(self, absent: _Absent, position: int | None) -> Fault:
        session, agent = self._names[absent.session_id]
        place = "" if position is None else f", id {position}"
        message = f"event {absent.seq} of session {session!r} (agent {agent!r}{place}) was removed"
        return Fault(session, agent, absent.seq, position, "removed", message)
