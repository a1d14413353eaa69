"""Commands on recorded runs, and their options. What they do is in the other files of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
from click.core import ParameterSource

from coherence.cli.options import (
    FILES,
    Option,
    config_option,
    embedder_option,
    file_option,
    format_option,
    json_option,
    metrics_option,
)

F = TypeVar("F", bound=Callable[..., Any])


_WINDOW = click.option(
    "--window", type=click.IntRange(1), default=20, show_default=True, help="Recent messages that count as context."
)
_EMBEDDER = embedder_option("minilm, hashing, sentence-transformers:MODEL, openai:URL,MODEL, or a plug-in's name.")


def _jobs(help: str) -> Option:
    return click.option("--jobs", metavar="N", type=click.IntRange(0), default=1, show_default=True, help=help)


def _shared(command: F) -> F:
    """Give a command the options of every scoring command."""
    step_scores = (
        "Write {id, score, step_scores} per run, for `coherence eval --scores`: the risk by the index, or by --metric."
    )
    options = (
        _WINDOW,
        _EMBEDDER,
        metrics_option("Measure a further metric; `coherence metrics` lists them. Repeatable."),
        config_option("TOML file with settings of the monitor."),
        file_option("--store", "Record each run as a session in this store, for `coherence replay`."),
        json_option("Print JSON instead of the table."),
        file_option("--jsonl", "Write one JSON object per reading."),
        file_option("--step-scores", step_scores),
        _jobs("Score N runs at a time, each in a process of its own; 0 = one per core. Not with --store."),
    )
    # reversed, because click lists what was added last first
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
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


@click.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@format_option("Format of the files. Default: recognised by their content.")
@_WINDOW
@_EMBEDDER
@config_option("TOML file with settings of the monitor.")
@_jobs("Score N runs at a time, each in a process of its own; 0 = one per core.")
@json_option("Print JSON instead of the table.")
@click.option(
    "--fail-on",
    type=click.Choice(("worse",)),
    help="Exit with 1 if, beyond chance, more runs are warned or blocked, or the mean index is lower.",
)
def compare(before: Path, after: Path, **options: Any) -> None:
    """Compare two sets of runs: lights, index, findings, costs, calls.

    BEFORE and AFTER are each a file that `coherence score` reads, a store too, or a folder of such files. Both are
    scored alike. A difference is beyond chance if its 95 % interval, from drawing the runs of each side again, does
    not hold 0; a side needs 10 runs for an interval. Exit status: 0 ok (also where nothing can be said), 1 worse, 2
    bad usage or an unreadable input (then nothing is compared).
    """
    from coherence.cli.compare import compare_files

    raise SystemExit(compare_files(before, after, **options))


@click.command("eval")
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


_ONLY_LIVE = ("speed", "watch", "no_face", "opens", "port")
"""Parameters of a demo that nothing is written of."""
_NEVER_LIVE = ("as_json", "jsonl", "step_scores", "jobs", "html")
"""Parameters of a demo that writes a report."""


def _refuse_beside(ctx: click.Context, names: tuple[str, ...], live: bool) -> None:
    """Refuse what was asked for in vain."""
    for param in ctx.command.params:
        if param.name in names and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[0]} {'does not go with' if live else 'goes only with'} --live")


@click.command()
@_shared
@file_option("--html", "File of the report.", default=Path("report.html"), show_default=True)
@click.option("--live", is_flag=True, help="Tell three of the runs again in real time, and show them; no report.")
@click.option(
    "--speed",
    metavar="X",
    type=click.FloatRange(1, 100),
    default=10,
    show_default=True,
    help="With --live: how many times faster than real agents, 1 to 100. At 10 it takes a minute.",
)
@click.option("--watch", is_flag=True, help="With --live: show them in the terminal, not in the browser.")
@click.option("--no-face", is_flag=True, help="With --live: print what changes, and end with the runs.")
@click.option("--open/--no-open", "opens", default=True, help="With --live: open a browser, or only print the address.")
@click.option("--port", type=click.IntRange(0, 65_535), metavar="PORT", help="With --live: as for `coherence serve`.")
@click.pass_context
def demo(ctx: click.Context, /, live: bool, **options: Any) -> None:
    """Score the 12 real agent runs that come with the package, and write a report.

    An older report is replaced, a store is not.

    With --live, three of them are recorded again as if their agents were running now, into a new store (--store,
    default: live-demo.db), while a page shows them: a coder, an assistant that a text in a calendar leads astray, and
    a team that goes round in circles. The recorded agents hear no guidance, and make calls that are refused all the
    same. Ctrl-C ends it.
    """
    face = {name: options.pop(name) for name in _ONLY_LIVE}
    _refuse_beside(ctx, _NEVER_LIVE if live else _ONLY_LIVE, live)
    if live:
        from coherence.cli.live_demo import play_demo

        if face["watch"] and face["no_face"]:
            raise click.UsageError("--watch shows a face, and --no-face none; leave out one of them")
        kind: Literal["web", "terminal", "none"] = "terminal" if face["watch"] else "none" if face["no_face"] else "web"
        kept = {name: value for name, value in options.items() if name not in _NEVER_LIVE}
        chosen = {name: face[name] for name in ("speed", "opens", "port")}
        raise SystemExit(play_demo(face=kind, **chosen, **kept))
    from importlib.resources import as_file, files

    from coherence.cli.score import score_files

    with as_file(files("coherence.cli.demo_data")) as folder:
        paths = tuple(sorted(Path(folder).glob("*.jsonl.gz")))
        raise SystemExit(score_files(paths, form="runs", **options))


@click.command("blame")
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


@click.command("eval-cases")
@click.argument("path", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@json_option("Print JSON instead of the table.")
def eval_cases(path: Path | None, *, as_json: bool) -> None:
    """Play sessions with a known failure, and compare the verdict on each with the expected one.

    FILE is a packet of cases in JSON; default: the shipped one. Exit status: 0 all verdicts are as expected, 1 one is
    not, 2 bad usage or an unreadable file.
    """
    from coherence.cli.cases import evaluate_cases

    raise SystemExit(evaluate_cases(path, as_json=as_json))


@click.command()
@json_option("Print JSON instead of the table.")
def metrics(as_json: bool) -> None:
    """List the registered metrics: name, direction, origin."""
    from coherence.cli.metric_list import list_metrics

    list_metrics(as_json=as_json)


@click.command()
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of a --json document, or list all of them.

    NAME is the command with dots between its words, such as score or guard.status. Each document names its schema,
    such as "coherence.score/1"; in an array or in JSON lines, each record does.
    """
    from coherence.cli.documents import print_schemas

    print_schemas(name)


@click.command()
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
