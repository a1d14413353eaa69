"""Reading the randomised firings of a pattern as pairs, in the order in which the pairs became known."""

from __future__ import annotations

from typing import get_args

import msgspec

from coherence.store.measures import HORIZONS, Measure
from coherence.store.rows import FiringResult
from coherence.store.store import Store


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of one pattern's firings, over all agents, without sessions of the source ``test``."""

    pattern: str
    differences: tuple[float, ...]
    """Outcome of the treatment minus that of the control, cut off at -1 and 1: only where the pressure rose in one and
    fell in the other by more than 1 together is anything cut, on both sides alike. Pairs are only ever appended: they
    come in the order of the event with which the last thing about them (both outcomes, delivery) became known."""
    firings: int
    treatments: int
    delivered: int
    """Treatments that are confirmed to have reached the agent."""
    chosen: int
    """Firings whose arm was not drawn; they are part of no pair."""
    undelivered: int
    """Pairs left out because delivery was not confirmed."""
    missing: int
    """Pairs left out because one of the outcomes is unknown (yet)."""
    single: int
    """Pairs whose other firing has not happened."""
    repeated: int
    """Firings left out because their agent had one of the same pair and arm already. Two sessions at once draw the same
    coins, so these are not independent of the first."""


def read_pairs(store: Store, pattern: str, *, horizon: int = 5, measure: Measure = "pressure") -> Pairs:
    """Return the differences of a pattern's complete pairs, and how many others there are and why.

    A pair counts if its treatment is confirmed to have reached the agent and both outcomes are known.

    Parameters
    ----------
    store : Store
        Where the firings are.
    pattern : str
        The pattern's name.
    horizon : {0, 1, 5, 10}
        Actions after the firing; 0 = the end of the task.
    measure : {"pressure", "error", "switch", "task"}
        Which outcome.

    Raises
    ------
    ValueError
        There is no such horizon or measure.
    """
    if horizon not in HORIZONS:
        raise ValueError(f"horizon must be one of {HORIZONS}, not {horizon!r}")
    if measure not in get_args(Measure):
        raise ValueError(f"measure must be one of {get_args(Measure)}, not {measure!r}")
    found = store.firing_results(pattern, horizon)
    pairs: dict[tuple[str, int], dict[str, FiringResult]] = {}
    repeated = 0
    for firing in found:
        if firing.pair is None:
            continue
        pair = pairs.setdefault((firing.agent, firing.pair), {})
        repeated += firing.arm in pair
        pair.setdefault(firing.arm, firing)
    complete: list[tuple[int, int, float]] = []
    single = undelivered = missing = 0
    for pair in pairs.values():
        if len(pair) < 2:
            single += 1
            continue
        treatment, control = pair["treatment"], pair["control"]
        told, untold = _outcome(treatment, measure), _outcome(control, measure)
        late = treatment.outcome_id is not None and (treatment.delivered_id or 0) > treatment.outcome_id
        if treatment.delivered_id is None or late:  # what is told after the outcome cannot have caused it
            undelivered += 1
        elif told is None or untold is None:
            missing += 1
        else:
            known = max(treatment.delivered_id, treatment.outcome_id or 0, control.outcome_id or 0)
            complete.append((known, treatment.event_id, min(max(told - untold, -1.0), 1.0)))
    return Pairs(
        pattern=pattern,
        differences=tuple(difference for _, _, difference in sorted(complete)),
        firings=len(found),
        treatments=sum(firing.arm == "treatment" for firing in found),
        delivered=sum(firing.delivered_id is not None for firing in found),
        chosen=sum(firing.pair is None for firing in found),
        undelivered=undelivered,
        missing=missing,
        single=single,
        repeated=repeated,
    )


def _outcome(firing: FiringResult, measure: Measure) -> float | None:
    values = {
        "pressure": firing.pressure_change,
        "error": firing.error_resolved,
        "switch": firing.tool_switched,
        "task": firing.task_success,
    }
    return values[measure]
