"""The embedder that a command was told to use."""

from __future__ import annotations

from typing import Any

import click

from coherence.core.errors import CoherenceError
from coherence.core.readings import one_line
from coherence.core.registry import lookup


def make_embedder(spec: str) -> Any:
    """Make an embedder from ``NAME`` or ``NAME:ARG,ARG``, and see that it works: later its failures are silent."""
    name, _, arguments = spec.partition(":")
    try:
        embedder = lookup("embedders", name)(*(arguments.split(",") if arguments else ()))
        embedder.embed("a first text")
    except Exception as error:
        reason = str(error) if isinstance(error, CoherenceError) else f"{type(error).__name__}: {error}"
        raise click.BadParameter(one_line(reason), param_hint="--embedder") from error
    return embedder
