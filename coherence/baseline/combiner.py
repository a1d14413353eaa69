r"""One risk of several metrics: a fixed weighted sum, until an agent's labelled runs prove other weights better.

Each metric's risk (higher = worse) has a weight of 0 or more, so more risk of one metric never lowers the sum. The
weights learn from labelled runs, taken in blocks: as soon as a block holds a good and a bad run, its pairs are judged
with the weights that were known *before* it, by the start weights as well, and only then learned. In what share of its
pairs the bad run does not lie above the good one is the loss; the difference of the two losses, in [-1, 1], is what
somebody bets on (:class:`~coherence.baseline.e_process.Wager`). While labels say nothing, or other weights are no
better, the capital ever reaches ``1 / ALPHA`` with probability ``ALPHA`` at most, however often one looks. Until it
does, the output stays within :data:`BOUND` of the fixed sum. Afterwards the same bet runs the other way, and if it
reaches the limit the fixed sum is back.

Learning is exponentiated gradient on the logistic loss of pairs,
:math:`v_m \leftarrow v_m \exp(\eta k\, \overline{\sigma(-k \Delta s) \Delta x_m})`: two constants, no matrix, and no
weight below 0.

References
----------
Kivinen, Warmuth (1997), Exponentiated gradient versus gradient descent for linear predictors, Information and
Computation 132(1). Dawid (1984), Present position and potential developments: the prequential approach, Journal of the
Royal Statistical Society A 147(2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from coherence.baseline.e_process import Wager
from coherence.core.readings import FrozenDict

ALPHA = 0.05
"""The probability of ever leaving the fixed sum for weights that are no better."""

PROOF = 1.0 / ALPHA

BOUND = 0.02
"""Distance by which the output may lie from the fixed sum before there is proof."""

RATE = 0.25
"""Of learning, a block."""

STEEPNESS = 10.0
"""A pair whose risks differ by 0.1 the right way teaches about a quarter of a wrong one."""

FARTHEST = math.log(20.0)
"""No weight moves farther than by a factor of 20 from its start, so none is lost for good."""

MAX_WAITING = 64
"""Runs of a block that wait for one of the other kind, the newest."""

Risks = Mapping[str, float]
"""Metric -> risk in [0, 1], of those that are known."""


class Combination(msgspec.Struct, frozen=True):
    """Weights in force, frozen for a session."""

    start: FrozenDict[str, float] = FrozenDict()
    """Metric -> weight of the fixed sum."""
    learned: FrozenDict[str, float] = FrozenDict()
    """Metric -> weight that labelled runs gave it, on the scale of ``start``."""
    proven: bool = False
    """True if the learned weights are in use; else they may move the output by :data:`BOUND`."""
    runs: int = 0
    """Labelled runs that were learned from."""
    e_value: float = 1.0
    """Evidence for the change that would come next: to the learned weights, or back."""

    def risk(self, risks: Risks, fixed: float | None = None) -> float | None:
        """Return one risk in [0, 1] of those that are known; ``None`` if none of them has a weight.

        Parameters
        ----------
        risks : mapping
            Metric -> risk in [0, 1].
        fixed : float, optional
            The fixed sum, where it is known already.

        Examples
        --------
        >>> start, learned = FrozenDict(a=0.5, b=0.5), FrozenDict(a=0.9, b=0.1)
        >>> Combination(start, learned).risk({"a": 1.0, "b": 0.0})
        0.52
        >>> Combination(start, learned, proven=True).risk({"a": 1.0, "b": 0.0})
        0.9
        """
        fixed = weighted(self.start, risks) if fixed is None else fixed
        if fixed is None or not self.learned or self.learned == self.start:
            return fixed  # to the bit, and where an unknown value counts as 0 too
        learned = weighted(self.learned, risks)
        if learned is None or self.proven:
            return learned if learned is not None else fixed
        return min(max(learned, fixed - BOUND), fixed + BOUND)


class Combiner(msgspec.Struct, kw_only=True):
    """Weights learned from an agent's labelled runs so far; plain data, so that it can be kept.

    Examples
    --------
    A metric that tells bad runs from good ones, and one that does not:

    >>> combiner = Combiner(start={"tells": 0.1, "noise": 0.9})
    >>> for run in range(30):
    ...     noise = run * 37 % 30 / 30
    ...     combiner.observe({"tells": 0.2, "noise": noise}, good=True)
    ...     combiner.observe({"tells": 0.6, "noise": 1 - noise}, good=False)
    >>> combiner.proven, combiner.combination().learned["tells"] > 0.5
    (True, True)
    """

    start: dict[str, float]
    logs: dict[str, float] = {}
    """Metric -> logarithm of the factor by which its weight was changed; 0 where it is not named."""
    proven: bool = False
    wager: Wager = msgspec.field(default_factory=Wager)
    good: list[dict[str, float]] = []
    bad: list[dict[str, float]] = []
    runs: int = 0
    blocks: int = 0
    changed: int = 0
    """Number of changes of the weights in use."""
    fixed_loss: float = 0.0
    """Sum over the blocks of the share of pairs that the fixed sum ranks wrongly."""
    learned_loss: float = 0.0
    """The same of the weights that were learned before each block."""

    def observe(self, risks: Risks, *, good: bool) -> None:
        """Learn a labelled run.

        Parameters
        ----------
        risks : mapping
            Metric -> the run's highest risk, in [0, 1]. Metrics without a weight are passed over; a run without any
            other teaches nothing.
        good : bool
            Its label.
        """
        known = {name: risks[name] for name in self.start if name in risks}
        if weighted(self.start, known) is None:
            return
        self.runs += 1
        if good:
            self.good = [*self.good, known][-MAX_WAITING:]
        else:
            self.bad = [*self.bad, known][-MAX_WAITING:]
        if self.good and self.bad:
            self._learn()
            self.good, self.bad = [], []

    def _learn(self) -> None:
        """Judge a block by what was known before it, then learn it."""
        learned = self.weights()
        fixed_loss, new_loss = (self._loss(weights) for weights in (self.start, learned))
        self.fixed_loss += fixed_loss
        self.learned_loss += new_loss
        self.blocks += 1
        self.wager.observe((fixed_loss - new_loss) * (-1.0 if self.proven else 1.0))
        if self.wager.evidence >= PROOF:
            self.proven = not self.proven
            self.changed += 1
            self.wager = Wager()
        moves = dict.fromkeys(self.start, 0.0)
        for bad in self.bad:
            for good in self.good:
                margin = (weighted(learned, bad) or 0.0) - (weighted(learned, good) or 0.0)
                wrong = 1.0 / (1.0 + math.exp(STEEPNESS * margin))
                for name in moves:
                    if name in bad and name in good:
                        moves[name] += wrong * (bad[name] - good[name])
        pairs = len(self.bad) * len(self.good)
        self.logs = {
            name: min(max(self.logs.get(name, 0.0) + RATE * STEEPNESS * move / pairs, -FARTHEST), FARTHEST)
            for name, move in moves.items()
        }

    def _loss(self, weights: Mapping[str, float]) -> float:
        """Return the share of the block's pairs in which the bad run does not lie above the good one; equal: half."""
        bad = [weighted(weights, run) or 0.0 for run in self.bad]
        good = [weighted(weights, run) or 0.0 for run in self.good]
        wrong = sum((one < other) + 0.5 * (one == other) for one in bad for other in good)
        return wrong / (len(bad) * len(good))

    def weights(self) -> dict[str, float]:
        """Return the learned weights; they sum to what the start weights sum to."""
        moved = {name: weight * math.exp(self.logs.get(name, 0.0)) for name, weight in self.start.items()}
        total = sum(moved.values())
        scale = sum(self.start.values()) / total if total else 0.0
        return {name: weight * scale for name, weight in moved.items()}

    def combination(self) -> Combination:
        """Return the weights in force now, frozen."""
        learned: FrozenDict[str, float] = FrozenDict(self.weights() if self.blocks else self.start)
        return Combination(FrozenDict(self.start), learned, self.proven, self.runs, self.wager.evidence)


def weighted(weights: Mapping[str, float], risks: Risks) -> float | None:
    """Return the weighted mean of the risks that are known, ``None`` if none of them has a weight above 0.

    Examples
    --------
    >>> weighted({"a": 3.0, "b": 1.0}, {"a": 0.5, "b": 0.1}), weighted({"a": 1.0}, {"b": 0.1})
    (0.4, None)
    """
    total = mass = 0.0
    for name, weight in weights.items():
        if name in risks:
            total += weight * risks[name]
            mass += weight
    return min(max(total / mass, 0.0), 1.0) if mass > 0.0 else None


def risks_of(metrics: Mapping[str, float | None], inverted: frozenset[str]) -> dict[str, float]:
    """Return metric -> risk in [0, 1] of the values that are known; ``inverted`` ones are risks already.

    Examples
    --------
    >>> risks_of({"goal_hijack": 0.25, "grounding": 0.75, "goal_drift": None}, frozenset({"goal_hijack"}))
    {'goal_hijack': 0.25, 'grounding': 0.25}
    """
    return {
        name: min(max(value if name in inverted else 1.0 - value, 0.0), 1.0)
        for name, value in metrics.items()
        if value is not None and not math.isnan(value)
    }


class Scored(Protocol):
    """As much of a reading as its risk needs."""

    @property
    def coherence_index(self) -> float | None:
        """In [0, 1], 1 = coherent."""
        ...

    @property
    def risk(self) -> float | None:
        """Calibrated, in [0, 1]."""
        ...

    @property
    def coverage(self) -> float:
        """Known weight / total weight."""
        ...

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Name -> value."""
        ...


def risk_of(
    reading: Scored, combination: Combination | None = None, inverted: frozenset[str] = frozenset()
) -> float | None:
    """Return the risk of a reading in [0, 1], higher = worse; ``None`` where nothing was measured.

    It is the calibrated risk. Of a classic index, which has none, it is ``1 - coherence_index``, and once an agent's
    labelled runs have proven another combination of its metrics, the risk by that.

    Parameters
    ----------
    reading : Reading
        What was measured.
    combination : Combination, optional
        Weights in force, such as ``monitor.calibration.combination``.
    inverted : frozenset of str
        Metrics whose high values are bad, such as ``monitor.inverted``.
    """
    if reading.risk is not None:
        return reading.risk
    if reading.coherence_index is None or not reading.coverage > 0.0:
        return None
    fixed = min(max(1.0 - reading.coherence_index, 0.0), 1.0)
    return fixed if combination is None else combination.risk(risks_of(reading.metrics, inverted), fixed)


def learn(start: Mapping[str, float], runs: Sequence[tuple[Risks, bool]]) -> Combiner:
    """Return a combiner that begins with the fixed sum and has learned runs in order: (risks, whether it was good)."""
    combiner = Combiner(start=dict(start))
    for risks, good in runs:
        combiner.observe(risks, good=good)
    return combiner
