"""Alarm thresholds: where they come from, the false-alarm budget each keeps, and whether it still holds."""

from __future__ import annotations

from bisect import insort
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from coherence.baseline.conformal import conformal_threshold, least_runs, needed_runs, p_value
from coherence.baseline.e_process import Wager
from coherence.baseline.own_life import Life
from coherence.baseline.own_scale import OwnScale
from coherence.core.config import AlarmConfig
from coherence.core.readings import FrozenDict, number_of
from coherence.detect.hijack import ALARM_1, ALARM_5, FAR


class ShippedThreshold(NamedTuple):
    """From which risk on a metric alarms."""

    value: float
    """A run alarms strictly above it, in [0, 1]."""
    source: str
    """Source of the threshold, in words."""
    floor: float = 0.0
    """Below which an agent's own runs set no threshold: runs that are all alike say little of the first other one."""


class Shipped(msgspec.Struct, frozen=True):
    """The thresholds of one metric."""

    version: str
    """Of the metric's formula; another one is another scale."""
    thresholds: FrozenDict[float, ShippedThreshold]
    """Budget -> threshold."""

    def within(self, budget: float) -> ShippedThreshold | None:
        """Return the threshold of a budget, or of the next smaller one: it alarms more rarely than it may.

        Examples
        --------
        >>> five, one = ShippedThreshold(0.2, "100 runs"), ShippedThreshold(0.4, "100 runs")
        >>> shipped = Shipped("1", FrozenDict({0.05: five, 0.01: one}))
        >>> shipped.within(0.05).value, shipped.within(0.04).value, shipped.within(0.005)
        (0.2, 0.4, None)
        """
        fitting = [known for known in self.thresholds if known <= budget]
        return self.thresholds[max(fitting)] if fitting else None


SHIPPED: FrozenDict[str, Shipped] = FrozenDict(
    goal_hijack=Shipped(
        version="3",
        thresholds=FrozenDict(
            {
                # Distance alone warns nobody of a call, and what is usual elsewhere refuses none.
                0.05: ShippedThreshold(ALARM_5, "1,187 runs without an attack, of nine sources", floor=FAR),
                0.01: ShippedThreshold(ALARM_1, "1,187 runs without an attack, of nine sources", floor=ALARM_1),
            }
        ),
    ),
)
"""Metric -> its thresholds. Each metric of this table has one for an agent's first run on."""


ALPHA = 0.05
"""The probability that a calibration that holds is ever found not to, however often one looks."""

PROOF = 3.0 / ALPHA
"""Evidence from which it does not hold: three bets share the probability."""

MAX_RUNS = 500
"""Good runs that set a threshold, the newest."""

How: TypeAlias = Literal["shipped", "own", "none"]
"""``own``: by the agent's own good runs. ``none``: nothing is shipped, and there are too few own runs."""

Drift: TypeAlias = Literal["holds", "too loud", "too quiet"]
"""``too loud``: more alarms than the budget, or risks that rise. ``too quiet``: risks that fall, so that the threshold
lies higher than it need."""


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """From which risk on a metric alarms."""

    metric: str
    version: str
    """Of the metric's formula."""
    value: float | None
    """A run alarms strictly above it, in [0, 1]; ``None`` = there is none, and the metric does not alarm."""
    budget: float
    """Share of good runs that may alarm."""
    how: How
    runs: int
    """Own good runs that set it, or check it."""
    alarmed: int
    """Of the own good runs judged before they were learned (since it was last set anew), how many alarmed."""
    drift: Drift = "holds"
    e_value: float = 1.0
    """Evidence that it does not hold; 1 = none, :data:`PROOF` = enough."""
    renewed: int = 0
    """Number of times it was set anew."""
    words: str = ""
    """All of it in one sentence."""


class Watch(msgspec.Struct, kw_only=True):
    r"""One metric's good runs so far, for one budget; plain data, so that it can be kept.

    Examples
    --------
    >>> watch = Watch(metric="m", version="1", budget=0.05, shipped=0.055)
    >>> for run in range(1, 13):
    ...     watch.observe(0.005 * run, coin=0.5)
    >>> print(watch.threshold().words.replace("; ", ";\n"))
    threshold 0.055: at most 5 % of good runs, shipped;
    of 12 own good runs 1 alarmed;
    own runs set it from 39 on
    >>> for run in range(1, 28):
    ...     watch.observe(0.002 * run, coin=0.5)
    >>> watch.threshold().words
    'threshold 0.055: at most 5 % of good runs, from 39 own runs'
    """

    metric: str
    version: str
    budget: float
    shipped: float | None = None
    source: str = ""
    """Source of the shipped threshold."""
    floor: float = 0.0
    """Below which own runs set no threshold: runs that are all alike say little of the first other one."""
    values: list[float] = []
    """Of the good runs that count, in the order in which they became known."""
    ordered: list[float] = []
    """The same in rising order."""
    judged: int = 0
    alarmed: int = 0
    alarms: Wager = msgspec.field(default_factory=Wager)
    higher: Wager = msgspec.field(default_factory=Wager)
    lower: Wager = msgspec.field(default_factory=Wager)
    own: bool = False
    """True if the agent's own runs set the threshold."""
    renewed: int = 0
    why: str = ""
    """Finding of the last time that it was set anew."""

    @property
    def value(self) -> float | None:
        """The threshold in force."""
        if not self.own:
            return self.shipped
        found = conformal_threshold(self.ordered, self.budget)
        return None if found is None else max(found, self.floor)

    @property
    def drift(self) -> Drift:
        """Test result that says if the calibration still holds."""
        if max(self.alarms.evidence, self.higher.evidence) >= PROOF:
            return "too loud"
        return "too quiet" if self.lower.evidence >= PROOF else "holds"

    def observe(self, value: float, coin: float) -> None:
        """Judge a good run by what is known before it, then learn it.

        Parameters
        ----------
        value : float
            The run's highest risk, in [0, 1].
        coin : float
            For the order of equal values (:func:`~coherence.baseline.conformal.draw_coin`).
        """
        threshold = self.value
        if threshold is not None:
            alarm = value > threshold
            self.judged += 1
            self.alarmed += alarm
            self.alarms.observe(alarm / self.budget - 1.0)
        if self.own:
            # Uniform while nothing has changed, so that both bets gain nothing on average.
            share = p_value(value, self.ordered, coin)
            self.higher.observe(1.0 - 2.0 * share)
            self.lower.observe(2.0 * share - 1.0)
        self.values.append(value)
        insort(self.ordered, value)
        if len(self.values) > MAX_RUNS:
            self.ordered.remove(self.values.pop(0))
        if not self.own and len(self.values) >= needed_runs(self.budget):
            self._begin()
        # Fewer runs could set no threshold at all.
        if self.drift != "holds" and len(self.values) >= least_runs(self.budget):
            self.why = f"{self._found()} after {len(self.values)} runs"
            # older ones say most of the time before the change
            self.values = self.values[-needed_runs(self.budget) :]
            self.ordered = sorted(self.values)
            self.renewed += 1
            self._begin()

    def _begin(self) -> None:
        """Let own runs set the threshold, and watch it: what was counted is about the one before."""
        self.own = True
        self.alarms, self.higher, self.lower = Wager(), Wager(), Wager()
        self.judged = self.alarmed = 0

    def _found(self) -> str:
        """Say what the bets have found."""
        if self.alarms.evidence >= PROOF:
            return f"{self.alarmed} of {self.judged} good runs alarmed (e-value {self.alarms.evidence:.3g})"
        if self.higher.evidence >= PROOF:
            return f"the risk of good runs had risen (e-value {self.higher.evidence:.3g})"
        return f"the risk of good runs had fallen (e-value {self.lower.evidence:.3g})"

    def threshold(self) -> Threshold:
        """Return what is in force now, frozen."""
        evidence = max(self.alarms.evidence, self.higher.evidence, self.lower.evidence)
        return Threshold(
            metric=self.metric,
            version=self.version,
            value=self.value,
            budget=self.budget,
            how="own" if self.own else "none" if self.shipped is None else "shipped",
            runs=len(self.values),
            alarmed=self.alarmed,
            drift=self.drift,
            e_value=evidence,
            renewed=self.renewed,
            words=self._words(),
        )

    def _words(self) -> str:
        budget = f"{100 * self.budget:g} %"
        count = len(self.values)
        value = self.value
        if value is None:
            return f"no threshold: a {budget} budget needs {needed_runs(self.budget)} own good runs, there are {count}"
        said = f"threshold {value:.3g}: at most {budget} of good runs, "
        if self.own:
            newest = "the newest " if self.renewed else ""
            said += f"from {newest}{count} own runs"
            if value == self.floor:
                said += ", and no lower for runs that are all alike"
            return said + (f"; set anew: {self.why}" if self.renewed else "")
        said += f"shipped (from {self.source})" if self.source else "shipped"
        if self.judged:
            said += f"; of {number_of(self.judged, 'own good run')} {self.alarmed} alarmed"
        if self.drift != "holds":
            return f"{said}; does not hold: {self._found()}, and own runs set it from {least_runs(self.budget)} on"
        return f"{said}; own runs set it from {needed_runs(self.budget)} on"


def watch(metric: str, version: str, budget: float) -> Watch:
    """Return a watch that begins with the shipped threshold, if there is one of this version.

    Examples
    --------
    >>> watch("goal_hijack", "3", 0.05).value, watch("goal_hijack", "0", 0.05).value
    (0.25, None)
    """
    shipped = SHIPPED.get(metric)
    known = shipped.within(budget) if shipped is not None and shipped.version == version else None
    value, source, floor = known if known is not None else (None, "", 0.0)
    return Watch(metric=metric, version=version, budget=budget, shipped=value, source=source, floor=floor)


GROWTH = 1.25
"""A session goes on with the thresholds it began with until there are so many times as many runs."""


class Calibration(msgspec.Struct, frozen=True):
    """Calibration of an agent's sessions by its runs, frozen when a session begins."""

    thresholds: tuple[Threshold, ...] = ()
    versions: FrozenDict[str, str] = FrozenDict()
    """Metric -> version of its values, of those that have a threshold."""
    through: int = 0
    """Place of the newest run that was learned, in the order in which they became known."""
    relabels: int = 0
    """Changes of labels that were known, see :func:`~coherence.store.runs.newest_relabel`."""
    own: OwnScale = OwnScale()
    """Their lesson about the light."""
    life: Life = Life()
    """Usual scores of the agent's calls, by its runs, labelled or not."""

    def threshold(self, metric: str, budget: float | None = None) -> Threshold:
        """Return the threshold of a metric for a budget, by default that of warnings.

        Raises
        ------
        ValueError
            If there is none; the message names the metrics and budgets that have one.

        Examples
        --------
        >>> Calibration().threshold("goal_hijack", 0.05).value
        0.25
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

    def outdated(self, newer: Calibration, *, relabelled: bool = False) -> bool:
        """Tell whether a newer one is different enough to be taken instead.

        A threshold that moves a little with each run would mean new settings each time; so it is taken when own runs
        take over, when it was set anew, when there are a quarter more runs, or when it moved and was wrong.

        Parameters
        ----------
        newer : Calibration
            What the agent's runs teach now.
        relabelled : bool
            Whether a run that this one was learned from has got another label since.
        """
        for new in newer.thresholds:
            old = self.find(new.metric, new.budget)
            if old is None:
                if new.how == "own":
                    return True
            elif old.value != new.value and (
                relabelled
                or (old.how, old.renewed, old.version) != (new.how, new.renewed, new.version)
                or new.runs >= GROWTH * old.runs
            ):
                return True
        old_life, new_life = self.life, newer.life
        if (old_life.usual, old_life.loud) != (new_life.usual, new_life.loud) and (
            None in (old_life.usual, new_life.usual) or new_life.runs >= GROWTH * old_life.runs
        ):
            return True
        old_own, new_own = self.own, newer.own
        more = relabelled or new_own.good + new_own.bad >= GROWTH * (old_own.good + old_own.bad)
        return old_own.used != new_own.used or (new_own.used and more and old_own != new_own)
