"""Judging several systems on the same runs, and telling a difference from noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from coherence.evaluation.bootstrap import DRAWS, Estimate, Figure, Resamples, folds_of
from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.judge import QUESTIONS, JudgedCase, Measure, Question, answers, cases
from coherence.evaluation.runs import LabelledRun, Target
from coherence.evaluation.systems import NAMED, FittedOn, System, check_comparable, in_sample

Verdict: TypeAlias = Literal["better", "worse", "inside the noise", "not known"]
"""Of a paired difference: its 95 % interval lies on one side of 0, or holds it, or there is none."""


HELPING: Mapping[str, Target] = {
    "labels.hijacked": "hijack",
    "labels.success": "failure",
    "labels.error_step": "step",
}
"""Label -> the target that it answers."""

LEAST_TASKS = 5
"""Tasks of either class from which on there are intervals and folds: to draw fewer again and again shows hardly
anything else."""

FEW_TASKS = "too few tasks for an interval, and for folds"


class FigureDifference(msgspec.Struct, frozen=True):
    """The compared system's figure minus another's, on the same draws of tasks."""

    figure: Figure
    verdict: Verdict
    """On the compared system."""


class SourceFigure(msgspec.Struct, frozen=True):
    """The headline figure on the runs of one source or suite."""

    name: str
    figure: Figure


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One system's answers to one question."""

    system: str
    in_sample: bool
    """True if it was fitted or tuned on some of the runs: its figures are too good."""
    reference: bool
    figures: dict[str, Figure]
    """Measure -> figure; a measure that the labels or scores do not allow has no value."""
    folds: tuple[float, float] | None
    """Lowest and highest headline figure of five folds of tasks; ``None`` with fewer than :data:`LEAST_TASKS` tasks in
    a class, or where a fold has no figure: a range over the others would look too narrow."""
    parts: list[SourceFigure]
    """One a source or suite, where there is more than one."""
    worst: SourceFigure | None
    differences: dict[str, FigureDifference]
    """Measure -> the compared system's figure minus this one's; empty for that system itself."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One question and how every system answers it."""

    question: str
    title: str
    headline: str
    cases: int
    bad: int
    tasks: int
    runs: int
    note: str
    """:data:`FEW_TASKS` where no figure has an interval or a range because of that, else empty."""
    compared: str
    """The system that is compared with the others: the first one that is about this, else the first."""
    rows: list[Row]


class SystemResult(msgspec.Struct, frozen=True, kw_only=True):
    """One of the systems that were judged."""

    name: str
    fitted_on: FittedOn
    in_sample: int
    """Number of runs that it was fitted or tuned on."""
    reference: bool
    strangers: int
    """Ids in its file that no run has; what is said of them counts for nothing."""
    first_strangers: tuple[str, ...]


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found."""

    runs: int
    steps: int
    tasks: int
    systems: list[SystemResult]
    sections: list[Section]
    unused: int
    """Runs whose labels answer no question."""
    draws: int
    """Resamplings of the tasks behind each interval."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and strings, ready for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def evaluate(
    runs: Sequence[LabelledRun],
    systems: Sequence[System],
    *,
    target: Target | None = None,
    in_sample_too: bool = False,
    draws: int = DRAWS,
) -> Evaluation:
    """Judge systems by labelled runs.

    Parameters
    ----------
    runs : sequence of LabelledRun
        The runs.
    systems : sequence of System
        What is judged, with scores for at least the runs of :func:`judged_runs`.
    target : {"hijack", "failure", "step"}, optional
        The questions to ask; default: those that the labels answer.
    in_sample_too : bool
        Whether figures of runs that a system was fitted on may stand beside others; they are marked.
    draws : int
        Resamplings of the tasks behind each interval; there is none with fewer than :data:`LEAST_TASKS` tasks in a
        class.

    Raises
    ------
    EvaluationError
        If no label answers a question, two systems have one name, or figures would be compared that must not be.
    """
    names = [system.name for system in systems]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise EvaluationError(f"two systems are called {twice!r}")
    chosen = choose(runs, target)
    judged = judged_runs(runs, target)
    if not in_sample_too:
        check_comparable([(system.name, system.fitted_on) for system in systems if not system.reference], judged)
    return Evaluation(
        runs=len(judged),
        steps=sum(run.length for run in judged),
        tasks=len({run.group for run in judged}),
        systems=[
            SystemResult(
                name=system.name,
                fitted_on=system.fitted_on,
                in_sample=in_sample(system.fitted_on, judged),
                reference=system.reference,
                strangers=len(system.strangers),
                first_strangers=system.strangers[:NAMED],
            )
            for system in systems
        ],
        sections=[judge(question, asked, systems, draws=draws) for question, asked in chosen],
        unused=len(runs) - len(judged),
        draws=draws,
    )


def judged_runs(runs: Sequence[LabelledRun], target: Target | None = None) -> list[LabelledRun]:
    """Return the runs whose labels answer a question."""
    used = {case.run.id for _, asked in choose(runs, target) for case in asked}
    return [run for run in runs if run.id in used]


def choose(runs: Sequence[LabelledRun], target: Target | None) -> list[tuple[Question, list[JudgedCase]]]:
    """Return the questions that the labels answer, with their cases.

    Without a target each run is used for its most specific label: hijack, then step, then failure.

    Raises
    ------
    EvaluationError
        If no label answers any of them; the message says what is missing.
    """
    found: list[tuple[Question, list[JudgedCase]]] = []
    lacking: list[str] = []
    for question in QUESTIONS:
        if target not in (None, question.target):
            continue
        asked = cases(question, [run for run in runs if target is not None or run.target == question.target])
        kinds = {case.bad for case in asked}
        if (question.key == "steps" and asked) or len(kinds) == 2:
            found.append((question, asked))
        elif asked:
            kind = "bad" if True in kinds else "good"
            all_are = "the only case is" if len(asked) == 1 else f"all {len(asked):,} cases are"
            lacking.append(f"{question.title}: {all_are} {kind}")
    if not found:
        wanted = f" for the target {target}" if target is not None else ""
        helping = [label for label, answered in HELPING.items() if target in (None, answered)]
        why = "; ".join(lacking) or f"expected {' or '.join(helping)}"
        have = "this run has" if len(runs) == 1 else f"these {len(runs):,} runs have"
        raise EvaluationError(f"{have} no labels to judge by{wanted}: {why}")
    return found


def judge(question: Question, asked: Sequence[JudgedCase], systems: Sequence[System], *, draws: int = DRAWS) -> Section:
    """Judge systems by one question; one of them is compared with each other, see :class:`Section`.

    Parameters
    ----------
    question : Question
        What is asked.
    asked : sequence of JudgedCase
        Its cases, see :func:`choose`.
    systems : sequence of System
        What is judged, one or more.
    draws : int
        Resamplings of the tasks behind each interval.
    """
    runs = list({case.run.id: case.run for case in asked}.values())
    few = few_tasks(asked)
    draws = 0 if few else draws
    tasks = Resamples([case.run.group for case in asked], draws=draws)
    estimates = [_estimates(question, asked, system, tasks) for system in systems]
    compared = next((at for at, system in enumerate(systems) if system.about == question.target), 0)
    return Section(
        question=question.key,
        title=question.title,
        headline=question.headline,
        cases=len(asked),
        bad=sum(case.bad for case in asked),
        tasks=tasks.tasks,
        runs=len(runs),
        note=FEW_TASKS if few else "",
        compared=systems[compared].name,
        rows=[
            _row(question, asked, system, found, None if at == compared else estimates[compared], runs, draws)
            for at, (system, found) in enumerate(zip(systems, estimates, strict=True))
        ],
    )


def few_tasks(asked: Sequence[JudgedCase]) -> bool:
    """Tell whether one of the classes there are, bad or good, comes from fewer than :data:`LEAST_TASKS` tasks."""
    tasks: dict[bool, set[str]] = {}
    for case in asked:
        tasks.setdefault(case.bad, set()).add(case.run.group)
    return any(len(groups) < LEAST_TASKS for groups in tasks.values())


def _estimates(
    question: Question, asked: Sequence[JudgedCase], system: System, tasks: Resamples
) -> dict[str, Estimate]:
    given = answers(question, asked, system)
    return {key: tasks.estimate(answer.groups, answer.compute) for key, answer in given.items()}


def _row(
    question: Question,
    asked: Sequence[JudgedCase],
    system: System,
    found: Mapping[str, Estimate],
    compared: Mapping[str, Estimate] | None,
    runs: Sequence[LabelledRun],
    draws: int,
) -> Row:
    parts = _parts(question, asked, system, draws)
    known = [part for part in parts if part.figure.value is not None]
    return Row(
        system=system.name,
        in_sample=in_sample(system.fitted_on, runs) > 0,
        reference=system.reference,
        figures={
            measure.key: found[measure.key].figure() if measure.key in found else Figure(None)
            for measure in question.measures
        },
        folds=_folds(question, asked, system),
        parts=parts,
        worst=min(known, key=lambda part: part.figure.value or 0.0, default=None),
        differences={
            measure.key: difference(compared[measure.key], found[measure.key], measure)
            for measure in question.measures
            if compared is not None and measure.key in compared and measure.key in found
        },
    )


def difference(compared: Estimate, other: Estimate, measure: Measure) -> FigureDifference:
    """Return the paired difference of two estimates, and what it says of the first of them.

    Examples
    --------
    >>> from coherence.evaluation.judge import CALLS
    >>> auroc, high, low = CALLS.measures[0], Estimate(0.9, np.array([0.9, 0.8])), Estimate(0.7, np.array([0.6, 0.7]))
    >>> difference(high, low, auroc).verdict, difference(high, high, auroc).verdict
    ('better', 'inside the noise')
    """
    figure = compared.minus(other).figure()
    if figure.low is None or figure.high is None:
        return FigureDifference(figure, "not known")
    if figure.low <= 0.0 <= figure.high:
        return FigureDifference(figure, "inside the noise")
    return FigureDifference(figure, "better" if (figure.low > 0) == (measure.better == "higher") else "worse")


def _headline(question: Question, asked: Sequence[JudgedCase], system: System, draws: int) -> Estimate | None:
    """Return the headline's figure on some of the cases; ``None`` where the scores do not allow it."""
    answer = answers(question, asked, system).get(question.headline)
    tasks = Resamples([case.run.group for case in asked], draws=draws)
    return None if answer is None else tasks.estimate(answer.groups, answer.compute)


def _parts(question: Question, asked: Sequence[JudgedCase], system: System, draws: int) -> list[SourceFigure]:
    names = sorted({case.run.part for case in asked})
    parts = []
    for name in names if len(names) > 1 else ():
        own = [case for case in asked if case.run.part == name]
        found = _headline(question, own, system, 0 if few_tasks(own) else draws)
        parts.append(SourceFigure(name, Figure(None) if found is None else found.figure()))
    return parts


def _folds(question: Question, asked: Sequence[JudgedCase], system: System) -> tuple[float, float] | None:
    if few_tasks(asked):
        return None
    folds = folds_of([case.run.group for case in asked])
    parts = ([case for case, at in zip(asked, folds, strict=True) if at == fold] for fold in sorted(set(folds)))
    found = [_headline(question, own, system, 0) for own in parts]
    values = [each.value for each in found if each is not None]
    return None if len(values) < len(found) or np.isnan(values).any() else (min(values), max(values))
