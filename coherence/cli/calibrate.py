"""The work behind ``coherence calibrate``: a scale from own runs, and what it is worth."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from coherence.cli.columns import aligned
from coherence.cli.documents import print_document
from coherence.cli.inputs import make_embedder, progress_bar, read_inputs
from coherence.cli.outputs import check_folders, check_outputs, write_output
from coherence.core.config import disabled
from coherence.core.readings import number_of, one_line
from coherence.core.scale import scale_text
from coherence.evaluation.own_runs import (
    LABELS_NEEDED,
    CalibrationError,
    FittedScale,
    calibrate,
    observe_runs,
)
from coherence.report.files import write_atomically
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.sensor.light import scale_for


def calibrate_files(paths: Sequence[Path], *, embedder: str, out: Path, form: str | None, as_json: bool) -> int:
    """Fit a scale on the runs of files, write it, print what it is worth, and return the exit status."""
    if disabled():
        raise click.UsageError("COHERENCE_DISABLED is set; unset it to calibrate")
    check_outputs({"--out": out}, paths)
    check_folders([out])
    made = make_embedder(embedder)
    fingerprint = getattr(made, "fingerprint", None)
    if not isinstance(fingerprint, str) or not fingerprint:
        raise click.BadParameter(
            f"{embedder} has no fingerprint, by which a monitor knows that a scale is that of its embedder: give the "
            "class an attribute fingerprint, a str that names its weights and settings",
            param_hint="--embedder",
        )
    transcripts, errors = read_inputs(paths, form)
    if errors:
        return 2
    try:
        with progress_bar(sum(len(transcript.steps) for transcript in transcripts)) as advance:
            observed = observe_runs(transcripts, EmbeddingCache(made), advance)
        found = calibrate(observed, fingerprint, f"{embedder.partition(':')[0]}-own")
    except CalibrationError as error:
        click.echo(f"error: {one_line(str(error))}", err=True)
        return 2
    if not write_output("scale", out, lambda path: write_atomically(path, scale_text(found.scale))):
        return 2
    if as_json:
        print_document("coherence.calibrate/1", msgspec.to_builtins(found))
    else:
        _print(found)
    return 0


def _print(found: FittedScale) -> None:
    """Print what the scale was fitted on, what it is worth beside the one it replaces, and its curves."""
    labels = (
        "labels have moved the curves"
        if found.labels_used
        else f"no label has moved the curves: that takes {LABELS_NEEDED} runs off course from a known step on"
    )
    by_task = found.held_out == "task"
    lines = [
        f"{number_of(found.runs, 'run')}, {number_of(found.steps, 'step')}: {found.good_runs} good, {found.off_course} "
        f"off course from a known step on, {found.left_out} left out (went wrong, at no known step)",
        labels,
        "",
        *aligned(_worth(found)),
        f"({found.scale.name}: each run by a scale that was fitted without {'its task' if by_task else 'it'})",
        "",
        *aligned(_curves(found)),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _worth(found: FittedScale) -> list[tuple[str, ...]]:
    before, after = found.before, found.after
    rows: list[tuple[str, ...]] = [
        ("", found.replaces, found.scale.name),
        ("good steps orange or red", *(f"{worth.good_steps:.1%}" for worth in (before, after))),
        ("good runs ever orange or red", *(f"{worth.good_runs:.1%}" for worth in (before, after))),
    ]
    if found.off_course:
        of = f" of {found.off_course}"
        rows += [
            ("runs off course that were", f"{before.warned}{of}", f"{after.warned}{of}"),
            ("AUROC of steps", f"{before.auroc:.2f}", f"{after.auroc:.2f}"),
            ("calibration error", f"{before.calibration:.3f}", f"{after.calibration:.3f}"),
        ]
    return rows


def _curves(found: FittedScale) -> list[tuple[str, ...]]:
    """Return how much each sign adds at most, by both scales."""
    old, new = scale_for(found.scale.embedder).curves, found.scale.curves
    rows: list[tuple[str, ...]] = [("log odds that a sign adds at most", found.replaces, found.scale.name)]
    for name in dict.fromkeys((*new, *old)):
        cells = (f"{curves[name].most:.1f}" if name in curves else "-" for curves in (old, new))
        rows.append((name, *cells))
    return rows
