"""The metrics of this package and of plug-ins as systems: scored on the path that a live agent's events take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from coherence.baseline.vitals import VITALS, MetricSet, metric_set
from coherence.core.config import MonitorConfig
from coherence.core.errors import CoherenceError
from coherence.core.registry import available, create_metric, is_scalar, lookup
from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.runs import LabelledRun, Target
from coherence.evaluation.systems import NOTHING, FittedOn, System, of_steps
from coherence.report.score import ScoredRun, score_transcript
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.reducer import AgentState

ALARMS: dict[str, Target] = {
    "goal_hijack": "hijack",
    "grounding": "failure",
    "unsupported_assumption": "step",
}
"""Metrics that are made to alarm, and of what; those that are registered are evaluated where none is named."""

INDEX, PRESSURE = "index", "pressure"
"""Names of what is no metric: one minus the coherence index, and the pressure."""

OWN_SPLIT = "dev"
"""The split of the labelled runs that were looked at while this package's metrics and constants were made: figures on
it are in-sample for all of them."""

OWN = "coherence-sensor"


def default_names() -> list[str]:
    """Return what is evaluated where nothing is named: the alarms there are, and the index."""
    known = {plugin.name for plugin in available("metrics")}
    return [*(name for name in ALARMS if name in known), INDEX]


def check_name(name: str) -> None:
    """Raise EvaluationError for a name that is no metric, no vital and neither ``index`` nor ``pressure``."""
    if name in (INDEX, PRESSURE) or name in VITALS:
        return
    try:
        create_metric(name, AgentState(MonitorConfig()))
    except CoherenceError as error:
        others = ", ".join((INDEX, PRESSURE, *VITALS))
        raise EvaluationError(f"{error}; besides: {others}") from error


def _measured(config: MonitorConfig, *, embeds: bool = True) -> MetricSet:
    state = AgentState(config)
    named = [create_metric(name, state) for name in config.metrics if name not in VITALS]
    return metric_set(config, state, config.budget, named, embeds=embeds)


def embeds(names: Sequence[str], config: MonitorConfig | None = None) -> bool:
    """Tell whether any of these, or of the settings' own weights, needs texts embedded: some 10 ms a text.

    Examples
    --------
    >>> embeds(["error_rate", "repetition"]), embeds(["goal_drift"]), embeds(["index"])
    (False, True, True)
    """
    compared = {metric.name for metric in _measured(MonitorConfig()).vectors}
    weights = config.weights if config is not None and isinstance(config.weights, Mapping) else {}
    weighed = [plugin.name for plugin in available("metrics") if plugin.name in weights]
    return any(
        name in (INDEX, PRESSURE)
        or name in compared
        or (name not in VITALS and not is_scalar(create_metric(name, AgentState(MonitorConfig()))))
        for name in (*names, *weighed)
    )


def fitted_on(name: str) -> FittedOn:
    """Return what a metric was tuned on: :data:`OWN_SPLIT` for this package's, else its attribute ``fitted_on``.

    Examples
    --------
    >>> fitted_on("index"), fitted_on("goal_drift")
    ('dev', 'dev')
    """
    origin = next((plugin.origin for plugin in available("metrics") if plugin.name == name), OWN)
    if origin == OWN:
        return OWN_SPLIT
    declared = getattr(lookup("metrics", name), "fitted_on", NOTHING)
    return declared if isinstance(declared, str) else tuple(map(str, declared))


def measure(
    names: Sequence[str],
    runs: Sequence[LabelledRun],
    *,
    cache: EmbeddingCache | None,
    config: MonitorConfig | None = None,
    on_step: Callable[[int], object] | None = None,
) -> list[System]:
    """Score runs by metrics, vitals, the index or the pressure; a score is a risk: higher = worse.

    Parameters
    ----------
    names : sequence of str
        What to score by, see :func:`check_name`.
    runs : sequence of LabelledRun
        The runs.
    cache : EmbeddingCache, optional
        Without one nothing is embedded, see :func:`embeds`.
    config : MonitorConfig, optional
        The monitor's settings. Metrics that are only asked for here do not change the index.
    on_step : callable, optional
        Called after each step with the number of steps of its run that are done.
    """
    config = config or MonitorConfig()
    measured = _measured(config, embeds=cache is not None)
    known = {INDEX, PRESSURE, *config.metrics, *(metric.name for metric in measured.vectors)}
    known |= {metric.name for metric in measured.scalars}
    extra = [name for name in names if name not in known]
    if extra and INDEX in names:  # in one pass they would count in the index
        apart = [[name for name in names if name != INDEX], [INDEX]]
        parts = [measure(part, runs, cache=cache, config=config, on_step=on_step) for part in apart]
        found = dict(zip([*apart[0], INDEX], [*parts[0], *parts[1]], strict=True))
        return [found[name] for name in names]
    steps: dict[str, dict[str, list[float | None]]] = {name: {} for name in names}
    for run in runs:
        scored = score_transcript(
            run.transcript,
            embedder=cache if cache is not None else False,
            window=config.window,
            metrics=[*config.metrics, *extra],
            config=config,
            on_step=on_step,
        )
        for name in names:
            steps[name][run.id] = risks(scored, name)
    return [of_steps(name, steps[name], fitted_on=fitted_on(name), about=ALARMS.get(name)) for name in names]


def risks(run: ScoredRun, name: str) -> list[float | None]:
    """Return the risk of each of the agent's steps by one of a scored run's metrics, the index or the pressure.

    A value where high is bad is a risk as it stands; else one minus the value is. ``None`` = unknown, or a step of a
    user or a tool.
    """
    if name == INDEX:
        return run.risks
    if name == PRESSURE:
        return run.own_steps([appraisal.pressure for appraisal in run.appraisals])
    values = [reading.metrics.get(name) for reading in run.readings]
    return run.own_steps([value if value is None or name in run.inverted else 1.0 - value for value in values])
