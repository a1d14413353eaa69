"""``coherence experiments``: whether telling the agent something helps, pattern by pattern."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from coherence.cli.columns import print_columns
from coherence.cli.documents import print_document
from coherence.cli.target import opened, split_target
from coherence.policy.experiment import HORIZON, LEAST_PAIRS, MEASURE, Experiment, judge_pattern, policy_of
from coherence.store.measures import Measure

SECONDARY = "secondary, not for a verdict"


def show_experiments(store: Path | None, as_json: bool, horizon: str | None, measure: Measure) -> None:
    """Print the effect of each pattern's guidance at a horizon."""
    at = int(horizon) if horizon is not None else (0 if measure == "task" else HORIZON)
    primary = (at, measure) == (HORIZON, MEASURE)
    with opened(split_target(None, store)[0]) as kept:
        found = [judge_pattern(kept, pattern, horizon=at, measure=measure) for pattern in kept.patterns()]
    if as_json:
        rows = [_plain(one, at, measure, primary) for one in found]
        print_document("coherence.experiments/1", rows)
        return
    if not found:
        sys.stdout.write("no pattern has fired\n")
        return
    _print(found, primary)


def _plain(one: Experiment, horizon: int, measure: Measure, primary: bool) -> dict[str, Any]:
    pairs, judged = one.pairs, one.judgement
    return {
        "pattern": pairs.pattern,
        "horizon": horizon,
        "measure": measure,
        "primary": primary,
        "firings": pairs.firings,
        "treatments": pairs.treatments,
        "delivered": pairs.delivered,
        "pairs": judged.pairs,
        "left_out": _left_out(one),
        "effect": judged.effect,
        "low": judged.low,
        "high": judged.high,
        "steady": judged.steady,
        "e_helps": judged.e_helps if primary else None,
        "e_harms": judged.e_harms if primary else None,
        "verdict": judged.verdict if primary else None,
        "decided_at": judged.decided_at if primary else None,
        "policy": policy_of(judged.verdict) if primary else None,
    }


def _left_out(one: Experiment) -> dict[str, int]:
    pairs = one.pairs
    return {
        "undelivered": pairs.undelivered,
        "without outcome": pairs.missing,
        "half a pair": pairs.single,
        "repeated": pairs.repeated,
        "not randomised": pairs.chosen,
    }


def _print(found: list[Experiment], primary: bool) -> None:
    table = [("pattern", "firings", "delivered", "pairs", "effect", "95 % interval", "verdict")]
    for one in found:
        judged = one.judgement
        left_out = ", ".join(f"{count} {why}" for why, count in _left_out(one).items() if count)
        verdict = _verdict(one, primary) + (f"; left out: {left_out}" if left_out else "")
        table.append(
            (
                one.pairs.pattern,
                str(one.pairs.firings),
                f"{one.pairs.delivered} of {one.pairs.treatments}",
                str(judged.pairs),
                "-" if judged.effect is None else f"{judged.effect:+.3f}",
                f"{judged.low:+.3f} to {judged.high:+.3f}",
                verdict,
            )
        )
    print_columns(table)
    if primary:
        sys.stdout.write(
            "Effect: the fall of the pressure 5 actions later, told minus withheld; above 0, telling helps.\n"
        )


def _verdict(one: Experiment, primary: bool) -> str:
    judged = one.judgement
    if not primary:
        return SECONDARY
    if judged.decided_at is not None:
        steady = "" if judged.steady else ", but the effect changed since"
        return f"{judged.verdict} (after {judged.decided_at} pairs{steady})"
    few = judged.pairs < LEAST_PAIRS
    return f"no verdict yet ({judged.pairs} of {LEAST_PAIRS} pairs)" if few else "no verdict yet"
