"""A run over its steps as a matplotlib figure: index on its bands, metrics, and the rules that were active."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coherence.baseline.vitals import VITALS
from coherence.core.errors import MissingExtraError
from coherence.core.readings import Band, excerpt
from coherence.core.strip import COLOURS, SIGNS
from coherence.monitor.monitor import Monitor
from coherence.report.live import scored_monitor
from coherence.report.runs import read_runs
from coherence.report.score import ScoredRun
from coherence.store.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INSTALL = '  pip install "coherence-sensor[plot]"'

MAX_METRICS = 6
"""Metrics that are drawn where none is named: those that moved most."""
MAX_RULES = 8
TITLE_LENGTH = 80
MAX_POINTS = 150
"""Steps up to which each value is marked."""

_MARKS = {Band.GREEN: "o", Band.YELLOW: "^", Band.ORANGE: "D", Band.RED: "s", Band.UNKNOWN: "."}
MIN_LETTER = 0.03
"""Share of the steps that a stretch of one light needs to carry its letter."""
_TINT = 0.18


def plot(
    run: ScoredRun | Monitor | Store | str | Path,
    *,
    session: str | None = None,
    metrics: Sequence[str] | None = None,
) -> Figure:
    """Draw index, pressure, metrics and active rules over the steps of a run; nothing is shown or written.

    Parameters
    ----------
    run : ScoredRun, Monitor, Store or path
        A scored run, a monitor (open or closed), or a store or a transcript, of which the worst run is drawn.
    session : str, optional
        Of a store: AGENT/SESSION, or an agent, whose newest session is drawn.
    metrics : sequence of str, optional
        Names of metrics. Default: the six that moved most.

    Returns
    -------
    matplotlib.figure.Figure
        It belongs to no window: a notebook shows it, ``savefig`` writes it.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    TranscriptError
        If the store cannot be read, or holds no run that is asked for.
    ValueError
        If there is no step to draw yet, or a metric is not among those of the run.

    Examples
    --------
    Needs the extra ``plot``::

        figure = coherence.plot("runs.db", session="coder")
        figure.savefig("coder.png")
    """
    drawn = _run_of(run, session)
    names = _metrics(drawn) if metrics is None else list(metrics)
    known = {name for reading in drawn.readings for name in reading.metrics}
    if missing := [name for name in names if name not in known]:
        raise ValueError(f"metrics: the run has no {missing[0]!r}; it has {', '.join(sorted(known)) or 'none'}")
    rules = _rules(drawn)
    figure = _figure_class()(figsize=(10, 3.2 + 1.6 * bool(names) + 0.35 * len(rules)), layout="constrained")
    heights = [3.0, *([1.8] if names else []), *([0.5 + 0.35 * len(rules)] if rules else [])]
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    _draw_index(axes[0], drawn)
    if names:
        _draw_metrics(axes[1], drawn, names)
    if rules:
        _draw_rules(axes[-1], drawn, rules)
    axes[-1].set_xlabel("step")
    axes[-1].set_xlim(-0.5, len(drawn.readings) - 0.5)
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    steps = len(drawn.readings)
    axes[-1].xaxis.set_major_formatter(lambda at, _: str(drawn.number(int(at))) if 0 <= at < steps else "")
    axes[0].set_title(_plain(drawn.transcript.id or "run", TITLE_LENGTH), loc="left", fontsize="medium")
    made: Figure = figure
    return made


def _run_of(run: ScoredRun | Monitor | Store | str | Path, session: str | None) -> ScoredRun:
    """Return the run that is meant."""
    if session is not None and isinstance(run, ScoredRun | Monitor):
        raise ValueError("session names one of a store; a run or a monitor is one already")
    if isinstance(run, ScoredRun):
        found: ScoredRun | None = run
    elif isinstance(run, Monitor):
        found = scored_monitor(run)
    elif isinstance(run, Store | str | Path):
        found = next(iter(read_runs(run, session=session, sessions=1)), None)
    else:
        raise TypeError(f"run must be a ScoredRun, a Monitor, a Store or a path, not {type(run).__name__}")
    if found is None or not found.readings:
        raise ValueError("there is no step to draw yet: record a message or the result of a tool first")
    return found


def _metrics(run: ScoredRun) -> list[str]:
    """Return the metrics that moved most, in the order of their names."""
    spans: dict[str, float] = {}
    for name in {name for reading in run.readings for name in reading.metrics} - set(VITALS):
        values = [value for reading in run.readings if (value := reading.metrics.get(name)) is not None]
        if len(values) > 1 and max(values) > min(values):
            spans[name] = max(values) - min(values)
    return sorted(sorted(spans, key=lambda name: (-spans[name], name))[:MAX_METRICS])


def _rules(run: ScoredRun) -> list[str]:
    """Return the rules that were active, most often first."""
    counts = Counter(each.rule for decision in run.decisions for each in decision.findings if each.active)
    return [rule for rule, _ in counts.most_common(MAX_RULES)]


def _draw_index(axes: Any, run: ScoredRun) -> None:
    steps = range(len(run.readings))
    lights = run.lights if run.decisions else run.bands
    start = 0
    for light, stretch in groupby(lights):
        length = len(list(stretch))
        axes.axvspan(start - 0.5, start + length - 0.5, color=COLOURS[light], alpha=_TINT, linewidth=0)
        if length >= MIN_LETTER * len(lights):
            letter = SIGNS[light][-1]
            axes.text(start + (length - 1) / 2, 0.03, letter, ha="center", fontsize="small", fontweight="bold")
        start += length
    index = [_number(reading.coherence_index) for reading in run.readings]
    axes.plot(steps, index, color="#444444", linewidth=1.2, label="index")
    if run.appraisals:
        pressure = [appraisal.pressure for appraisal in run.appraisals]
        axes.plot(steps, pressure, color="#6b5fb5", linewidth=1, linestyle="--", label="pressure (0 = calm)")
    for band, mark in ((band, mark) for band, mark in _MARKS.items() if band is not Band.UNKNOWN):
        at = [step for step in steps if lights[step] is band]
        if at and len(steps) <= MAX_POINTS:
            label = f"{SIGNS[band][-1]} {band.value}"
            values = [index[step] for step in at]
            axes.plot(at, values, mark, color=COLOURS[band], markeredgecolor="#333333", label=label)
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("index (1 = on course)")
    _legend(axes)


def _draw_metrics(axes: Any, run: ScoredRun, names: Sequence[str]) -> None:
    steps = range(len(run.readings))
    for name, style in zip(names, ["-", "--", "-.", ":"] * len(names), strict=False):
        way = "high is bad" if name in run.inverted else "high is good"
        values = [_number(reading.metrics.get(name)) for reading in run.readings]
        axes.plot(steps, values, style, linewidth=1.2, label=_plain(f"{name} ({way})"))
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("metrics")
    _legend(axes)


def _draw_rules(axes: Any, run: ScoredRun, rules: Sequence[str]) -> None:
    severities = {"guide": Band.YELLOW, "warn": Band.ORANGE, "block": Band.RED}
    for row, rule in enumerate(rules):
        for band in severities.values():
            at = [
                step
                for step, decision in enumerate(run.decisions)
                for each in decision.findings
                if each.rule == rule and each.active and severities.get(each.acts) is band
            ]
            axes.plot(at, [row] * len(at), _MARKS[band], color=COLOURS[band], markeredgecolor="#333333", markersize=5)
    axes.set_yticks(range(len(rules)), [_plain(rule) for rule in rules], fontsize="x-small")
    axes.set_ylim(len(rules) - 0.5, -0.5)
    axes.grid(axis="y", linewidth=0.3)


def _legend(axes: Any) -> None:
    """Name the lines beside the picture, where they cover nothing."""
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.03), frameon=False)


def _number(value: float | None) -> float:
    """Return a value, not a number where it is unknown: a gap in a line."""
    return float("nan") if value is None else value


def _plain(text: str, length: int = 40) -> str:
    """Return text of others for a picture: dollar signs would begin a formula, a first underscore hide a label."""
    return excerpt(text, length).replace("$", r"\$").lstrip("_")


@cache
def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", INSTALL) from error

    class RunFigure(Figure):  # type: ignore[misc]  # which has a type only where it is installed
        """A figure that a notebook shows without ``pyplot``, which would keep it and may open a window."""

        def _repr_png_(self) -> bytes:
            written = BytesIO()
            self.savefig(written, format="png", bbox_inches="tight")
            return written.getvalue()

    return RunFigure
