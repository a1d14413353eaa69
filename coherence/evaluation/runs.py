"""Labelled runs: recorded runs of which somebody knows how they went."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from coherence.core.errors import TranscriptError
from coherence.providers.readers.runs import read_runs
from coherence.providers.readers.source import Document, Source, read_source
from coherence.providers.transcript import Transcript

Target: TypeAlias = Literal["hijack", "failure", "step"]
"""Subject of labels: that injected text was obeyed, that the task failed, or the step that decided its failure."""

Attack: TypeAlias = Literal["hijacked", "resisted", "unseen", "untouched"]
"""Relation of a run to an attack: obeyed it, read it and did not, never read it, or there was none."""

EXPECTED = (
    "labelled runs {id, steps, source?, group?, split?, labels: {success?, hijacked?, attacked?, injection_step?, "
    "hijack_step?, error_step?, error_agent?}}, one a line"
)


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """Labels of a run. ``None`` = not labelled; other labels of a file are not read."""

    success: bool | None = None
    hijacked: bool | None = None
    """True if an injected goal was carried out."""
    attacked: bool | None = None
    """True if there was an injection in what the agent could read."""
    injection_step: int | UnsetType | None = UNSET
    """The first tool result that shows it; ``None`` = it was never shown."""
    hijack_step: int | None = None
    """The first step that carries it out."""
    error_step: int | None = None
    """The step that decided that the run failed."""
    error_agent: str | None = None


class _Meta(msgspec.Struct):
    suite: str | None = None


class _Labelled(msgspec.Struct):
    labels: Labels = Labels()
    source: str | None = None
    group: str | int | None = None
    split: str | None = None
    meta: _Meta | None = None


class LabelledRun(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded run and what is known of it."""

    transcript: Transcript
    labels: Labels
    source: str
    """Source of the run; default: the file's stem."""
    part: str
    """Source and, where the file's ``meta`` names one, suite: the smallest kind of run that gets a row of its own."""
    group: str
    """The task. Runs of one task are alike, so that tasks are resampled and not runs; default: the run's own id."""
    split: str | None = None
    place: str = ""
    """File and line."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.transcript.id

    @property
    def length(self) -> int:
        """The number of steps."""
        return len(self.transcript.steps)

    @property
    def attack(self) -> Attack | None:
        """Outcome of an attack on the run; ``None`` without such labels."""
        labels = self.labels
        if labels.hijacked is None:
            return None
        if labels.hijacked:
            return "hijacked"
        if not labels.attacked:
            return "untouched"
        return "unseen" if labels.injection_step is None else "resisted"

    @property
    def target(self) -> Target | None:
        """Use of the run: its most specific label, ``None`` without one."""
        if self.labels.hijacked is not None:
            return "hijack"
        if self.labels.error_step is not None:
            return "step"
        return "failure" if self.labels.success is not None else None


def read_labelled(paths: Iterable[str | Path]) -> list[LabelledRun]:
    """Read labelled runs, plain or gzipped.

    Parameters
    ----------
    paths : iterable of str or Path
        Files of this package's run format with ``labels``, one run a line.

    Returns
    -------
    list of LabelledRun
        In the order of the files and lines.

    Raises
    ------
    TranscriptError
        A file cannot be read, a label has the wrong type or names a step that is not there, or an id comes twice; the
        error names file and line.
    """
    runs: list[LabelledRun] = []
    places: dict[str, str] = {}
    for path in paths:
        source = read_source(path)
        if source.torn is not None:
            raise source.torn
        for document, transcript in zip(source.documents, read_runs(source), strict=True):
            run = _labelled(source, document, transcript)
            if run.id in places:
                raise TranscriptError(path, f"the id {run.id!r} is that of {places[run.id]} too", document.line)
            places[run.id] = run.place
            runs.append(run)
    return runs


def _labelled(source: Source, document: Document, transcript: Transcript) -> LabelledRun:
    more = source.convert(document, _Labelled, EXPECTED)
    for name in ("injection_step", "hijack_step", "error_step"):
        step = getattr(more.labels, name)
        if isinstance(step, int) and not 0 <= step < len(transcript.steps):
            reason = f"labels.{name} is {step}, expected a step from 0 to {len(transcript.steps) - 1}"
            raise TranscriptError(source.path, reason, document.line)
    name = more.source or Path(source.path).name.split(".")[0]
    suite = more.meta.suite if more.meta is not None else None
    return LabelledRun(
        transcript=transcript,
        labels=more.labels,
        source=name,
        part=f"{name}/{suite}" if suite else name,
        # The prefix, since a task may be named as a run is.
        group=str(more.group) if more.group is not None else f"run {transcript.id}",
        split=more.split,
        place=source.path if document.line is None else f"{source.path}:{document.line}",
    )
