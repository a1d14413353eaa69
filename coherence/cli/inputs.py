"""Recorded runs that a command was told to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from coherence.cli.reader_warnings import tell_warnings
from coherence.core.errors import TranscriptError
from coherence.core.readings import one_line
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript
from coherence.report.recorded import is_store, read_recorded


def read_inputs(paths: Sequence[Path], form: str | None) -> tuple[list[Transcript], list[TranscriptError]]:
    """Read every file, transcripts or a store; a bad one is reported and passed over."""
    transcripts: list[Transcript] = []
    errors: list[TranscriptError] = []
    for path in paths:
        try:
            found = read_recorded(path) if form is None and is_store(path) else read_transcripts(path, form)
        except TranscriptError as error:
            errors.append(error)
            click.echo(f"error: {one_line(str(error))}", err=True)
            continue
        tell_warnings(path, found)
        transcripts += found
    return transcripts, errors
