"""Scores that any other system has given, from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from math import inf, isfinite
from pathlib import Path
from typing import Any

from coherence.core.readings import excerpt, number_of
from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.runs import LabelledRun
from coherence.evaluation.systems import NAMED, NOTHING, FittedOn, Scores, System, highest, in_sample
from coherence.providers.readers.source import Document, read_source

EXPECTED = "{id, score, step_scores}, one run a line, higher = worse"

SHOWN = 5
"""Runs named in a message."""


def read_scores(
    path: str | Path, runs: Sequence[LabelledRun], others: Set[str] = frozenset()
) -> tuple[System, list[str]]:
    """Read the scores of some runs from JSON lines, plain or gzipped.

    A line is ``{"id": ..., "score": number or null, "step_scores": [number or null, ...] or null}``: higher = worse,
    ``step_scores[i]`` may use steps 0 to ``i`` only, ``null`` = says nothing. Without ``score`` a run's score is its
    highest step's. The first line may be ``{"system": name, "fitted_on": "none" or a split or [groups]}``.

    Parameters
    ----------
    path : str or Path
        The file.
    runs : sequence of LabelledRun
        Those that are judged; each must have a line.
    others : set of str
        Ids of runs that are not judged, which may have one. Lines of any other id are passed over, and told.

    Returns
    -------
    System
        Named by the first line, else by the file.
    list of str
        What should be known about the file: that it says nothing about fitting, names what these runs are not of, or
        scores runs that there are not.

    Raises
    ------
    TranscriptError
        The file cannot be read as JSON lines.
    EvaluationError
        No run is known, one is missing or comes twice, a list has the wrong length, or a score is no finite number;
        the message says where.
    """
    source = read_source(path)
    if source.torn is not None:
        raise source.torn
    documents = list(source.documents)
    name, warnings = Path(path).name.split(".")[0], []
    fitted_on: FittedOn = NOTHING
    first = documents[0].value
    if isinstance(first, dict) and "id" not in first and ("system" in first or "fitted_on" in first):
        name, fitted_on = _header(path, documents.pop(0), name)
    else:
        first = {}
    if "fitted_on" not in first:
        warnings.append(f"{path}: does not say what it was fitted on ({{system, fitted_on}}): taken as nothing")
    elif fitted_on != NOTHING and not in_sample(fitted_on, runs):
        warnings.append(f"{path}: {_held_out(fitted_on, runs)}: taken as fitted on none of them")
    wanted = {run.id: run for run in runs}
    step_scores: dict[str, Scores | None] = {}
    run_scores: dict[str, float | None] = {}
    strangers: dict[str, None] = {}  # as an ordered set
    for document in documents:
        where = _where(path, document)
        id, line = _line(where, document.value)
        if id in run_scores:
            raise EvaluationError(f"{where}: a second line for run {id!r}")
        run = wanted.get(id)
        if run is None:
            if id not in others:
                strangers[id] = None
        else:
            step_scores[id] = _step_scores(where, line, run)
            run_scores[id] = _run_score(where, line, step_scores[id])
    if not run_scores and strangers:
        raise EvaluationError(
            f"{path}: no run has one of its ids: {_some(list(strangers))}; there are {_some(list(wanted))}"
        )
    missing = [run.id for run in runs if run.id not in run_scores]
    if missing:
        some = _some(missing, SHOWN)
        raise EvaluationError(f"{path}: no scores for {len(missing)} of {len(runs)} runs: {some}")
    if strangers:
        count = number_of(len(strangers), "id")
        warnings.append(f"{path}: {count} that no run has, passed over: {_some(list(strangers))}")
    system = System(
        name=name,
        fitted_on=fitted_on,
        step_scores=step_scores,
        run_scores=run_scores,
        strangers=tuple(strangers),
    )
    return system, warnings


def _some(ids: Sequence[str], most: int = NAMED) -> str:
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return ", ".join(repr(excerpt(id)) for id in ids[:most]) + more


def scores_lines(system: System) -> Iterator[str]:
    """Yield the lines of a file that :func:`read_scores` reads back.

    Examples
    --------
    >>> from coherence.evaluation.systems import of_steps
    >>> for line in scores_lines(of_steps("mine", {"a": [None, 0.5]})):
    ...     print(line, end="")
    {"schema": "coherence.score.step-scores/1", "system": "mine", "fitted_on": "none"}
    {"schema": "coherence.score.step-scores/1", "id": "a", "score": 0.5, "step_scores": [null, 0.5]}
    """
    schema = {"schema": "coherence.score.step-scores/1"}
    yield json.dumps({**schema, "system": system.name, "fitted_on": system.fitted_on}) + "\n"
    for id, score in system.run_scores.items():
        yield json.dumps({**schema, "id": id, "score": score, "step_scores": system.step_scores[id]}) + "\n"


def _header(path: str | Path, document: Document, name: str) -> tuple[str, FittedOn]:
    header = document.value
    system, fitted = header.get("system", name), header.get("fitted_on", NOTHING)
    where = _where(path, document)
    if not isinstance(system, str) or not system.strip():
        raise EvaluationError(f"{where}: system must be a name, not {system!r}")
    if isinstance(fitted, list) and all(isinstance(group, str | int) for group in fitted):
        return system, tuple(map(str, fitted)) or NOTHING  # an empty list says the same
    if not isinstance(fitted, str) or not fitted:
        raise EvaluationError(f"{where}: fitted_on must be 'none', the name of a split, or a list of groups")
    return system, fitted


def _held_out(fitted_on: FittedOn, runs: Sequence[LabelledRun]) -> str:
    """Say that none of the runs belongs to what a system was fitted on, which may be true or a slip."""
    if not isinstance(fitted_on, str):
        return f"fitted_on holds {number_of(len(fitted_on), 'group')}, but none of these runs"
    splits = ", ".join(sorted({repr(run.split) for run in runs if run.split is not None}))
    return f"fitted_on is {fitted_on!r}, but these runs are of {f'the split {splits}' if splits else 'no split'}"


def _where(path: str | Path, document: Document) -> str:
    return str(path) if document.line is None else f"{path}:{document.line}"


def _line(where: str, value: Any) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str | int):
        raise EvaluationError(f"{where}: expected {EXPECTED}")
    if "score" not in value and "step_scores" not in value:
        raise EvaluationError(f"{where}: neither score nor step_scores; expected {EXPECTED}")
    return str(value["id"]), value


def _step_scores(where: str, line: Mapping[str, Any], run: LabelledRun) -> list[float | None] | None:
    scores = line.get("step_scores")
    if scores is None:
        return None
    if not isinstance(scores, list):
        raise EvaluationError(f"{where}: step_scores must be a list or null")
    if len(scores) != run.length:
        raise EvaluationError(f"{where}: {len(scores)} step_scores, but run {run.id!r} has {run.length} steps")
    return [_number(f"{where}: step_scores[{at}]", score) for at, score in enumerate(scores)]


def _run_score(where: str, line: Mapping[str, Any], steps: Scores | None) -> float | None:
    if "score" in line:
        return _number(f"{where}: score", line["score"])
    top = highest(steps or ())
    return top if isfinite(top) else None


def _number(what: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EvaluationError(f"{what} must be a finite number or null, not {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of 309 digits or more
        number = inf
    if not isfinite(number):
        raise EvaluationError(f"{what} must be a finite number or null, not {number!r}")
    return number
