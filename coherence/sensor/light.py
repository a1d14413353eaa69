"""One light: every sign through its scale to one calibrated risk; index, band and decision follow from it.

A *scale* is a table of curves, one a sign: from the sign's value to the log odds that it adds to the risk that the run
is off its course now. The curves rise or stand still, so more of a sign is never better, and what is unknown is silent.
Their sum, with the odds of a step of which nothing is known, is the risk. What a rule finds that has no curve asks for
a band, by its severity; so does policy. The band is the worse one of what the risk says and what was asked for, the
decision follows from the band, and the index is kept inside it: they cannot disagree.

References
----------
Additive log odds of independent evidence: I. J. Good, "Probability and the Weighing of Evidence", 1950. Curves and
prior: ``docs/explanation/light.md``; figures: ``docs/explanation/evaluation.md``, made by ``tests/bench/light.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from math import exp, log
from typing import NamedTuple

import msgspec

from coherence.core.decisions import KINDS, DecisionKind
from coherence.core.readings import POLICY, Band, FrozenDict, Reading
from coherence.core.scale import Curve, Scale, decode_scale

PRIOR = 0.03
"""Share of off-course steps that is expected of a run of which nothing is known."""

BANDS = (Band.GREEN, Band.YELLOW, Band.ORANGE, Band.RED)
"""From good to bad, as the kinds of decisions are."""

ANY = "any embedder"
"""Name of the scale that reads nothing an embedder has a part in."""

RULE_SIGN = "rule."
"""Prefix that makes a rule's name the name of a sign."""

JUST_INSIDE = 0.01
"""Distance by which an index is kept inside its band; a hundredth shows in two decimals."""


class Edges(NamedTuple):
    """Lowest index of each band; below ``orange`` it is red."""

    green: float = 0.85
    yellow: float = 0.60
    orange: float = 0.10


class Asked(NamedTuple):
    """Band that a rule or policy asks for."""

    by: str
    kind: DecisionKind
    policy: bool = False


class Light(msgspec.Struct, frozen=True):
    """Index, band and decision of one tick."""

    risk: float | None
    """Calibrated chance that the run is off course now, in [0, 1]; ``None`` where nothing was measured."""
    index: float | None
    """One minus the risk, kept inside the band; ``None`` = unknown."""
    band: Band
    kind: DecisionKind
    cause: str
    """The sign that adds most, or the rule or policy that asked for the band; empty where nothing does."""
    coverage: float
    """Share of the curves' weight whose sign is known, in [0, 1]."""
    pulls: FrozenDict[str, float] = FrozenDict()
    """Sign -> the log odds that it adds, largest first; those that add nothing are left out."""


def combine(
    signs: Mapping[str, float | None],
    scale: Scale,
    asked: Iterable[Asked] = (),
    *,
    edges: Sequence[float] = Edges(),
    prior: float = PRIOR,
) -> Light:
    """Make one light of everything that is known.

    Parameters
    ----------
    signs : mapping
        Sign -> value, higher = worse; ``None`` = unknown.
    scale : Scale
        What each value is worth.
    asked : iterable of Asked
        What active findings ask for.
    edges : sequence of three numbers
        Lowest index of green, yellow and orange.
    prior : float
        Share of off-course steps that is expected, in (0, 1).

    Examples
    --------
    >>> scale = Scale(name="1", embedder="", base=-3.5, curves=FrozenDict(stall=Curve((0.2, 0.6), (0.0, 4.0))))
    >>> calm, stuck = combine({"stall": 0.0}, scale), combine({"stall": 0.6}, scale)
    >>> calm.band, round(calm.index, 2), stuck.band, round(stuck.index, 2), stuck.cause
    (<Band.GREEN: 'green'>, 0.97, <Band.ORANGE: 'orange'>, 0.38, 'stall')
    >>> combine({"stall": None}, scale).band
    <Band.UNKNOWN: 'unknown'>
    >>> combine({"stall": 0.0}, scale, [Asked("budget.calls", "block", policy=True)]).cause
    'policy'
    """
    total = known = 0.0
    pulls: dict[str, float] = {}
    for name, curve in scale.curves.items():
        if name not in signs:
            continue
        most = curve.log_odds[-1]
        total += most
        value = signs[name]
        if value is None:
            continue
        known += most
        if value > curve.values[0] and (gain := curve.at(value)) > 0.0:  # most signs are silent at most ticks
            pulls[name] = gain
    ordered: FrozenDict[str, float] = FrozenDict(sorted(pulls.items(), key=lambda pull: (-pull[1], pull[0])))
    coverage = known / total if total else 0.0
    risk: float | None = None
    own = 0
    if known:
        odds = scale.base + prior_shift(prior) + sum(ordered.values())
        # exp() overflows far out; beyond 30 the risk is 0 or 1 to twelve digits
        risk = 1.0 / (1.0 + exp(-min(max(odds, -30.0), 30.0)))
        own = min(_band(1.0 - risk, edges), len(BANDS) - 2)  # red is for what names the thing to stop
    asked = [
        each._replace(kind=_least(each.kind, scale.asks[each.by])) if each.by in scale.asks else each for each in asked
    ]
    worst = max(asked, key=lambda each: (KINDS.index(each.kind), each.policy), default=None)
    level = KINDS.index(worst.kind) if worst is not None else 0
    place = max(own, level)
    if risk is None and not level:
        return Light(None, None, Band.UNKNOWN, "continue", "", 0.0)
    # yellow by the risk alone has no words of a rule to guide with
    kind: DecisionKind = KINDS[place] if place != 1 or level else "continue"
    cause = next(iter(ordered), "")
    if worst is not None and level > own:
        cause = POLICY if worst.policy else worst.by
    index = _inside(1.0 if risk is None else 1.0 - risk, place, edges)
    return Light(risk, index, BANDS[place], kind, cause, coverage, ordered)


@lru_cache(maxsize=16)  # the settings have one
def prior_shift(prior: float) -> float:
    """Return the log odds that another prior adds to those of the shipped one."""
    return log(prior / (1.0 - prior)) - log(PRIOR / (1.0 - PRIOR))


DEFAULT_CURVE = Curve((0.5, 0.8, 1.0), (0.0, 2.0, 4.0))
"""Of a metric of somebody's own, until labels have taught another: silent up to 0.5; at 1 it asks for orange alone."""


def with_own(scale: Scale, names: Iterable[str]) -> Scale:
    """Return a scale that has the default curve for metrics of somebody's own."""
    own = {name: DEFAULT_CURVE for name in names if name not in scale.curves}
    return msgspec.structs.replace(scale, curves=FrozenDict({**scale.curves, **own})) if own else scale


def asks_itself(rule: str, scale: Scale) -> bool:
    """Tell whether what a rule finds asks for a band: it has no curve, or the scale says how much it may ask for."""
    return RULE_SIGN + rule not in scale.curves or rule in scale.asks


def without(scale: Scale, rules: Iterable[str]) -> Scale:
    """Return a scale without the curves and the limits of rules that somebody has set themselves: those speak then."""
    left = {name for rule in rules for name in (rule, RULE_SIGN + rule)}
    curves = {name: curve for name, curve in scale.curves.items() if name not in left}
    asks = {name: kind for name, kind in scale.asks.items() if name not in left}
    return msgspec.structs.replace(scale, curves=FrozenDict(curves), asks=FrozenDict(asks))


def _least(one: DecisionKind, other: DecisionKind) -> DecisionKind:
    return min(one, other, key=KINDS.index)


def _band(index: float, edges: Sequence[float]) -> int:
    """Return the number of an index's band; an edge belongs to the better one."""
    return next((at for at, edge in enumerate(edges) if index >= edge), len(edges))


def _inside(index: float, place: int, edges: Sequence[float]) -> float:
    """Return the index, moved just inside its band where it lies outside."""
    limits = (1.0, *edges, 0.0)
    top, bottom = limits[place], limits[place + 1]
    if place and index >= top:
        # half of it, where a band is narrower than twice that
        return top - min(JUST_INSIDE, (top - bottom) / 2.0)
    return max(index, bottom)


def signs_of(metrics: Mapping[str, float | None], inverted: Collection[str]) -> dict[str, float | None]:
    """Return metrics as signs, higher = worse: those that are good when high are turned round, ``None`` stays.

    Examples
    --------
    >>> signs_of({"goal_drift": 0.25, "grounding": 0.75, "stall": None}, {"goal_drift"})
    {'goal_drift': 0.25, 'grounding': 0.25, 'stall': None}
    """
    return {name: value if value is None or name in inverted else 1.0 - value for name, value in metrics.items()}


def lit(reading: Reading, light: Light, scale: Scale) -> Reading:
    """Return a reading with what a light says of it."""
    return msgspec.structs.replace(
        reading,
        coherence_index=light.index,
        band=light.band,
        coverage=light.coverage,
        losses=FrozenDict(share_of_risk(light)),
        risk=light.risk,
        cause=light.cause,
        scale=scale.name,
    )


def no_better(reading: Reading, asked: Iterable[Asked], edges: Sequence[float]) -> Reading:
    """Return a reading of a classic index whose band is no better than what rules and policy ask for.

    Examples
    --------
    >>> calm = Reading(tick_seq=1, ts=0.0, metrics=FrozenDict(), coherence_index=0.9, band=Band.GREEN, coverage=1.0)
    >>> no_better(calm, [Asked("budget.calls", "block", policy=True)], (0.8, 0.6, 0.4)).short()
    '0.39 red'
    """
    worst = max(asked, key=lambda each: (KINDS.index(each.kind), each.policy), default=None)
    place = KINDS.index(worst.kind) if worst is not None else 0
    if worst is None or not place or reading.band in BANDS[place:]:
        return reading
    index = _inside(1.0 if reading.coherence_index is None else reading.coherence_index, place, edges)
    cause = POLICY if worst.policy else worst.by
    return msgspec.structs.replace(reading, coherence_index=index, band=BANDS[place], cause=cause)


def share_of_risk(light: Light) -> dict[str, float]:
    """Return sign -> its share of the risk, by the log odds that it adds; they sum to the risk."""
    total = sum(light.pulls.values())
    return {name: (light.risk or 0.0) * pull / total for name, pull in light.pulls.items()} if total else {}


@cache
def shipped_scales(height: str = "monitor") -> Mapping[str, Scale]:
    """Return the shipped scales of monitors or of sensors: fingerprint of the embedder -> scale.

    :data:`ANY` stands for every other embedder.
    """
    found: dict[str, Scale] = {}
    folder = files("coherence.sensor").joinpath("scales", height)
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if path.name.endswith(".json"):
            scale = decode_scale(path.read_bytes())
            found[scale.embedder or ANY] = scale
    return found


def scale_for(fingerprint: str | None) -> Scale:
    """Return the shipped scale of a monitor with an embedder, else the one that no embedder has a part in."""
    scales = shipped_scales()
    return scales.get(fingerprint or ANY, scales[ANY])


def monitor_scale(
    fingerprint: str | None, rules: Iterable[str], own: Iterable[str], given: Scale | None = None
) -> Scale:
    """Return the scale of a monitor before labels: without rules that somebody has set, with metrics of their own.

    Parameters
    ----------
    fingerprint : str or None
        The embedder's; ``None`` = there is none, or it has no fingerprint.
    rules, own : iterables of str
        Rules that somebody has set; metrics of their own.
    given : Scale, optional
        In place of a shipped one.

    Raises
    ------
    ValueError
        If the given scale was fitted for another embedder.
    """
    if given is not None and given.embedder not in ("", fingerprint):
        has = "the monitor has none with a fingerprint" if fingerprint is None else f"the monitor has {fingerprint!r}"
        raise ValueError(
            f"scale {given.name!r} was fitted with the embedder {given.embedder!r}, and {has}: pass that embedder, or "
            "fit a scale with yours by `coherence calibrate`"
        )
    return with_own(without(given or scale_for(fingerprint), rules), own)


def sensor_scale_for(fingerprint: str | None) -> Scale:
    """Return the shipped scale of a sensor with an embedder, else that of the shipped embedder."""
    scales = shipped_scales("sensor")
    return scales.get(fingerprint or ANY) or next(iter(scales.values()))
