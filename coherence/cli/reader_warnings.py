"""Warnings of readers, on standard error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from coherence.core.readings import excerpt, number_of, one_line
from coherence.providers.transcript import Transcript


def tell_warnings(path: str | Path, transcripts: Iterable[Transcript]) -> None:
    """Print each warning of a file's runs once, with the first run that has it and how many others have."""
    runs: dict[str, list[str]] = {}
    for transcript in transcripts:
        for warning in transcript.warnings:
            runs.setdefault(warning, []).append(transcript.id)
    for warning, (first, *others) in runs.items():
        more = f" and {number_of(len(others), 'other')}" if others else ""
        click.echo(f"warning: {one_line(f'{path}: {warning} (run {excerpt(first)}{more})')}", err=True)
