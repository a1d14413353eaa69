"""State router: a data table of six lines, and the one reader that makes a small patch of it.

A line is a score in [0, 1] of what is measured of an agent; it is yang (strong) or yin (weak). Six lines make one of 64
states. A line that is weak, or about to be, asks for its entries of the patch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from statistics import fmean, median
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.core.validation import check_text
from coherence.guard.account import LEAST_LATENCY_S
from coherence.monitor.tick_result import TickResult

LineName: TypeAlias = Literal["stability", "efficiency", "learning", "routing", "collaboration", "governance"]
"""Subject of a line, from the first (the first character of a code) to the sixth."""

Direction: TypeAlias = Literal["rising", "falling"]
"""Direction of a moving line: from yin to yang, or from yang to yin."""

Value: TypeAlias = bool | float

Measures: TypeAlias = Mapping[str, float | None]
"""Name -> value; ``None`` = unknown."""


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    terms: dict[str, tuple[float, float]]
    """Measure -> (good, bad): it scores 1 at ``good`` and beyond, 0 at ``bad`` and beyond, straight between them."""
    asks: dict[str, Value]
    """Entries of the patch while the line is weak."""


TABLE: dict[LineName, Row] = {
    "stability": Row(
        {
            "success_rate": (1.0, 0.0),
            "consecutive_failures": (0.0, 5.0),
            "error_rate": (0.0, 0.5),
            "pressure": (0.25, 0.75),  # the edges of observe and of block
            "coherence_index": (0.6, 0.2),  # yellow and better; the middle of red
        },
        {"fallback": True, "timeout_factor": 1.25, "canary_share": 0.0},
    ),
    "efficiency": Row(
        {
            "latency_ratio": (1.0, 2.0),
            "cost_ratio": (1.0, 2.0),
            "repetition": (0.3, 0.8),
            "context_exhaustion": (0.8, 0.95),  # where the rule of this name begins, and where it warns
            "cost_spiral": (0.25, 0.75),
        },
        {"serial": True, "context_share": 0.75, "canary_share": 0.05},
    ),
    "learning": Row(
        {
            "unused_output": (0.8, 1.3),  # good runs reach 1: alone it is no reason for caution
            "bash_retry": (0.25, 0.75),
            "repeated_failure_pattern": (0.25, 0.75),
            "quality_decline_no_recovery": (0.25, 0.75),
        },
        {"single_retry": True, "canary_share": 0.05},
    ),
    "routing": Row(
        {
            "goal_coherence": (0.3, 0.0),  # the usual: 24 shipped runs lie between 0.33 and 0.77 (5 to 95 %)
            "uncertainty": (0.2, 0.6),  # they lie between 0 and 0.13
            "scope_drift_warn": (0.25, 0.75),
        },
        {"pin_route": True, "canary_share": 0.05},
    ),
    "collaboration": Row(
        {"received_pressure": (0.25, 0.75), "ungrounded_answer": (0.25, 0.75), "procedural_warning": (0.25, 0.75)},
        {"serial": True, "canary_share": 0.05},
    ),
    "governance": Row(
        {
            "cost": (0.8, 1.0),  # shares of a budget: from the warning to the limit
            "token_usage": (0.8, 1.0),
            "budget": (0.8, 1.0),
            "goal_hijack": (0.2, 0.4),  # around the shipped threshold of 0.25
            "unsupported_assumption": (0.5, 1.0),
        },
        {"canary_share": 0.0},
    ),
}
"""Line -> its terms, and its entries of the patch. No measure belongs to two lines: no line follows from another.

Measures are those of a reading, the appraisal's pressure and scores of rules, as :func:`measures_of` collects them, and
what a guard counts: ``success_rate``, ``consecutive_failures``, ``latency_ratio`` and ``cost_ratio`` (now to before).
"""

CALM: dict[str, Value] = {
    "canary_share": 0.10,  # share of calls on which something new may be tried
    "fallback": False,  # use the fallback model or tool
    "timeout_factor": 1.0,  # times the configured time limit
    "serial": False,  # one call at a time, no fan-out
    "context_share": 1.0,  # share of the configured context that is filled
    "single_retry": False,  # retry a failed call once at most
    "pin_route": False,  # no choice of tools or models beyond the default ones
}
"""Entry of a patch -> its value while no line asks for caution: as the agent is configured."""

AUTO_APPLY = "auto_apply"
"""Set to false while governance is cautious: the patch waits for a person. A patch never sets it to true."""

NAMED = {
    "111111": ("qian", "canary_explore"),
    "000000": ("kun", "conserve_and_rollback_bias"),
    "100100": ("zhen", "fast_recover"),
    "010010": ("kan", "reduce_complexity"),
    "000001": ("bo", "rollback_recent_change"),
    "100000": ("fu", "gradual_restore"),
    "101010": ("jiji", "solidify"),
    "010101": ("weiji", "continue_canary"),
}
"""Code -> name and classic policy of a state. The other 56 are ``mixed`` and ``observe_and_bound``."""

KNOWN = frozenset(name for row in TABLE.values() for name in row.terms)
"""Names of all measures that count."""

YANG = 0.60
"""Score from which a line is yang."""

LOW, HIGH = 0.45, 0.75
"""Below the one a yang line is taken to fall and a yin line is too weak to stay; from the other on a yin line rises.
Both lie 0.15 from :data:`YANG`, so that noise around it moves nothing."""

WINDOW = 20
"""Calls of a window at most; so many again make the one before."""

LEAST = 5
"""Calls that each window must have for the two to be compared."""


class Line(msgspec.Struct, frozen=True):
    """One line of a state."""

    name: LineName
    score: float | None
    """In [0, 1]; ``None`` = unknown."""
    trend: float | None = None
    """Change of the score from the window before, in [-1, 1]; ``None`` = unknown."""

    @property
    def yang(self) -> bool:
        """True if it is strong. An unknown line counts as yang: what is not measured is no reason to act."""
        return self.score is None or self.score >= YANG

    @property
    def moving(self) -> Direction | None:
        """Direction of a line that will have another bit soon: the trend is carried on for one window.

        A yin line below 0.45 moves whatever its trend: the rule that acts on it is there to raise it.
        """
        if self.score is None:
            return None
        forecast = round(self.score + (self.trend or 0.0), 9)
        if self.yang:
            return "falling" if forecast < LOW else None
        return "rising" if self.score < LOW or forecast >= HIGH else None

    @property
    def cautious(self) -> bool:
        """True if its entries are asked for: it is yin, rising or not, or it is falling."""
        return not self.yang or self.moving == "falling"


class State(msgspec.Struct, frozen=True):
    """Place of an agent among the 64 states, and where it is going.

    Examples
    --------
    >>> scores, trends = [0.2, 0.7, 0.7, 0.5, 0.9, None], [None, -0.3, -0.1, 0.3, None, None]
    >>> state = State(tuple(map(Line, TABLE, scores, trends)))
    >>> state.code, state.moving, state.changed, state.name, state.policy
    ('011011', (1, 2, 4), '101111', 'mixed', 'observe_and_bound')
    """

    lines: tuple[Line, ...]

    @property
    def code(self) -> str:
        """Six bits, the first line first; 1 = yang."""
        return "".join(str(int(line.yang)) for line in self.lines)

    @property
    def name(self) -> str:
        """Name of the state, or ``mixed``."""
        return NAMED.get(self.code, ("mixed", ""))[0]

    @property
    def policy(self) -> str:
        """Name that the classic router gives to what follows from the state; the patch does not depend on it."""
        return NAMED.get(self.code, ("", "observe_and_bound"))[1]

    @property
    def moving(self) -> tuple[int, ...]:
        """Numbers of the moving lines, from 1 to 6."""
        return tuple(number for number, line in enumerate(self.lines, 1) if line.moving)

    @property
    def changed(self) -> str:
        """Code that the moving lines lead to."""
        return "".join(str(int(line.yang != bool(line.moving))) for line in self.lines)

    def patch(self) -> dict[str, Value]:
        """Return what the lines ask for: eight entries at most.

        Where lines ask for different values of an entry, the strictest holds. To be strict one line is enough; a calm
        value is given back only where every line with a say in it is known. What no known line has a say in is left
        out.

        Examples
        --------
        >>> State(tuple(map(Line, TABLE, [0.3, 0.9, 0.9, None, None, None]))).patch()
        {'canary_share': 0.0, 'fallback': True, 'timeout_factor': 1.25, 'context_share': 1.0, 'single_retry': False}
        """
        patch: dict[str, Value] = {}
        for key, calm in CALM.items():
            owners = [line for line in self.lines if key in TABLE[line.name].asks]
            asked = [TABLE[line.name].asks[key] for line in owners if line.score is not None and line.cautious]
            if asked:
                patch[key] = max(asked, key=lambda value: abs(value - calm))
            elif all(line.score is not None for line in owners):
                patch[key] = calm
        if any(line.name == "governance" and line.cautious for line in self.lines):
            patch[AUTO_APPLY] = False
        return patch


class StateRouter:
    """Strategy of a guard: six scores make one of 64 states, and a state's lines make a patch.

    It learns nothing, predicts nothing beyond a straight line, and keeps nothing between two calls: the same calls and
    measures give the same patch.

    Parameters
    ----------
    keys : collection of str, optional
        The entries of :data:`CALM` that the agent's configuration has; others are left out of a patch. Default: all.

    Raises
    ------
    TypeError, ValueError
        For keys that do not exist.

    Examples
    --------
    >>> calls = [{"success": True}] * 10 + [{"success": False}] * 10
    >>> router = StateRouter(keys=["fallback", "serial"])
    >>> router.analyze(agent_id="support", traces=calls, before_metrics={})
    {'fallback': True}
    >>> state = router.diagnose(traces=calls)
    >>> state.code, state.moving, state.lines[0].trend
    ('011111', (1,), -1.0)
    """

    def __init__(self, keys: Collection[str] | None = None) -> None:
        if isinstance(keys, str):
            raise TypeError("keys must be a list of names, not one text")
        for key in keys or ():
            if check_text("keys", key) not in CALM:
                raise ValueError(f"keys: no entry is called {key!r}; there are {', '.join(CALM)}")
        self.keys = frozenset(CALM if keys is None else keys)

    def analyze(
        self, *, agent_id: str, traces: Sequence[Any], before_metrics: Measures | None = None
    ) -> dict[str, Value] | None:
        """Return the patch of :meth:`State.patch`, or ``None`` where nothing is known that asks for one.

        Parameters
        ----------
        agent_id : str
            Agent whose calls these are; the answer does not depend on it.
        traces : sequence
            Calls, oldest first, of which the newest 40 count: mappings or objects with ``success`` (bool),
            ``duration_s``, ``cost``, ``index`` (the coherence index) and ``metrics`` (measure -> value), each of which
            may be missing. Values that are no finite numbers are unknown.
        before_metrics : mapping, optional
            Measure -> value now; goes before what the calls say. Unknown names are passed over.
        """
        patch = self.diagnose(traces=traces, before_metrics=before_metrics).patch()
        kept = {key: value for key, value in patch.items() if key in self.keys}
        if kept and AUTO_APPLY in patch:
            kept[AUTO_APPLY] = patch[AUTO_APPLY]
        return kept or None

    def diagnose(self, *, traces: Sequence[Any], before_metrics: Measures | None = None) -> State:
        """Return the state with its lines, for people and logs; the parameters are those of :meth:`analyze`.

        With fewer than ten calls all are of now, and there is no trend.
        """
        newest = list(traces[-2 * WINDOW :])
        half = len(newest) // 2 if len(newest) >= 2 * LEAST else 0
        earlier, later = _measures(newest[:half]), _measures(newest[half:])
        for ratio, field, least in (("latency_ratio", "duration_s", LEAST_LATENCY_S), ("cost_ratio", "cost", 0.0)):
            before, now = (_numbers(calls, field) for calls in (newest[:half], newest[half:]))
            if before and now and (divisor := max(median(before), least)):
                earlier[ratio], later[ratio] = 1.0, min(max(median(now), least) / divisor, 1e6)
        given = before_metrics or {}
        current = later | {
            name: float(value) for name, value in given.items() if value is not None and _is_number(value)
        }
        both = earlier.keys() & later.keys()  # only what is known in both windows is compared
        was, new = ({name: window[name] for name in both} for window in (earlier, later))
        return State(
            tuple(Line(name, _score(name, current), _change(_score(name, was), _score(name, new))) for name in TABLE)
        )


def measures_of(result: TickResult | None) -> dict[str, float | None]:
    """Return what a monitor's result says of the lines: metrics, index, pressures, scores of rules, shares of budgets.

    Parameters
    ----------
    result : TickResult, optional
        ``monitor.result``; ``None`` = nothing was measured, and all is unknown.

    Examples
    --------
    >>> from coherence.monitor.monitor import Monitor
    >>> with Monitor(goal="make the tests pass", embedder=False) as m:
    ...     for _ in range(4):
    ...         m.tool_result("ImportError", error=True, tool="Bash")
    ...     _ = m.decide()
    ...     measures = measures_of(m.result)
    >>> measures["error_rate"], measures["pressure"], measures["goal_coherence"]
    (0.4, 0.5, None)
    """
    measures: dict[str, float | None] = dict.fromkeys(sorted(KNOWN))
    if result is None:
        return measures
    for finding in result.decision.findings:
        name = "budget" if finding.rule.startswith(("budget.", "tree_budget.")) else finding.rule
        if name in measures:
            measures[name] = max(finding.score, measures[name] or 0.0)
    reading, appraisal = result.reading, result.appraisal
    if reading is not None:
        # A metric's value goes before the score of a rule of the same name.
        measures.update({name: value for name, value in reading.metrics.items() if name in measures})
        if reading.coverage > 0:
            measures["coherence_index"] = reading.coherence_index
    measures["pressure"] = appraisal.pressure
    measures["received_pressure"] = appraisal.received.pressure if appraisal.received is not None else None
    return measures


def _score(line: LineName, measures: Mapping[str, float]) -> float | None:
    """Return half the mean and half the worst of a line's known terms, in [0, 1].

    The worst counts as much as all together: five things that go well do not hide one that has failed. With one term at
    0 a line is at most 0.5 and never yang.
    """
    scores = [
        min(max((measures[name] - bad) / (good - bad), 0.0), 1.0)
        for name, (good, bad) in TABLE[line].terms.items()
        if name in measures
    ]
    return round(0.5 * sum(scores) / len(scores) + 0.5 * min(scores), 9) if scores else None


def _change(was: float | None, score: float | None) -> float | None:
    return None if was is None or score is None else round(score - was, 9)


def _measures(calls: Sequence[Any]) -> dict[str, float]:
    success = [value for call in calls if isinstance(value := _field(call, "success"), bool)]
    found = {"success_rate": [float(value) for value in success], "coherence_index": _numbers(calls, "index")}
    metrics = [value for call in calls if isinstance(value := _field(call, "metrics"), Mapping)]
    for name in KNOWN - {"success_rate", "coherence_index", "latency_ratio", "cost_ratio"}:
        found[name] = _numbers(metrics, name)
    return {name: fmean(values) for name, values in found.items() if values}


def _numbers(calls: Sequence[Any], field: str) -> list[float]:
    values = [_field(call, field) for call in calls]
    return [max(float(value), 0.0) for value in values if _is_number(value) and not isinstance(value, bool)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= 1e18 and isfinite(value)


def _field(call: Any, name: str) -> Any:
    return call.get(name) if isinstance(call, Mapping) else getattr(call, name, None)
