"""Read, score, judge, and write: the work behind ``coherence eval``."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import groupby
from pathlib import Path

import click

from coherence.cli.documents import print_document
from coherence.cli.evaluation_tables import print_evaluation
from coherence.cli.inputs import make_embedder, progress_bar, tell_warnings
from coherence.cli.outputs import check_folders, check_outputs, write_output
from coherence.cli.target import read_config
from coherence.core.config import MonitorConfig, disabled
from coherence.core.errors import TranscriptError
from coherence.core.readings import one_line
from coherence.evaluation.baselines import baselines
from coherence.evaluation.comparison import Evaluation, evaluate, judged_runs
from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.measure import check_name, default_names, embeds, fitted_on, measure
from coherence.evaluation.runs import LabelledRun, Target, read_labelled
from coherence.evaluation.scores import read_scores
from coherence.evaluation.systems import System, check_comparable
from coherence.sensor.embedding_cache import EmbeddingCache


def evaluate_files(
    paths: Sequence[Path],
    *,
    metrics: Sequence[str],
    scores: Sequence[Path],
    target: Target | None,
    embedder: str,
    config: Path | None,
    in_sample_too: bool,
    as_json: bool,
    html: Path | None,
) -> int:
    """Judge metrics and files of scores by labelled runs, print and write the result, and return the exit status."""
    if disabled():
        raise click.UsageError("COHERENCE_DISABLED is set; unset it to evaluate")
    check_outputs({"--html": html}, [*paths, *scores, config])
    check_folders([html])
    names = list(dict.fromkeys(metrics)) or ([] if scores else default_names())
    try:
        for name in names:
            check_name(name)
    except EvaluationError as error:
        raise click.BadParameter(str(error), param_hint="--metric") from error
    settings = read_config(config)
    try:
        runs = read_labelled(paths)
        for path, read in groupby(runs, key=lambda run: run.transcript.path):
            tell_warnings(path, [run.transcript for run in read])
        judged = judged_runs(runs, target)
        others = _read_scores(scores, judged, {run.id for run in runs})
        if not in_sample_too:  # before anything is computed
            own = [(name, fitted_on(name)) for name in names]
            check_comparable([*own, *((other.name, other.fitted_on) for other in others)], judged)
        systems = [*_measured(names, judged, embedder, settings), *others, *baselines(judged)]
        found = evaluate(runs, systems, target=target, in_sample_too=in_sample_too)
    except (EvaluationError, TranscriptError) as error:
        click.echo(f"error: {one_line(str(error))}", err=True)
        return 2
    if as_json:
        print_document("coherence.eval/1", found.to_dict())
    else:
        print_evaluation(found)
    return 0 if html is None or write_output("report", html, lambda path: _write_page(path, found)) else 2


def _read_scores(paths: Sequence[Path], runs: Sequence[LabelledRun], others: Set[str]) -> list[System]:
    systems = []
    for path in paths:
        system, warnings = read_scores(path, runs, others)
        for warning in warnings:
            click.echo(f"warning: {one_line(warning)}", err=True)
        systems.append(system)
    return systems


def _measured(names: Sequence[str], runs: Sequence[LabelledRun], embedder: str, config: MonitorConfig) -> list[System]:
    if not names:
        return []
    cache = EmbeddingCache(make_embedder(embedder)) if embeds(names, config) else None
    with progress_bar(sum(run.length for run in runs)) as advance:
        try:
            return measure(names, runs, cache=cache, config=config, on_step=lambda _: advance(1))
        except (TypeError, ValueError) as error:  # settings that do not fit, such as a weight of no metric
            raise click.UsageError(str(error)) from error


def _write_page(path: Path, found: Evaluation) -> None:
    from coherence.evaluation.page import write_page  # jinja2 takes 40 ms

    write_page(path, found)
