"""Commands on a store, and their options. What they do is in the other files of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from coherence.cli.options import FILES, TARGET, config_option, file_option, json_option, store_option
from coherence.store.measures import HORIZONS, Measure


@click.command()
@store_option
@json_option()
def sessions(store: Path | None, as_json: bool) -> None:
    """List the recorded sessions: events, newest index, pressure and decision."""
    from coherence.cli.logs import list_sessions

    list_sessions(store, as_json=as_json)


@click.command()
@TARGET
@store_option
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Number of newest events per session."
)
@click.option("--kind", help="Show only events of this kind, such as tool_result or fault.")
@json_option()
def log(target: str | None, **options: Any) -> None:
    """Print recorded events, one per line, with the measurements and decisions."""
    from coherence.cli.logs import print_log

    print_log(target, **options)


@click.command()
@click.argument("id", required=False)
@store_option
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Number of newest ones listed.")
@json_option()
def explain(id: str | None, store: Path | None, limit: int, as_json: bool) -> None:
    """Say all that is known of one firing of guidance or one refusal; without ID, list the newest ones.

    ID is an id, the beginning of one (of the part behind the last dash, too), or last. Told are the rule and its
    threshold, the events that it saw, what the agent did then, and labels; of a firing the words, whether they reached
    the agent, and what came of it; of a refusal the call, and whether it was overridden. Exit status: 0 ok, 2 bad
    usage.
    """
    from coherence.cli.explain import explain_one, list_newest

    if id is None:
        list_newest(store, limit=limit, as_json=as_json)
    else:
        explain_one(id, store=store, as_json=as_json)


@click.command()
@click.argument("session", metavar="[FILE|SESSION]", required=False)
@store_option
@file_option("--output", "The file that is written. Default: the standard output.", short="-o")
@click.option(
    "--parquet",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write events.parquet and readings.parquet into this folder instead, of one session or of the whole store.",
)
def export(session: str | None, **options: Any) -> None:
    """Write one session with all its agents as JSON lines, to hand to somebody else, or tables for pandas.

    SESSION is the name of a session, of whichever agents; AGENT/SESSION means this agent's alone. The first line says
    what follows; the others are those of coherence log --json, in the order of time. coherence score reads the file
    again. With --parquet, FILE may be a store, all of which is written; this needs the extra parquet. Secrets were
    redacted when they were recorded. Exit status: 0 ok, 2 bad usage.
    """
    from coherence.cli.export import export_session

    export_session(session, **options)


@click.command()
@TARGET
@store_option
@click.option("--check", is_flag=True, help="Compute everything again and compare bit for bit.")
@click.option("--at", metavar="N", type=click.IntRange(1), help="Show the agent as it was after event N.")
@click.option("--until-fire", is_flag=True, help="Show the first decision that is more than to continue.")
@config_option("TOML file: show which decisions would have been different.")
@json_option()
def replay(target: str | None, **options: Any) -> None:
    """Compute a recorded session again, from its recording alone.

    FILE is a store; AGENT means its newest session. Exit status: 0 ok, 1 a replay differs from the recording, 2 bad
    usage.
    """
    from coherence.cli.replay import replay_sessions

    raise SystemExit(replay_sessions(target, **options))


@click.group()
def audit() -> None:
    """Check and export the audit trail."""


@audit.command("verify")
@FILES
@json_option()
def audit_verify(paths: tuple[Path, ...], as_json: bool) -> None:
    """Check the hash chain of a store, or of exported JSON lines; name the first event that breaks it, and why.

    Exit status: 0 intact, 1 not, 2 bad usage.
    """
    from coherence.cli.logs import verify_audit

    raise SystemExit(verify_audit(paths, as_json=as_json))


@audit.command("export")
@click.argument("path", metavar="STORE", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def audit_export(path: Path, folder: Path) -> None:
    """Append what is new to FOLDER/audit.jsonl; gzip or move that file as you like."""
    from coherence.cli.logs import export_audit

    export_audit(path, folder)


@click.command()
@click.option("--agent", metavar="NAME", help="Whose content is wiped. Default: all agents of the session.")
@click.option("--session", metavar="S", help="Only this session, and those that went on from it. Default: all.")
@store_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(**options: Any) -> None:
    """Wipe what a store holds of an agent, a session or both, lessons too, so that nothing of it is left in the file.

    End the agent's monitors and guards first. With --session alone, a daemon that runs ends the session by itself, and
    what waits for it in its state folder goes too. Events stay in the hash chain without their content, and `audit
    verify` says how many. Names, times and copies elsewhere are not touched. Exit status: 0 ok, 1 the daemon does not
    answer, 2 bad usage.
    """
    from coherence.cli.purge import purge_content

    purge_content(**options)


STORE = click.argument("store", type=click.Path(dir_okay=False, path_type=Path))


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
def experiments(**options: Any) -> None:
    """Show the effect of guidance on the agent, per pattern, from pairs of sent and withheld firings.

    Effects are treatment minus control; above 0 means that guidance helps. The interval stays valid however often you
    look. Only the fall of the pressure 5 actions later gives a verdict; other measures and horizons give none. Exit
    status: 0 ok, 2 bad usage.
    """
    from coherence.cli.experiments import show_experiments

    show_experiments(**options)


@click.command()
@click.argument("what", metavar="[STORE] ID|AGENT[/SESSION] good|bad|none", nargs=-1)
@store_option
@click.option("--run", type=click.IntRange(1), help="Number of the run in the session, from 1. Default: the newest.")
def label(what: tuple[str, ...], store: Path | None, run: int | None) -> None:
    """Label a run, a firing or a refusal good or bad, or remove its label by none.

    AGENT alone means its newest session. A run is a task: a session holds one, and one more after each outcome. A label
    counts more than the outcome that the host has reported. The agent's later sessions learn thresholds from good runs,
    and weights from both. A firing or a refusal, by its id of coherence explain, is good if it was right, and bad if it
    was a false alarm; no label lets a call through. Exit status: 0 ok, 2 bad usage.
    """
    from coherence.cli.calibration import label_target

    label_target(what, store=store, run=run)


@click.command()
@STORE
@click.option("--agent", help="Show only this agent.")
@click.option("--reset", is_flag=True, help="Forget runs, labels and their effect, without asking.")
@json_option()
def calibration(**options: Any) -> None:
    """Show the thresholds of each agent's alarms, their origin, and their validity.

    The budget of a threshold is the share of good runs that may alarm. The values are those of the agent's next
    session. The weights of the risk are fixed until labelled runs prove others better; the e-value is the evidence so
    far. After a reset, a running session reports its newest run again. Exit status: 0 ok, 2 bad usage.
    """
    from coherence.cli.calibration import show_calibration

    show_calibration(**options)
