"""What an agent's labelled runs have taught: thresholds and weights, from the store.

Everything is computed from the runs themselves, in the order in which they became known, so a label that is changed
changes all that followed from it, and many processes need not agree on anything. Only what the oldest runs have taught
is kept as such, when they leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from coherence.alarms import AlarmConfig
from coherence.appraise.calibration import Threshold, Watch, watch
from coherence.appraise.combiner import Combination, Combiner
from coherence.appraise.conformal import draw_coin
from coherence.appraise.shipped import SHIPPED
from coherence.records import FrozenDict
from coherence.store.runs import LabelledRun, labelled_runs, read_learned, replace_runs
from coherence.store.store import Store

MOST_LABELLED, SPARE = 500, 50
"""Labelled runs from which everything is computed; when there are ``SPARE`` more, the oldest are learned for good."""

GROWTH = 1.25
"""A session goes on with the thresholds it began with until there are so many times as many runs."""


class Calibration(msgspec.Struct, frozen=True):
    """What an agent's sessions take from its runs, frozen when a session begins."""

    thresholds: tuple[Threshold, ...] = ()
    combination: Combination = Combination()
    versions: FrozenDict[str, str] = FrozenDict()
    """Metric -> version of its values, of those that have a threshold or a weight."""

    def threshold(self, metric: str, budget: float | None = None) -> Threshold:
        """Return the threshold of a metric for a budget, by default that of warnings.

        Raises
        ------
        ValueError
            If there is none; the message names the metrics and budgets that have one.

        Examples
        --------
        >>> Calibration().threshold("goal_hijack", 0.05).value
        0.26
        >>> Calibration().threshold("goal_drift")
        Traceback (most recent call last):
            ...
        ValueError: no threshold is set for the metric 'goal_drift'; there are: goal_hijack
        """
        found = self.find(metric, budget)
        if found is not None:
            return found
        budgets = [f"{threshold.budget:g}" for threshold in self.thresholds if threshold.metric == metric]
        if budgets:
            known = ", ".join(budgets)
            raise ValueError(f"metric {metric!r} has no threshold for the budget {budget!r}; there are: {known}")
        known = ", ".join(sorted({*SHIPPED, *(threshold.metric for threshold in self.thresholds)}))
        raise ValueError(f"no threshold is set for the metric {metric!r}; there are: {known}")

    def find(self, metric: str, budget: float | None = None) -> Threshold | None:
        """Return what :meth:`threshold` does, ``None`` where there is none."""
        for threshold in self.thresholds:
            if threshold.metric == metric and budget in (None, threshold.budget):
                return threshold
        shipped = SHIPPED.get(metric)
        if shipped is None:
            return None
        return watch(metric, shipped.version, AlarmConfig().budget if budget is None else budget).threshold()

    def outdated(self, newer: Calibration) -> bool:
        """Tell whether a newer one is different enough to be taken instead.

        A threshold that moves a little with each run would mean new settings each time; so it is taken when own runs
        take over, when it was set anew, or when there are a quarter more runs.
        """
        for new in newer.thresholds:
            old = self.find(new.metric, new.budget)
            if old is None:
                if new.how == "own":
                    return True
            elif old.value != new.value and (
                (old.how, old.renewed, old.version) != (new.how, new.renewed, new.version)
                or new.runs >= GROWTH * old.runs
            ):
                return True
        old_sum, new_sum = self.combination, newer.combination
        return new_sum.proven != old_sum.proven or (new_sum.proven and new_sum.runs >= GROWTH * old_sum.runs)


class Learned(msgspec.Struct):
    """What runs that have left the store have taught."""

    watches: list[Watch] = []
    combiner: Combiner | None = None


class Calibrator:
    """Learn an agent's labelled runs, one after another.

    Parameters
    ----------
    config : AlarmConfig
        The budgets.
    versions : mapping
        Metric -> version of its values now; those of another version do not count.
    weights : mapping
        Metric -> weight in the index, with which the combiner begins.
    metrics : iterable of str
        Metrics that get a threshold beside those of :data:`~coherence.appraise.shipped.SHIPPED`.
    learned : Learned, optional
        Where to go on.
    """

    def __init__(
        self,
        config: AlarmConfig,
        versions: Mapping[str, str],
        weights: Mapping[str, float],
        metrics: Iterable[str] = (),
        learned: Learned | None = None,
    ) -> None:
        learned = learned or Learned()
        self.versions = versions = {name: shipped.version for name, shipped in SHIPPED.items()} | dict(versions)
        watched = [name for name in dict.fromkeys((*SHIPPED, *metrics)) if name in versions]
        self.watches = [
            _taken_up(watch(name, versions[name], budget), learned.watches)
            for name in watched
            for budget in config.budgets
        ]
        start = {name: float(weight) for name, weight in weights.items() if weight > 0.0}
        kept = learned.combiner
        self.combiner = kept if kept is not None and kept.start == start else Combiner(start=start)

    def take(self, agent: str, run: LabelledRun) -> None:
        """Learn a run."""
        risks = {metric: risk for (metric, version), risk in run.maxima.items() if self.versions.get(metric) == version}
        for each in self.watches:
            if run.good and each.metric in risks:
                each.take(risks[each.metric], draw_coin(agent, run.session, str(run.run), each.metric))
        self.combiner.take(risks, good=run.good)

    def calibration(self) -> Calibration:
        """Return what is in force now, frozen."""
        thresholds = tuple(each.threshold() for each in self.watches)
        names = {*self.combiner.start, *(each.metric for each in self.watches)}
        versions = {name: self.versions[name] for name in sorted(names) if name in self.versions}
        return Calibration(thresholds, self.combiner.combination(), FrozenDict(versions))

    def learned(self) -> Learned:
        """Return what was learned so far, to be kept."""
        return Learned(self.watches, self.combiner)


def _taken_up(fresh: Watch, kept: Sequence[Watch]) -> Watch:
    """Return the kept watch of the same metric, version and budget; else a new one learns the runs of another."""
    same = [each for each in kept if (each.metric, each.version) == (fresh.metric, fresh.version)]
    for each in same:
        if each.budget == fresh.budget and (each.own or each.shipped == fresh.shipped):
            each.shipped, each.source = fresh.shipped, fresh.source
            return each
    for value in same[0].values if same else ():  # of another budget, or another threshold is shipped now
        fresh.take(value, 0.5)
    return fresh


def read_calibrator(
    store: Store,
    agent: str,
    config: AlarmConfig,
    versions: Mapping[str, str],
    weights: Mapping[str, float],
    metrics: Sequence[str] = (),
    *,
    settle: bool = True,
) -> Calibrator:
    """Return what an agent's labelled runs in a store have taught; parameters as those of :class:`Calibrator`.

    Of very many runs the oldest are learned for good here, with these weights and metrics, and leave the store; not so
    with ``settle=False``, which only looks.
    """
    runs = labelled_runs(store, agent)  # before what was learned: a run that leaves meanwhile is in both, and told
    if settle and len(runs) > MOST_LABELLED + SPARE:
        with store.transaction() as transaction:
            runs = labelled_runs(transaction, agent)
            old, calibrator = _begun(read_learned(transaction, agent), runs, config, versions, weights, metrics)
            old = old[: max(len(old) - MOST_LABELLED, 0)]
            for run in old:
                calibrator.take(agent, run)
            if old:
                replace_runs(transaction, agent, old[-1].known, msgspec.msgpack.encode(calibrator.learned()))
    left, calibrator = _begun(read_learned(store, agent), runs, config, versions, weights, metrics)
    for run in left:
        calibrator.take(agent, run)
    return calibrator


def _begun(
    kept: tuple[int, bytes] | None,
    runs: list[LabelledRun],
    config: AlarmConfig,
    versions: Mapping[str, str],
    weights: Mapping[str, float],
    metrics: Sequence[str],
) -> tuple[list[LabelledRun], Calibrator]:
    """Return the runs that have not been learned for good, and a calibrator that has learned the others."""
    through, learned = 0, None
    if kept is not None:
        through = kept[0]
        with suppress(msgspec.DecodeError, ValueError):  # of another version of this package: its runs are gone
            learned = msgspec.msgpack.decode(kept[1], type=Learned)
    calibrator = Calibrator(config, versions, weights, metrics, learned)
    return [run for run in runs if run.known > through], calibrator
