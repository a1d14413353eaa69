"""``coherence label`` and ``coherence calibration``: how runs went, and what was learned from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

import click
import msgspec

from coherence.baseline.calibration import PROOF as ALARM_PROOF
from coherence.baseline.calibration import Calibration
from coherence.baseline.calibration_store import read_calibration
from coherence.baseline.own_scale import LIGHT, NEEDED, OwnScale, learn_own_scale
from coherence.cli.columns import aligned
from coherence.cli.documents import print_document
from coherence.cli.explain import label_one
from coherence.cli.target import find_session, opened, split_target
from coherence.core.config import AlarmConfig
from coherence.core.events import UNCOUNTED
from coherence.core.readings import number_of, one_line
from coherence.monitor.session_header import began_as, read_beginning
from coherence.sensor.light import monitor_scale
from coherence.store.rows import SessionRow
from coherence.store.runs import count_runs, forget_runs, labelled_runs, run_agents
from coherence.store.store import Store
from coherence.store.told import find_told
from coherence.views.changes import Label, label_session

WIDEST = 100


def label_target(what: tuple[str, ...], *, store: Path | None, run: int | None) -> None:
    """Label a run, or a firing or a refusal where neither an agent nor a session is called so."""
    *named, target, label = what if len(what) > 1 else ("", "", "")
    if len(named) > 1 or not label:
        raise click.UsageError("name a firing, a refusal, or an agent and its session, and then good, bad or none")
    if label not in ("good", "bad", "none"):
        raise click.BadParameter(f"{label!r} is not one of 'good', 'bad', 'none'.")
    if named and store is not None:
        raise click.UsageError(f"two stores are named: {named[0]} and --store {store}")
    path = Path(named[0]) if named else split_target(None, store)[0]
    with opened(path, option=not named) as kept:
        if run is None and not _names_run(kept, target) and find_told(kept, target, 1):
            label_one(kept, target, label)
        else:
            _label_run(kept, target, label, run)


def _names_run(store: Store, target: str) -> bool:
    return any(target in (row.agent, row.session, f"{row.agent}/{row.session}") for row in store.sessions())


def _label_run(kept: Store, target: str, label: str, run: int | None) -> None:
    row = find_session(kept, target)
    given: Label | None = "good" if label == "good" else "bad" if label == "bad" else None
    try:
        number = label_session(kept, row.agent, row.session, given, run=run)
    except ValueError as error:
        raise click.UsageError(one_line(str(error))) from error
    said = "has no label now" if label == "none" else f"is {label}"
    _write(f"run {number} of {row.agent}/{began_as(kept, row.agent, row.session)} {said}")


def show_calibration(store: Path, agent: str | None, reset: bool, as_json: bool) -> None:
    """Print how the agents of a store stand, or forget what was learned from their runs."""
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
    width = min(get_terminal_size().columns, WIDEST)
    lead = " " * indent
    for line in wrap(one_line(text), width, initial_indent=lead, subsequent_indent=lead + "  "):
        sys.stdout.write(line + "\n")
