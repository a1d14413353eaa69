"""Words for figures, the same on a terminal and on a page."""

from __future__ import annotations

from coherence.core.readings import number_of
from coherence.evaluation.bootstrap import Figure
from coherence.evaluation.comparison import LEAST_TASKS, Evaluation, Section
from coherence.evaluation.judge import QUESTIONS, Measure

QUESTION = {question.key: question for question in QUESTIONS}

NOT_SAID = (
    "A figure is about these runs, agents and attacks. It does not say how another agent fails, how an attacker who "
    "knows the score words it, or whether a single alarm is true."
)


def valued(value: float | None, measure: Measure, *, signed: bool = False) -> str:
    """Return a value as it is shown; ``n/a`` where labels or scores lack.

    Examples
    --------
    >>> from coherence.evaluation.judge import CALLS
    >>> [valued(0.9351, CALLS.measures[0]), valued(13.04, CALLS.measures[1]), valued(None, CALLS.measures[0])]
    ['0.935', '13.0', 'n/a']
    """
    if value is None:
        return "n/a"
    digits = 3 if measure.better == "higher" else 1
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


def spread(figure: Figure, measure: Measure, *, signed: bool = False) -> str:
    """Return the 95 % interval as it is shown, empty where there is none.

    Examples
    --------
    >>> from coherence.evaluation.judge import CALLS
    >>> spread(Figure(0.935, 0.9, 0.96), CALLS.measures[0])
    '0.90-0.96'
    >>> spread(Figure(0.1, -0.05, 0.2), CALLS.measures[0], signed=True)
    '-0.05 to +0.20'
    """
    if figure.low is None or figure.high is None:
        return ""
    digits = 2 if measure.better == "higher" else 0
    if signed:
        return f"{figure.low:+.{digits}f} to {figure.high:+.{digits}f}"
    return f"{figure.low:.{digits}f}-{figure.high:.{digits}f}"


def counted(found: Evaluation) -> str:
    """Return what was judged, in numbers."""
    have = "has" if found.unused == 1 else "have"
    unused = f"; {number_of(found.unused, 'run')} {have} no label that is asked about" if found.unused else ""
    runs, tasks, steps = (found.runs, "labelled run"), (found.tasks, "task"), (found.steps, "step")
    return f"{number_of(*runs)} of {number_of(*tasks)}, {number_of(*steps)}{unused}"


def asked(section: Section) -> str:
    """Return what a section's figures were computed from."""
    question = QUESTION[section.question]
    good = f" and {_cases(section.cases - section.bad, question.good)}" if question.good else ""
    return f"{_cases(section.bad, question.bad)}{good}, of {number_of(section.tasks, 'task')}"


def _cases(count: int, plural: str) -> str:
    """Return a count with what a question calls its cases: some kind of runs or calls."""
    words = plural if count != 1 else plural.replace("runs", "run", 1).replace("calls", "call", 1)
    return f"{count:,} {words}"


def notes(found: Evaluation) -> list[str]:
    """Return what the columns mean, each once, and what they cannot say."""
    said: dict[str, str] = {}
    for section in found.sections:
        for measure in QUESTION[section.question].measures:
            if measure.says:
                said.setdefault(measure.title, f"{measure.title}: {measure.says}.")
    return [
        *said.values(),
        "An alarm figure of 100: it says nothing of too many of the bad ones, and would have to alarm always.",
        f"Below a figure: 95 % interval over tasks, drawn again {number_of(found.draws, 'time')}, none where a class "
        f"has fewer than {LEAST_TASKS} tasks; differences are of the same draws. Folds: the lowest and the highest of "
        "five, none with so few tasks, or where a fold has no figure. "
        "The verdict is on the system that the others are taken from.",
        NOT_SAID,
    ]


def in_sample_note(found: Evaluation) -> list[str]:
    """Return what the star means, nothing where there is none."""
    fitted = [system for system in found.systems if system.in_sample]
    if not fitted:
        return []
    names = ", ".join(f"{system.name} ({number_of(system.in_sample, 'run')})" for system in fitted)
    return [f"* in-sample, too good by an unknown amount: fitted or tuned on some of these runs: {names}."]
