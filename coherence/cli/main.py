"""``coherence``: the commands and their options. What they do is in the other files of this folder."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

import coherence
from coherence.cli.guard import guard
from coherence.cli.lessons import lessons
from coherence.cli.options import (
    FILES,
    TARGET,
    config_option,
    embedder_option,
    file_option,
    format_option,
    json_option,
    metrics_option,
    store_option,
)
from coherence.store.measures import HORIZONS, Measure

F = TypeVar("F", bound=Callable[..., Any])


def _shared(command: F) -> F:
    """Give a command the options of every scoring command."""
    step_scores = (
        "Write {id, score, step_scores} per run, for `coherence eval --scores`: the risk by the index, or by --metric."
    )
    options = (
        click.option(
            "--window",
            type=click.IntRange(1),
            default=20,
            show_default=True,
            help="Recent messages that count as context.",
        ),
        embedder_option("minilm, hashing, sentence-transformers:MODEL, openai:URL,MODEL, or a plug-in's name."),
        metrics_option("Measure a further metric; `coherence metrics` lists them. Repeatable."),
        config_option("TOML file with settings of the monitor."),
        file_option("--store", "Record each run as a session in this store, for `coherence replay`."),
        json_option("Print JSON instead of the table."),
        file_option("--jsonl", "Write one JSON object per reading."),
        file_option("--step-scores", step_scores),
    )
    # reversed, because click lists what was added last first
    for option in reversed(options):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(coherence.__version__, prog_name="coherence")
def main() -> None:
    """Interoception for LLM agents: report whether an agent is still on course."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # agents write what a terminal's encoding may not have


@main.command()
@FILES
@format_option("Format of the files. Default: recognised by their content.")
@_shared
@file_option("--html", "Write the report as one HTML file.")
@click.option(
    "--fail-below",
    metavar="X",
    type=click.FloatRange(0, 1),
    help="Exit with 1 if the lowest index of any run is below X, or was unknown after every step.",
)
@click.option(
    "--fail-on",
    type=click.Choice(("warn", "block")),
    help="Exit with 1 if the decision after any step of a run is that bad, or worse.",
)
def score(paths: tuple[Path, ...], form: str | None, **options: Any) -> None:
    """Score recorded agent runs, with one reading per step.

    FILE may be - for the standard input.

    Reads OpenAI and Anthropic messages, Claude Code sessions and the run format of this project, as JSON or JSON Lines,
    gzipped or not. An output replaces the file of its name, unless that is an input, a store or another output. Exit
    status: 0 ok, 1 a threshold was crossed, 2 bad usage or an unreadable input (the others are scored all the same).
    """
    from coherence.cli.score import score_files

    raise SystemExit(score_files(paths, form=form, **options))


@main.command("eval")
@click.argument("paths", metavar="DATA...", nargs=-1, required=True, type=click.Path(path_type=Path))
@metrics_option("Metric, vital, index or pressure. Repeatable. Default without --scores: the alarms and the index.")
@click.option(
    "--scores",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Scores of any other system, JSON lines {id, score, step_scores}. Repeatable.",
)
@click.option(
    "--target",
    type=click.Choice(("hijack", "failure", "step")),
    help="Question to judge. Default: all that the labels answer.",
)
@embedder_option("As for `coherence score`; used only where a metric compares meanings.")
@config_option("TOML file with settings of the monitor.")
@click.option(
    "--in-sample-too",
    is_flag=True,
    help="Show figures of runs on which a system was tuned, marked, beside held-out ones.",
)
@json_option("Print JSON instead of the tables.")
@file_option("--html", "Write the result as one HTML file.")
def evaluate(paths: tuple[Path, ...], **options: Any) -> None:
    """Judge metrics, or any scores, on labelled runs.

    DATA are files of this project's run format with labels, gzipped or not. The metric made for a question, else the
    first one (or file of scores), is compared with the others and with trivial scores. An older --html file is
    replaced, unless it is an input or a store. Exit status: 0 ok, 2 bad usage, an unreadable input, no labels, or
    figures that must not be compared.
    """
    from coherence.cli.evaluate import evaluate_files

    raise SystemExit(evaluate_files(paths, **options))


@main.command()
@_shared
@file_option("--html", "File of the report.", default=Path("report.html"), show_default=True)
def demo(**options: Any) -> None:
    """Score the 12 real agent runs that come with the package, and write a report.

    An older report is replaced, a store is not.
    """
    from importlib.resources import as_file, files

    from coherence.cli.score import score_files

    with as_file(files("coherence.cli.demo_data")) as folder:
        paths = tuple(sorted(Path(folder).glob("*.jsonl.gz")))
        raise SystemExit(score_files(paths, form="runs", **options))


@main.command("blame")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@format_option("Format of the file. Default: recognised by its content.")
@click.option("--run", metavar="ID", help="Show only this run, with its reasons.")
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, help="Number of steps and agents to show.")
@json_option()
def blame_run(path: Path, **options: Any) -> None:
    """Rank the steps and agents of a failed run by the evidence that they decided its end.

    A run whose steps do not stand out is "undecided". Exit status: 0 ok, 2 bad usage or a file that could not be read.
    """
    from coherence.cli.blame import blame_file

    raise SystemExit(blame_file(path, **options))


@main.command("eval-cases")
@click.argument("path", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@json_option("Print JSON instead of the table.")
def eval_cases(path: Path | None, *, as_json: bool) -> None:
    """Play sessions with a known failure, and compare the verdict on each with the expected one.

    FILE is a packet of cases in JSON; default: the shipped one. Exit status: 0 all verdicts are as expected, 1 one is
    not, 2 bad usage or an unreadable file.
    """
    from coherence.cli.cases import evaluate_cases

    raise SystemExit(evaluate_cases(path, as_json=as_json))


@main.command()
@json_option("Print JSON instead of the table.")
def metrics(as_json: bool) -> None:
    """List the registered metrics: name, direction, origin."""
    from coherence.cli.metric_list import list_metrics

    list_metrics(as_json=as_json)


@main.command()
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of a --json document, or list all of them.

    NAME is the command with dots between its words, such as score or guard.status. Each document names its schema,
    such as "coherence.score/1"; in an array or in JSON lines, each record does.
    """
    from coherence.cli.documents import print_schemas

    print_schemas(name)


@main.command()
@FILES
@click.option(
    "--embedder",
    metavar="NAME[:ARGS]",
    required=True,
    help="Embedder of the scale, as for `coherence score`; it needs a fingerprint.",
)
@file_option("--out", "File of the scale.", default=Path("scale.json"), show_default=True)
@format_option("Format of the files. Default: recognised by their content.")
@json_option("Print JSON instead of the tables.")
def calibrate(paths: tuple[Path, ...], **options: Any) -> None:
    """Fit a scale of the calibrated index for any embedder, on recorded runs of your own.

    FILE is what `coherence score` reads, a store too. A run counts as good unless its labels or its outcome say
    otherwise. A bad run counts from the step that its labels name; without one it is left out. A monitor uses the
    scale by the setting scale = "scale.json". An older --out file is replaced, unless it is an input or a store. Exit
    status: 0 ok, 2 bad usage, an unreadable file, or too few runs.
    """
    from coherence.cli.calibrate import calibrate_files

    raise SystemExit(calibrate_files(paths, **options))


@main.command()
@store_option
@json_option()
def sessions(store: Path | None, as_json: bool) -> None:
    """List the recorded sessions: events, newest index, pressure and decision."""
    from coherence.cli.logs import list_sessions

    list_sessions(store, as_json=as_json)


@main.command()
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


@main.command()
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


@main.group()
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


@main.command()
@click.option("--agent", required=True, metavar="NAME", help="Whose content is wiped.")
@click.option("--session", metavar="S", help="Only this session, and those that went on from it. Default: all.")
@store_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(**options: Any) -> None:
    """Wipe what a store holds of an agent, its lessons too, so that nothing of it is left in the file.

    End the agent's monitors and guards first. Events stay in the hash chain without their content, and `audit verify`
    says how many. Names, times and copies elsewhere are not touched. Exit status: 0 ok, 2 bad usage.
    """
    from coherence.cli.logs import purge_agent

    purge_agent(**options)


STORE = click.argument("store", type=click.Path(dir_okay=False, path_type=Path))


@main.command()
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


@main.command()
@STORE
@click.argument("target", metavar="AGENT[/SESSION]")
@click.argument("label", type=click.Choice(["good", "bad", "none"]))
@click.option("--run", type=click.IntRange(1), help="Number of the run in the session, from 1. Default: the newest.")
def label(**options: Any) -> None:
    """Label a run good or bad, or remove its label by none. AGENT alone means its newest session.

    A run is a task: a session holds one, and one more after each outcome. A label counts more than the outcome that
    the host has reported. The agent's later sessions learn thresholds from good runs, and weights from both.
    Exit status: 0 ok, 2 bad usage.
    """
    from coherence.cli.calibration import label_run

    label_run(**options)


@main.command()
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


main.add_command(lessons)
main.add_command(guard)
