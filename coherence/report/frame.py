"""Scored runs as a table for pandas: one row a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from coherence.core.errors import MissingExtraError
from coherence.report.score import ScoredRun

if TYPE_CHECKING:
    import pandas

INSTALL = '  pip install "coherence-sensor[pandas]"'

METRIC = "metric."
"""Beginning of the name of a metric's column, as in the tables of ``coherence export --parquet``."""

COLUMNS = (
    *("run", "step", "ts", "role", "tool", "error", "band", "index", "risk", "cause", "coverage"),
    *("pressure", "mode", "decision", "findings"),
)
"""Columns of each table; those of the metrics follow, sorted."""


def frame_of(runs: Iterable[ScoredRun]) -> pandas.DataFrame:
    """Return one row for each step of some runs.

    ``ts`` is a time in UTC, ``index``, ``risk``, ``coverage``, ``pressure`` and the metrics are in [0, 1], and
    ``findings`` holds the names of the active rules. What is unknown is missing.

    Raises
    ------
    MissingExtraError
        If pandas is not installed.
    """
    frames = _pandas()
    rows = [row for run in runs for row in _rows(run)]
    metrics = sorted({name for row in rows for name in row if name.startswith(METRIC)})
    frame = frames.DataFrame(rows, columns=[*COLUMNS, *metrics])
    numbers = ["index", "risk", "coverage", "pressure", *metrics]
    frame[numbers] = frame[numbers].astype("float64")
    frame["ts"] = frames.to_datetime(frame["ts"].astype("float64"), unit="s", utc=True)
    return frame


def _rows(run: ScoredRun) -> Iterable[dict[str, Any]]:
    for at, (step, reading) in enumerate(zip(run.transcript.steps, run.readings, strict=True)):
        appraisal = run.appraisals[at] if run.appraisals else None
        decision = run.decisions[at] if run.decisions else None
        yield {
            "run": run.transcript.id,
            "step": at,
            "ts": step.ts,
            "role": step.role,
            "tool": step.tool_name or ", ".join(call.name for call in step.tool_calls),
            "error": step.is_error,
            "band": str(reading.band),
            "index": reading.coherence_index,
            "risk": reading.risk,
            "cause": reading.cause,
            "coverage": reading.coverage,
            "pressure": None if appraisal is None else appraisal.pressure,
            "mode": None if appraisal is None else str(appraisal.mode),
            "decision": None if decision is None else decision.kind,
            "findings": [] if decision is None else [each.rule for each in decision.findings if each.active],
            **{f"{METRIC}{name}": value for name, value in reading.metrics.items()},
        }


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("pandas", INSTALL) from error
    return pandas
