"""Repeated calls that get nowhere: the same calls with the same results, one by one or in cycles of up to four."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coherence.core.decisions import Appraisal, DecisionKind, Finding
from coherence.core.readings import Reading
from coherence.detect.fingerprints import ResultTrace
from coherence.policy.rules.failed_calls import COMPACTED, CallStep, KnownShape, Step, known_shape
from coherence.policy.rules.finding_builders import found, score_of, shown_tool
from coherence.state.data import Facts
from coherence.state.reducer import AgentState

PERIODS = (1, 2, 3, 4)
"""Calls in one round of a loop."""

FEWEST = {1: 3, 2: 4, 3: 6, 4: 8}
"""Calls from which repeats are a loop, by period."""

REPEATS_PER_NOISE = 4
"""So many repeats carry one unrelated call among them."""

WINDOW = 30
"""Newest calls that are looked at."""


class Loop(NamedTuple):
    """Calls that repeat up to the newest one."""

    period: int
    steps: tuple[Step, ...]
    """The repeated calls, oldest first, without unrelated ones between them."""
    identical: bool
    """True if the arguments are equal; else they differ in ids and the like only."""
    known: bool
    """True if every result has come."""
    still: bool
    """True if no number in the results moved."""
    shape: KnownShape | None
    amount: float
    """Number of times the loop went round, on the scale of a single call that repeats."""


def find_loop(steps: Sequence[Step]) -> Loop | None:
    r"""Return the clearest loop that the newest call is part of, ``None`` if there is none.

    A loop of period *p* are calls of which each equals the one *p* before it, in masked arguments and masked result.
    One unrelated call in five is passed over if it writes nothing and every result is known. A number in the results
    that moves one way is progress: the loop begins after its last move. A loop of *n* calls amounts to
    ``n / p + min(p, 3) - 1``: a long cycle that comes back is less of a chance than a call that does. Each
    shortening of the context takes one off; waiting and rate limits amount to half.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from coherence.detect.fingerprints import trace_call, trace_result
    >>> made, came = trace_call("Bash", b'{"command": "ls"}'), trace_result("a.py", error=False)
    >>> call = {"tool": "Bash", "made": made, "came": came, "duration_s": None, "compacted": False}
    >>> steps = [SimpleNamespace(seq=seq, ts=0.0, **call) for seq in range(5)]
    >>> find_loop(steps[:2]), find_loop(steps).amount
    (None, 5.0)
    """
    newest = steps[-1].made if steps else None
    if newest is not None and not newest.blank and sum(step.made.masked == newest.masked for step in steps) < 2:
        return None  # most calls were never made before
    best: Loop | None = None
    for period in PERIODS:
        if best is not None and best.amount >= _amount(len(steps), period):
            continue  # no cycle of this length could be clearer
        loop = _of_period(steps, period)
        if loop is not None and (best is None or loop.amount > best.amount):
            best = loop
    return best


def _of_period(steps: Sequence[Step], period: int) -> Loop | None:
    places = _without_progress(steps, _repeats(steps, period), period)
    if len(places) < FEWEST[period]:
        return None
    run = tuple(steps[at] for at in reversed(places))
    pairs = list(zip(run, run[period:], strict=False))
    identical = all(before.made.exact == after.made.exact for before, after in pairs)
    compactions = sum(step.compacted for step in steps[places[-1] + 1 :])
    shape = known_shape(run, period) or (COMPACTED if compactions else None)
    amount = _amount(len(run), period) - compactions
    return Loop(
        period=period,
        steps=run,
        identical=identical,
        known=all(step.came is not None for step in run[:-1]),
        still=all(_counts(before) == _counts(after) for before, after in pairs),
        shape=shape,
        amount=amount / 2 if shape is not None and shape.patient else amount,
    )


def _amount(calls: int, period: int) -> float:
    return calls / period + min(period, 3) - 1


def _repeats(steps: Sequence[Step], period: int) -> list[int]:
    """Return the places of the calls that repeat up to the newest, newest first."""
    places: list[int] = []
    results: list[ResultTrace | None] = [None] * period  # the newest known one by place in the round
    noise = 0
    for at in range(len(steps) - 1, -1, -1):
        step, turn = steps[at], len(places) % period
        result = results[turn]
        same_call = len(places) < period or step.made.masked == steps[places[-period]].made.masked
        same_call = same_call and not step.made.blank
        same_result = result is None or step.came is None or step.came.masked == result.masked
        if same_call and same_result:
            places.append(at)
            results[turn] = result or step.came
            continue
        noise += 1
        # What was written may be why the call is made again.
        silent = step.made.access == "write" or step.came is None or None in results
        if same_call or silent or noise * REPEATS_PER_NOISE > len(places):
            break
    return places


def _without_progress(steps: Sequence[Step], places: list[int], period: int) -> list[int]:
    """Return the places, newest first, since a number in the results last moved one way."""
    while True:
        signs: dict[tuple[int, int], set[bool]] = {}
        newest: dict[tuple[int, int], int] = {}
        for at, (after, before) in enumerate(zip(places, places[period:], strict=False)):
            for column, (now, then) in enumerate(zip(_counts(steps[after]), _counts(steps[before]), strict=False)):
                if now != then:
                    key = at % period, column
                    signs.setdefault(key, set()).add(now > then)
                    newest.setdefault(key, at)
        since = min((newest[key] for key, seen in signs.items() if len(seen) == 1), default=None)
        if since is None:
            return places
        places = places[: since + period]


def _counts(step: Step) -> tuple[float, ...]:
    return step.came.counts if step.came is not None else ()


LEAST = 3
"""Calls before which nothing can have come a third time."""


class RepeatedToolCallLoop:
    """The agent calls the same tools with the same arguments, and gets the same results.

    Blocks only where arguments and results are the same and no number in them moves. What is a known way of working
    (waiting, calls five seconds or more apart, paging, rate limits, reading again after a compaction) and calls whose
    results are unknown bring a warning at most.

    It asks for guidance from five repeats of one call on, for a warning from seven, for a block from nine. For longer
    cycles see :func:`find_loop`.
    """

    name = "repeated_tool_call_loop"
    steady = True
    guide, warn, block = 5.0, 7.0, 9.0
    """Repeats of one call from which it asks for guidance, a warning, a block."""

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Return the loop that the newest call is part of, active or not, ``None`` if there is none."""
        facts = state.facts
        loop = find_loop(steps_of(facts)) if len(facts.actions) + len(facts.open_calls) >= LEAST else None
        if loop is None:
            return None
        return found(
            self.name,
            max(0.0, score_of(loop.amount, self.guide)),
            self.severity(loop),
            _why(loop),
            loop.shape.advice if loop.shape else "do something else: other arguments, another tool, or ask",
            [step.seq for step in loop.steps],
        )

    def severity(self, loop: Loop) -> DecisionKind:
        """Return what a loop asks for where it is active: no more than guidance where it polls a gauge, or waits."""
        if all(step.came is not None and step.came.pending for step in loop.steps):
            return "guide"
        if loop.amount >= self.block and loop.known and loop.still and loop.shape is None:
            return "block"
        return "warn" if loop.amount >= self.warn else "guide"


def steps_of(facts: Facts) -> list[Step]:
    """Return what an agent did lately, calls without a result included, in order."""
    if not facts.open_calls:
        return list(facts.actions)
    steps: list[Step] = [*facts.actions]
    steps += [CallStep(call.seq, call.tool, call.made, call.ts) for call in facts.open_calls]
    return sorted(steps, key=lambda step: step.seq)[-WINDOW:]


def _why(loop: Loop) -> str:
    names = [shown_tool(step.tool) for step in loop.steps[-loop.period :]]
    arguments = "the same arguments" if loop.identical else "arguments that differ in ids only"
    results = "the same result" if loop.still else "a result in which numbers go back and forth"
    if not loop.known:
        results = "no result yet"
    count = len(loop.steps)
    if loop.period == 1:
        said = f"{names[0]} was called {count} times with {arguments} and {results}"
    else:
        tools = ", ".join(dict.fromkeys(names))
        said = (
            f"the same {loop.period} calls of {tools} came in turn, {count} calls, each with {arguments} and {results}"
        )
    return f"{said}; {loop.shape.name}" if loop.shape else said
