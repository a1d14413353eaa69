"""Read two sets of runs, score them, and print what changed: the work behind ``coherence compare``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import click

from coherence.cli.columns import print_columns
from coherence.cli.documents import print_document
from coherence.cli.inputs import make_embedder, read_inputs
from coherence.cli.score import score_each, scoring_progress
from coherence.cli.target import read_config
from coherence.core.config import disabled
from coherence.core.readings import number_of
from coherence.evaluation.change import Change, Comparison, Kind, Side, compare_runs
from coherence.report.score import score_transcript
from coherence.sensor.embedding_cache import EmbeddingCache

ENDINGS = (".json", ".jsonl", ".ndjson", ".gz", ".db", ".sqlite", ".sqlite3")
"""Endings of the files that are read in a folder."""


def compare_files(
    before: Path,
    after: Path,
    *,
    form: str | None,
    window: int,
    embedder: str,
    config: Path | None,
    jobs: int,
    as_json: bool,
    fail_on: Literal["worse"] | None,
) -> int:
    """Compare two sets of runs, print the result, and return the exit status."""
    if disabled():
        raise click.UsageError("COHERENCE_DISABLED is set; unset it to compare")
    sides = [_files(before, "BEFORE"), _files(after, "AFTER")]
    settings = read_config(config)
    cache = EmbeddingCache(make_embedder(embedder))
    read = [read_inputs(paths, form) for paths in sides]
    if any(errors for _, errors in read):
        return 2  # what could not be read might be all that has changed
    (old, _), (new, _) = read
    score = partial(score_transcript, window=window, config=settings)
    with scoring_progress([*old, *new]) as advance:
        runs = score_each([*old, *new], score, cache, embedder, jobs, advance)
    found = compare_runs(runs[: len(old)], runs[len(old) :])
    if as_json:
        print_document("coherence.compare/1", found.to_dict())
    else:
        _print(found)
    if fail_on is None:
        return 0
    for change in found.worse:
        told = f"{change.title}: {_value(change.before.value, change.kind)} before, "
        click.echo(f"error: worse: {told}{_value(change.after.value, change.kind)} after", err=True)
    for change in found.undecided:
        click.echo(f"warning: {change.title}: nothing can be said, so that --fail-on worse passes it", err=True)
    return int(bool(found.worse))


def _files(path: Path, name: str) -> list[Path]:
    """Return the files of one side: the one of that name, or those of a folder, by name."""
    if not path.is_dir():
        return [path]
    found = sorted(
        each
        for each in path.rglob("*")
        if each.suffix in ENDINGS
        and each.is_file()
        and not any(part.startswith(".") for part in each.relative_to(path).parts)
    )
    if not found:
        raise click.BadParameter(f"{path} holds no file that ends in {', '.join(ENDINGS)}", param_hint=name)
    return found


def _print(found: Comparison) -> None:
    print(f"{number_of(found.before, 'run')} before, {found.after:,} after")  # noqa: T201
    print()  # noqa: T201
    print_columns([("measure", "before", "after", "difference", "95 % interval", "runs", ""), *_rows(found.changes)])
    beyond = sum(change.verdict in ("better", "worse", "changed") for change in found.changes)
    judged = sum(change.verdict != "not known" for change in found.changes)
    if judged:
        print(f"\n{beyond} of {number_of(judged, 'measure')} changed beyond chance; one in twenty does by chance alone")  # noqa: T201
    for note in found.notes:
        print(f"note: {note}")  # noqa: T201


def _rows(changes: Sequence[Change]) -> list[tuple[str, ...]]:
    rows = []
    for change in changes:
        difference, low, high = (
            _value(value, change.kind, signed=True)
            for value in (change.difference.value, change.difference.low, change.difference.high)
        )
        interval = f"{low} to {high}" if change.difference.low is not None else ""
        title = f"  {change.title}" if change.key.startswith("findings.") else change.title
        runs = f"{change.before.runs}, {change.after.runs}"
        verdict = change.verdict
        told = "too few runs" if verdict == "not known" and _both(change.before, change.after) else verdict
        rows.append(
            (
                title,
                *(_value(side.value, change.kind) for side in (change.before, change.after)),
                difference if change.difference.value is not None else "",
                interval,
                runs,
                told,
            )
        )
    return rows


def _both(before: Side, after: Side) -> bool:
    return before.value is not None and after.value is not None


def _value(value: float | None, kind: Kind, *, signed: bool = False) -> str:
    """Return a value as it is shown.

    Examples
    --------
    >>> _value(0.25, "share"), _value(0.25, "index", signed=True), _value(1234.5, "count"), _value(None, "usd")
    ('25%', '+0.25', '1,234.5', 'unknown')
    """
    if value is None:
        return "unknown"
    form = {"share": ".0%", "index": ".2f", "count": ",.1f", "usd": ",.4f"}[kind]
    return format(value, f"+{form}" if signed else form)
