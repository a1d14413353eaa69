"""Read, score, and write: the work behind ``coherence score`` and ``coherence demo``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from coherence.cli.documents import print_document, versioned
from coherence.cli.inputs import make_embedder, progress_bar, read_inputs
from coherence.cli.outputs import check_folders, check_outputs, write_output
from coherence.cli.table import print_runs
from coherence.cli.target import read_config
from coherence.core.config import disabled
from coherence.core.decisions import KINDS, DecisionKind
from coherence.core.errors import CoherenceError, TranscriptError
from coherence.core.readings import one_line
from coherence.core.registry import create_metric
from coherence.evaluation.measure import INDEX, fitted_on, risks
from coherence.evaluation.scores import scores_lines
from coherence.evaluation.systems import of_steps
from coherence.providers.transcript import Transcript
from coherence.report.ahead import usable_cores
from coherence.report.files import write_atomically
from coherence.report.score import ScoredRun, score_transcript
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.store import Store


def score_files(
    paths: Sequence[Path],
    *,
    form: str | None,
    window: int,
    embedder: str,
    metrics: Sequence[str],
    as_json: bool,
    jsonl: Path | None,
    html: Path | None,
    fail_below: float | None = None,
    fail_on: DecisionKind | None = None,
    config: Path | None = None,
    store: Path | None = None,
    step_scores: Path | None = None,
    jobs: int = 1,
) -> int:
    """Score every run of every file, print and write what was asked for, and return the exit status."""
    if disabled():
        raise click.UsageError("COHERENCE_DISABLED is set; unset it to score")
    outputs = {"--jsonl": jsonl, "--step-scores": step_scores, "--html": html}
    check_outputs(outputs, [*paths, config], store=store)
    check_folders(outputs.values())
    if step_scores is not None and len(metrics) > 1:
        raise click.UsageError(
            "--step-scores writes the risk by one metric, or by the index without --metric; name one"
        )
    if store is not None and jobs != 1:
        raise click.UsageError("--store records the runs in their order, one at a time: leave out --jobs")
    cache = EmbeddingCache(make_embedder(embedder))
    for name in metrics:
        _check_metric(name)
    settings = read_config(config)
    transcripts, errors = read_inputs(paths, form)
    if step_scores is not None:
        _check_names(transcripts)
    score = partial(score_transcript, window=window, metrics=metrics, config=settings)
    with _open_store(store) as kept, scoring_progress(transcripts) as advance:
        runs = score_each(transcripts, partial(score, store=kept), cache, embedder, jobs, advance)
    for run in runs:
        _warn_of_failures(run)
    if as_json:
        print_document("coherence.score/1", _summary(runs, errors))
    elif runs:
        print_runs(runs)
    # A list: a file that cannot be written keeps no other from it.
    written = [
        jsonl is None or write_output("readings", jsonl, lambda path: write_atomically(path, "".join(_lines(runs)))),
        step_scores is None
        or write_output("step scores", step_scores, lambda path: _write_scores(path, runs, metrics)),
        html is None or write_output("report", html, lambda path: _write_report(path, runs)),
    ]
    if errors or not all(written):
        return 2
    failed = [run for run in runs if fail_below is not None and not _reaches(run, fail_below)]
    failed += [run for run in runs if fail_on is not None and _is_as_bad(run, fail_on)]
    return int(bool(failed))


def _write_report(path: Path, runs: Sequence[ScoredRun]) -> None:
    from coherence.report.html import write_html  # jinja2 takes 40 ms, which a score without a page does not pay

    write_html(path, runs)


def _is_as_bad(run: ScoredRun, kind: DecisionKind) -> bool:
    """Tell whether the worst decision of a run is of a kind, or worse; if so, it is named."""
    worst = run.worst_decision
    if worst is None or KINDS.index(worst.kind) < KINDS.index(kind):
        return False
    step = next(at for at, decision in enumerate(run.decisions) if decision.kind == worst.kind)
    said = f"{run.transcript.id}: {worst.kind} after step {step}: {worst.message}"
    click.echo(f"error: {one_line(said)}", err=True)
    return True


def _reaches(run: ScoredRun, least: float) -> bool:
    """Tell whether a run's lowest index is high enough; one that is unknown at every step is not, and is named."""
    if run.lowest is not None and run.lowest.coherence_index is not None:
        return run.lowest.coherence_index >= least
    if least > 0:
        name = one_line(run.transcript.id)
        click.echo(f"error: {name}: nothing was known after any step, so that --fail-below cannot pass it", err=True)
    return least == 0


def _write_scores(path: Path, runs: Sequence[ScoredRun], metrics: Sequence[str]) -> None:
    name = metrics[0] if metrics else INDEX
    scores = of_steps(
        f"coherence {name}", {run.transcript.id: risks(run, name) for run in runs}, fitted_on=fitted_on(name)
    )
    write_atomically(path, "".join(scores_lines(scores)))


def _check_names(transcripts: Sequence[Transcript]) -> None:
    """Refuse two runs of one name: a file of scores could hold only one of them."""
    known: dict[str, str] = {}
    for transcript in transcripts:
        if transcript.id in known:
            places = " and ".join(dict.fromkeys((known[transcript.id], transcript.path)))
            raise click.UsageError(
                f"two runs are called {one_line(transcript.id)!r} ({places}); --step-scores takes each name once: "
                "score the files one by one"
            )
        known[transcript.id] = transcript.path


def _check_metric(name: str) -> None:
    from coherence.providers.static import StaticState

    try:
        create_metric(name, StaticState())
    except CoherenceError as error:
        raise click.BadParameter(str(error), param_hint="--metric") from error


@contextmanager
def _open_store(path: Path | None) -> Iterator[Store | None]:
    if path is None:
        yield None
        return
    try:
        store = Store(path)
    except CoherenceError as error:
        raise click.UsageError(str(error)) from error
    with store:
        yield store
    click.echo(f"recorded: {path}", err=True)


def score_each(
    transcripts: Sequence[Transcript],
    score: Callable[..., ScoredRun],
    cache: EmbeddingCache,
    embedder: str,
    jobs: int,
    advance: Callable[[int], object],
) -> list[ScoredRun]:
    """Score runs, in several processes if ``jobs`` is not 1.

    Parameters
    ----------
    transcripts : sequence of Transcript
        The runs.
    score : callable
        :func:`~coherence.report.score.score_transcript` with settings.
    cache : EmbeddingCache
        Of the embedder, for this process.
    embedder : str
        The name of the embedder, by which other processes make their own.
    jobs : int
        Number of processes; 0 = one per core.
    advance : callable
        Called with how many steps more are done.
    """
    if jobs != 1 and len(transcripts) > 1:
        from coherence.cli.parallel import score_side_by_side

        return score_side_by_side(transcripts, score, embedder, jobs, advance)
    return [
        score(transcript, embedder=cache, ahead=usable_cores() - 1, on_step=lambda _: advance(1))
        for transcript in transcripts
    ]


@contextmanager
def scoring_progress(transcripts: Sequence[Transcript]) -> Iterator[Callable[[int], None]]:
    """Show how many steps are scored; settings that do not fit, such as a weight of no metric, are bad usage."""
    try:
        with progress_bar(sum(len(transcript.steps) for transcript in transcripts)) as advance:
            yield advance
    except (TypeError, ValueError) as error:
        raise click.UsageError(str(error)) from error


def _warn_of_failures(run: ScoredRun) -> None:
    failed = [reading for reading in run.readings if reading.errors]
    if failed:
        first = (
            f"{run.transcript.id}: {len(failed)} readings with errors; step {failed[0].tick_seq}: {failed[0].errors[0]}"
        )
        click.echo(f"warning: {one_line(first)}", err=True)


def _lines(runs: Sequence[ScoredRun]) -> Iterator[str]:
    """Yield one JSON line a reading."""
    for run in runs:
        scored = zip(run.readings, run.risks, run.appraisals, run.decisions, strict=True)
        for reading, risk, appraisal, decision in scored:
            plain = reading.to_dict()
            keys = ("metrics", "coherence_index", "band", "cause", "scale", "coverage", "errors", "unknown")
            line = {"run_id": run.transcript.id, "step": reading.tick_seq, **{key: plain[key] for key in keys}}
            line |= {"risk": risk, "pressure": appraisal.pressure, "mode": appraisal.mode}
            line |= {"decision": decision.kind, "message": decision.message}
            yield json.dumps(versioned("coherence.score.jsonl/1", line)) + "\n"


def _summary(runs: Sequence[ScoredRun], errors: Sequence[TranscriptError]) -> dict[str, Any]:
    return {
        "runs": [_run(run) for run in runs],
        "errors": [{"path": error.path, "line": error.line, "reason": error.reason} for error in errors],
    }


def _run(run: ScoredRun) -> dict[str, Any]:
    last, lowest, worst = run.last, run.lowest, run.worst_decision
    return {
        "run_id": run.transcript.id,
        "path": run.transcript.path,
        "format": run.transcript.format,
        "steps": len(run.transcript.steps),
        "now": last and last.coherence_index,
        "lowest": lowest and lowest.coherence_index,
        "worst_step": lowest and lowest.tick_seq,
        "why": lowest and run.why(lowest),
        "scale": run.scale,
        "highest_pressure": run.highest_pressure,
        "worst_decision": worst.kind if worst is not None else None,  # a block is false
        "decisions": [decision.kind for decision in run.decisions],
        "bands": run.bands,
        "outcome": run.transcript.outcome or None,
        "verdict": run.verdict or None,
    }
