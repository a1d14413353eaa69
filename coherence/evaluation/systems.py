"""A system: whatever gives every run and step a score, the higher the worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.ranking import Floats
from coherence.evaluation.runs import LabelledRun, Target

FittedOn: TypeAlias = str | tuple[str, ...]
"""Data that a system was fitted or tuned on: ``none``, the name of a split, or the tasks (groups)."""

NOTHING = "none"

NAMED = 3
"""Ids that no run has, of those that are shown."""

SILENT = -np.inf
"""Score of a step or run about which a system says nothing: below every other."""

Scores: TypeAlias = Sequence[float | None]


class System(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one system for a set of runs."""

    name: str
    fitted_on: FittedOn = NOTHING
    reference: bool = False
    """True for the trivial scores that every other is shown beside; those have nothing to fit."""
    about: Target | None = None
    """Target that it was made for; it is the one compared with the others where that is asked."""
    step_scores: Mapping[str, Scores | None]
    """Run -> one score a step, of what was known after it; ``None`` in place of a score: says nothing."""
    run_scores: Mapping[str, float | None]
    strangers: tuple[str, ...] = ()
    """Ids that were scored and that no run has."""

    def run(self, run: LabelledRun) -> float:
        """Return the score of a run."""
        score = self.run_scores[run.id]
        return SILENT if score is None else score

    def steps(self, run: LabelledRun) -> Floats | None:
        """Return the scores of a run's steps, ``None`` where the system gives none."""
        scores = self.step_scores[run.id]
        return None if scores is None else np.array([SILENT if score is None else score for score in scores], float)

    def half(self, run: LabelledRun) -> float | None:
        """Return the highest score in the first half of the steps, rounded down."""
        scores = self.step_scores[run.id]
        return None if scores is None else highest(scores[: run.length // 2])


def of_steps(
    name: str,
    step_scores: Mapping[str, Scores],
    *,
    fitted_on: FittedOn = NOTHING,
    reference: bool = False,
    about: Target | None = None,
) -> System:
    """Return a system whose score of a run is the highest of its steps.

    Examples
    --------
    >>> of_steps("mine", {"a": [None, 0.2, 0.1], "b": [None]}).run_scores
    {'a': 0.2, 'b': None}
    """
    return System(
        name=name,
        fitted_on=fitted_on,
        reference=reference,
        about=about,
        step_scores=step_scores,
        run_scores={
            run: max((score for score in scores if score is not None), default=None)
            for run, scores in step_scores.items()
        },
    )


def highest(scores: Scores) -> float:
    """Return the highest score, :data:`SILENT` if there is none."""
    return max((score for score in scores if score is not None), default=SILENT)


def in_sample(fitted_on: FittedOn, runs: Sequence[LabelledRun]) -> int:
    """Count the runs that a system was fitted or tuned on: those of its split, or of its tasks."""
    if isinstance(fitted_on, str):
        return sum(run.split == fitted_on for run in runs) if fitted_on != NOTHING else 0
    tasks = set(fitted_on)
    return sum(run.group in tasks for run in runs)


def check_comparable(systems: Sequence[tuple[str, FittedOn]], runs: Sequence[LabelledRun]) -> None:
    """Refuse to put figures of runs that a system was fitted on beside figures of runs that another never saw.

    The first kind is too good by an amount that nobody knows, so that their difference says nothing. The trivial
    references are not to be asked about: they have nothing to fit.

    Parameters
    ----------
    systems : sequence of tuple
        Name, and what it was fitted or tuned on.
    runs : sequence of LabelledRun
        What they are judged by.

    Raises
    ------
    EvaluationError
        If there are both kinds; the message names one of each.
    """
    counts = [in_sample(fitted_on, runs) for _, fitted_on in systems]
    if all(counts) or not any(counts):
        return
    at = next(at for at, count in enumerate(counts) if count)
    fresh = next(name for (name, _), count in zip(systems, counts, strict=True) if not count)
    name, fitted_on = systems[at]
    what = f"the split {fitted_on!r}" if isinstance(fitted_on, str) else f"{len(fitted_on)} tasks"
    raise EvaluationError(
        f"{name} was fitted or tuned on {what}, to which {counts[at]} of these {len(runs)} runs belong; {fresh} was "
        f"not. In-sample figures are too good, and are not compared with held-out ones: evaluate on runs that neither "
        f"has seen, or pass --in-sample-too, which marks them"
    )
