"""``coherence experiments``: whether telling the agent something helps, pattern by pattern."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from coherence.cli.options import json_option, store_option
from coherence.store.rows import HORIZONS, Measure

if TYPE_CHECKING:
    from coherence.policy.experiment import Experiment

SECONDARY = "secondary, not for a verdict"


@click.command()
@store_option
@json_option()
@click.option(
    "--horizon",
    type=click.Choice([str(horizon) for horizon in HORIZONS]),
    help="Actions after a firing; 0 = the end of the task. Default: 5, and 0 for --measure task.",
)
@click.option(
    "--measure",
    type=click.Choice(get_args(Measure)),
    default="pressure",
    show_default=True,
    help="Measure: fall of the pressure, error resolved, tool switched, task succeeded.",
)
def experiments(store: Path | None, as_json: bool, horizon: str | None, measure: Measure) -> None:
    """Show the effect of guidance on the agent, per pattern, from pairs of sent and withheld firings.

    Effects are treatment minus control; above 0 means that guidance helps. The interval stays valid however often you
    look. Only the fall of the pressure 5 actions later gives a verdict; other measures and horizons give none. Exit
    status: 0 ok, 2 bad usage.
    """
    from coherence.cli.documents import print_document
    from coherence.cli.target import opened, split_target
    from coherence.policy.experiment import HORIZON, MEASURE, judge_pattern

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
    from coherence.policy.experiment import policy_of

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
    from coherence.cli.columns import print_columns

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
    from coherence.policy.experiment import LEAST_PAIRS

    judged = one.judgement
    if not primary:
        return SECONDARY
    if judged.decided_at is not None:
        steady = "" if judged.steady else ", but the effect changed since"
        return f"{judged.verdict} (after {judged.decided_at} pairs{steady})"
    few = judged.pairs < LEAST_PAIRS
    return f"no verdict yet ({judged.pairs} of {LEAST_PAIRS} pairs)" if few else "no verdict yet"
