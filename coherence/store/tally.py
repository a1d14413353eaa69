"""Sums of a session: counts, the newest measurement and a strip of bands, folded event by event.

No text of the agent is in it: goals and causes are named by the number of their event.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from struct import Struct
from typing import NamedTuple

import msgspec

from coherence.core.decisions import KINDS
from coherence.store.rows import DecisionRow, EventRow, ReadingRow

PARTS = 60
"""Parts of a strip, at most."""

MAX_RULES = 100
"""Rules that are told apart; others are not counted."""

LETTERS = {"green": "g", "yellow": "y", "orange": "o", "red": "r"}
"""Band -> its letter in a strip; an unknown one is ``?``."""

BANDS = {letter: band for band, letter in LETTERS.items()} | {"?": "unknown"}
"""Letter of a strip -> band."""

FROM_BEST = "?gyor"
"""Letters of a strip from the best to the worst; unknown is none of them, and stands first."""


MOST = 2**53
"""Largest sum of tokens, so that it stays a number for every reader of JSON."""


class MarkRow(NamedTuple):
    """Event that is looked for by its kind."""

    kind: str
    """``goal``, ``outcome``, ``compaction``, ``refusal``, ``unblock``, ``feedback`` or ``finding``."""
    seq: int
    name: str
    """Rule of a finding that began, or tool of a refused call."""
    ts: float


class PointRow(NamedTuple):
    """One measured tick."""

    seq: int
    ts: float
    step: int
    """Steps that were complete."""
    coherence_index: float | None
    pressure: float | None
    letter: str
    decision: str


POINT = Struct("<qdqddBB")
"""A tick as it is packed: number, time, steps, index, pressure (NaN = unknown), places of band and decision."""


def pack(point: PointRow) -> bytes:
    """Return a tick in the width of :data:`POINT`."""
    index, pressure = (nan if each is None else each for each in (point.coherence_index, point.pressure))
    band, kind = FROM_BEST.index(point.letter), KINDS.index(point.decision) if point.decision in KINDS else 0
    return POINT.pack(point.seq, point.ts, point.step, index, pressure, band, kind)


class Usage(msgspec.Struct):
    """The part of an event that is counted."""

    role: str = ""
    tool: str | None = msgspec.field(default=None, name="gen_ai.tool.name")
    about: str | None = None
    error: bool = False
    input: int | None = msgspec.field(default=None, name="gen_ai.usage.input_tokens")
    output: int | None = msgspec.field(default=None, name="gen_ai.usage.output_tokens")
    cost_usd: float | None = msgspec.field(default=None, name="coherence.cost_usd")
    score: float | None = None
    success: bool | None = None
    where: str = ""


class _Active(msgspec.Struct):
    rule: str = ""
    active: bool = False


class _Decided(msgspec.Struct):
    findings: list[_Active] = []


class _Kept(msgspec.Struct):
    decision: _Decided | None = None
    findings: list[_Active] = []


_USAGE = msgspec.json.Decoder(Usage)
_DECISION = msgspec.json.Decoder(_Kept)


def read_usage(data: str) -> Usage:
    """Return the part of an event that is counted; nothing of one that cannot be read."""
    try:
        return _USAGE.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return Usage()


def active_rules(data: str) -> list[str]:
    """Return the rules whose findings in a decision are active, each once; none of one that cannot be read."""
    try:
        kept = _DECISION.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return []
    findings = kept.findings if kept.decision is None else kept.decision.findings
    return list(dict.fromkeys(each.rule for each in findings if each.active))[:MAX_RULES]


def worse(one: str, other: str) -> str:
    """Return the worse of two letters of a strip."""
    return max(one, other, key=FROM_BEST.index)


class Tally(msgspec.Struct, omit_defaults=True):
    """Sums of a session up to an event."""

    through: int = 0
    """Number of the newest event that is counted."""
    first: int = 0
    """Number of the first one; 0 = none."""
    last_ts: float = 0.0
    """Time of the newest event that is no judgement: a person who labels a session does not make it go on."""
    events: int = 0
    steps: int = 0
    calls: int = 0
    errors: int = 0
    ticks: int = 0
    """Readings."""
    missed: int = 0
    """Measurements since the newest reading that failed, or that there was no time for."""
    tokens: int = 0
    context: int | None = None
    """Tokens that the newest model call took, both ways."""
    cost_usd: float | None = None
    goal: int = 0
    """Number of the newest goal's event."""
    request: int = 0
    """Number of the first user message; it is the goal where none is set."""
    ended: int = 0
    """Number of the newest outcome's event since the newest goal."""
    success: bool | None = None
    """``True`` if that outcome was a success; ``None`` = unknown."""
    measured: int = 0
    """Number of the newest tick with a reading."""
    decided: int = 0
    """Number of the newest decision."""
    band: str = "?"
    worst: str = "?"
    index: float | None = None
    pressure: float | None = None
    decision: str = "continue"
    width: int = 1
    """Readings of one part of the strip."""
    strip: str = ""
    spark: list[float | None] = []
    active: list[str] = []
    """Rules that are active at the newest tick."""
    rules: dict[str, int] = {}
    """Rule -> times that it became active."""
    refused: int = 0
    """Calls that were refused."""
    kinds: dict[str, int] = {}
    """Kind of decision -> readings that came to it."""
    lowest: float | None = None
    index_sum: float = 0.0
    indices: int = 0
    """Readings with an index."""
    pending: list[PointRow] = []
    """Newest ticks that are not in the table of points yet."""

    def add(self, row: EventRow) -> list[MarkRow]:
        """Count the next event; return what is looked for by its kind."""
        self.first = self.first or row.seq
        self.through, self.events = row.seq, self.events + 1
        if row.kind != "feedback":
            self.last_ts = max(self.last_ts, float(row.ts))
        marks = [] if row.kind == "tick" else self._count(row)
        if row.decision is not None:
            marks += self._decide(row, row.decision)
        if row.reading is not None:
            self._measure(row.seq, row.reading)
        return marks

    def point(self, row: EventRow) -> PointRow | None:
        """Return the tick that an event was, after it was counted; ``None`` if nothing was measured with it."""
        read = row.reading
        if read is None:
            return None
        kind = "continue" if row.decision is None else row.decision.kind
        return PointRow(row.seq, float(row.ts), self.steps, self.index, self.pressure, self.band, kind)

    def fold(self, rows: Iterable[EventRow]) -> tuple[list[PointRow], list[MarkRow]]:
        """Count the next events; return their ticks, and what is looked for by its kind."""
        points, marks = list[PointRow](), list[MarkRow]()
        for row in rows:
            marks += self.add(row)
            if (point := self.point(row)) is not None:
                points.append(point)
        return points, marks

    def _count(self, row: EventRow) -> list[MarkRow]:
        kind = row.kind
        if kind == "tool_result":
            self.steps, self.calls = self.steps + 1, self.calls + 1
            self.errors += read_usage(row.data).error
        elif kind == "message":
            role = read_usage(row.data).role
            self.steps += role == "assistant"
            if role == "user" and not self.request:
                self.request = row.seq
        elif kind == "fault":
            self.missed += read_usage(row.data).where == "measurement"
        elif kind == "usage":
            self._spend(read_usage(row.data))
        elif kind == "feedback":
            found = read_usage(row.data)
            ends = found.about == "block" and found.score is None
            return [MarkRow("unblock" if ends else "feedback", row.seq, "", row.ts)]
        elif kind in ("goal", "outcome", "compaction"):
            if kind == "goal":
                self.goal, self.ended, self.success = row.seq, 0, None
            elif kind == "outcome":
                self.ended, self.success = row.seq, read_usage(row.data).success
            return [MarkRow(kind, row.seq, "", row.ts)]
        return []

    def _spend(self, found: Usage) -> None:
        if found.input is not None or found.output is not None:
            self.context = min((found.input or 0) + (found.output or 0), MOST)
            self.tokens = min(self.tokens + self.context, MOST)
        if found.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + found.cost_usd

    def _decide(self, row: EventRow, decided: DecisionRow) -> list[MarkRow]:
        self.decided, self.decision = row.seq, decided.kind
        found = active_rules(decided.data) if '"active":true' in decided.data else []
        begun = [rule for rule in found if rule not in self.active]
        for rule in begun:
            if rule in self.rules or len(self.rules) < MAX_RULES:
                self.rules[rule] = self.rules.get(rule, 0) + 1
        if row.reading is not None:  # a refused call says nothing of what stays active
            self.active = found
            self.kinds[decided.kind] = self.kinds.get(decided.kind, 0) + 1
        marks = [MarkRow("finding", row.seq, rule, row.ts) for rule in begun]
        if decided.kind == "block":
            tool = read_usage(row.data).tool or ""
            self.refused += bool(tool)
            marks.append(MarkRow("refusal", row.seq, tool, row.ts))
        return marks

    def _measure(self, seq: int, read: ReadingRow) -> None:
        letter, index = LETTERS.get(read.band or "", "?"), _plain(read.coherence_index)
        self.missed, self.measured = 0, seq
        self.band, self.index, self.pressure = letter, index, _plain(read.pressure)
        self.worst = worse(self.worst, letter)
        if index is not None:
            self.lowest = index if self.lowest is None else min(self.lowest, index)
            self.index_sum, self.indices = self.index_sum + index, self.indices + 1
        shown = None if index is None else round(index, 3)
        if self.ticks % self.width == 0:
            if len(self.strip) == PARTS:
                self._halve()
            self.strip += letter
            self.spark.append(shown)
        else:
            self.strip = self.strip[:-1] + worse(self.strip[-1], letter)
            self.spark[-1] = lower(self.spark[-1], shown)
        self.ticks += 1

    def _halve(self) -> None:
        """Join each two parts, so that there is room for as many again."""
        self.strip = "".join(worse(*self.strip[at : at + 2]) for at in range(0, PARTS, 2))
        self.spark = [lower(*self.spark[at : at + 2]) for at in range(0, PARTS, 2)]
        self.width *= 2


def _plain(value: float | None) -> float | None:
    """Return a number as the store gives it back: numbers of other types are no JSON."""
    return None if value is None else float(value)


def lower(one: float | None, other: float | None) -> float | None:
    """Return the lower of two indices, the known one if one is unknown."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
