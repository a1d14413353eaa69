"""``coherence label`` and ``coherence calibration``: how runs went, and what was learned from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from coherence.baseline.calibration import Calibration
    from coherence.baseline.own_scale import OwnScale
    from coherence.store.rows import SessionRow
    from coherence.store.store import Store

_STORE = click.argument("store", type=click.Path(dir_okay=False, path_type=Path))
WIDEST = 100


@click.command()
@_STORE
@click.argument("target", metavar="AGENT[/SESSION]")
@click.argument("label", type=click.Choice(["good", "bad", "none"]))
@click.option("--run", type=click.IntRange(1), help="Number of the run in the session, from 1. Default: the newest.")
def label(store: Path, target: str, label: str, run: int | None) -> None:
    """Label a run good or bad, or remove its label by none. AGENT alone means its newest session.

    A run is a task: a session holds one, and one more after each outcome. A label counts more than the outcome that
    the host has reported. The agent's later sessions learn thresholds from good runs, and the light from both.
    Exit status: 0 ok, 2 bad usage.
    """
    from coherence.cli.target import find_session, opened
    from coherence.core.events import UNCOUNTED
    from coherence.core.readings import number_of, one_line
    from coherence.monitor.session_header import began_as
    from coherence.store.runs import newest_run, write_label

    with opened(store, option=False) as kept:
        row = find_session(kept, target)
        if row.source in UNCOUNTED:
            name = one_line(f"{row.agent}/{row.session}")
            raise click.UsageError(f"{name} is of the source {row.source!r}, which counts for nothing")
        session = began_as(kept, row.agent, row.session)
        newest = newest_run(kept, row.agent, session) or 1
        if run is not None and run > newest:
            name = one_line(f"{row.agent}/{session}")
            raise click.UsageError(f"{name} has {number_of(newest, 'run')}, not {run:,}")
        number = run or newest
        with kept.transaction() as transaction:
            write_label(transaction, row.agent, session, number, None if label == "none" else label == "good")
    said = "has no label now" if label == "none" else f"is {label}"
    _write(f"run {number} of {row.agent}/{session} {said}")


@click.command()
@_STORE
@click.option("--agent", help="Show only this agent.")
@click.option("--reset", is_flag=True, help="Forget runs, labels and their effect, without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def calibration(store: Path, agent: str | None, reset: bool, as_json: bool) -> None:
    """Show the thresholds of each agent's alarms, their origin, and their validity.

    The budget of a threshold is the share of good runs that may alarm. The values are those of the agent's next
    session; the e-value is the evidence so far that a threshold does not hold. After a reset, a running session reports
    its newest run again. Exit status: 0 ok, 2 bad usage.
    """
    from coherence.cli.documents import print_document
    from coherence.cli.target import opened
    from coherence.core.readings import number_of, one_line
    from coherence.store.runs import forget_runs, run_agents

    with opened(store, option=False) as kept:
        agents = sorted({*run_agents(kept), *(row.agent for row in kept.sessions())})
        if agent is not None and agent not in agents:
            known = one_line(", ".join(agents)) or "none"
            raise click.UsageError(f"no agent is called {agent!r}; there are: {known}")
        chosen = agents if agent is None else [agent]
        if reset:
            with kept.transaction() as transaction:
                removed = {name: forget_runs(transaction, name) for name in chosen}
            if as_json:
                sys.stdout.write(json.dumps(removed, indent=2) + "\n")
            for name, count in removed.items() if not as_json else ():
                its = "its label" if count == 1 else "their labels"
                it = "it" if count == 1 else "them"
                _write(f"{name}: {number_of(count, 'run')}, {its} and what was learned from {it} are forgotten")
            return
        found = [_plain(kept, name) for name in chosen]
    if as_json:
        print_document("coherence.calibration/1", found)
    elif not found:
        _write("no agent is recorded")
    for one in found if not as_json else ():
        _print(one)


def _plain(store: Store, agent: str) -> dict[str, Any]:
    """Return how one agent stands, as JSON has it."""
    import msgspec

    from coherence.baseline.calibration import PROOF as ALARM_PROOF
    from coherence.core.events import UNCOUNTED
    from coherence.store.runs import count_runs

    rows = [row for row in store.sessions(agent=agent) if row.source not in UNCOUNTED]
    now = _calibration(store, agent, rows[-1] if rows else None)
    return {
        "agent": agent,
        "runs": count_runs(store, agent)._asdict(),
        "thresholds": [{**msgspec.to_builtins(each), "limit": ALARM_PROOF} for each in now.thresholds],
        "life": {**msgspec.to_builtins(now.life), "words": now.life.words},
        "light": msgspec.to_builtins(_own_scale(store, agent, rows[-1] if rows else None)),
    }


def _own_scale(store: Store, agent: str, row: SessionRow | None) -> OwnScale | None:
    """Return what the agent's labelled runs teach about the light; ``None`` with a classic index, or unknown."""
    from coherence.baseline.own_scale import LIGHT, learn_own_scale
    from coherence.monitor.session_header import read_beginning
    from coherence.sensor.light import monitor_scale
    from coherence.store.runs import labelled_runs

    if row is None:
        return None
    beginning = read_beginning(row)
    config, fingerprint = beginning.effective, beginning.settings.fingerprint
    if config.weights != "default":
        return None
    own = (*config.metrics, *(metric.name for metric in beginning.settings.metrics))
    runs = labelled_runs(store, agent)
    seen = {name: version for run in runs for name, version in run.maxima if not name.startswith(LIGHT)}
    return learn_own_scale(runs, monitor_scale(fingerprint, config.rules, own, config.given_scale), seen)


def _calibration(store: Store, agent: str, row: SessionRow | None) -> Calibration:
    """Return what the agent's runs teach about the metrics and with the settings of its newest session."""
    from coherence.baseline.calibration import Calibration
    from coherence.baseline.calibration_store import read_calibration
    from coherence.core.config import AlarmConfig
    from coherence.monitor.session_header import read_beginning

    config, known = AlarmConfig(), Calibration()
    if row is not None:
        try:
            beginning = read_beginning(row)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        config, known = beginning.effective.alarms, beginning.calibration
    watched = [threshold.metric for threshold in known.thresholds]
    return read_calibration(store, agent, config, known.versions, watched)


def _print(one: dict[str, Any]) -> None:
    """Print how one agent stands, no line wider than a terminal."""
    from coherence.core.readings import number_of

    runs = one["runs"]
    good = number_of(runs["good"], "good run")
    mixed = f", {runs['mixed']} told by several processes at once, which count for nothing" if runs["mixed"] else ""
    _write(f"{one['agent']}: {good}, {runs['bad']} bad, {runs['unlabelled']} without a label{mixed}")
    _write(f"goal_hijack: {one['life']['words']}", indent=2)
    for each in one["thresholds"]:
        _write(f"{each['metric']}, budget {100 * each['budget']:g} %: {each['words']}", indent=2)
        if each["value"] is not None:
            _write(
                f"{each['drift']} (e-value {each['e_value']:.1f}; {each['limit']:.0f} says that it does not)", indent=4
            )
    _print_light(one["light"])


def _print_light(light: dict[str, Any] | None) -> None:
    """Say what labelled runs have done to the light, before and after."""
    from coherence.baseline.own_scale import NEEDED
    from coherence.cli.columns import aligned

    if light is None:
        return
    if not light["shipped_loss"]:
        _write(f"light: the shipped scale; {NEEDED} good and {NEEDED} bad labelled runs teach an own one", indent=2)
        return
    use = "follows the labelled runs" if light["used"] else "the shipped scale, which the labelled runs do not improve"
    _write(f"light: {use} ({light['good']} good, {light['bad']} bad)", indent=2)
    _write(
        f"loss on held-out runs: {light['shipped_loss']:.3f} by the shipped scale, {light['own_loss']:.3f} by "
        "their own (0.693 = knows nothing)",
        indent=4,
    )
    table = [("sign", "shipped", "own")]
    table += [(name, "1", f"{weight:.2f}") for name, weight in light["weights"].items()]
    table += [(name, "-", f"{curve['log_odds'][-1]:.2f} log odds") for name, curve in light["curves"].items()]
    table += [("(no sign)", "0", f"{light['shift']:+.2f} log odds")]
    for line in aligned(table):
        sys.stdout.write(f"    {line}\n")


def _write(text: str, indent: int = 0) -> None:
    """Write a sentence in lines that fit."""
    from coherence.core.readings import one_line

    width = min(get_terminal_size().columns, WIDEST)
    lead = " " * indent
    for line in wrap(one_line(text), width, initial_indent=lead, subsequent_indent=lead + "  "):
        sys.stdout.write(line + "\n")
