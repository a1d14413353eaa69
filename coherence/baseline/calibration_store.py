"""Thresholds and weights learned from an agent's labelled runs.

Everything is computed from the runs themselves, in the order in which they became known, so a label that is changed
changes all that followed from it, and many processes need not agree on anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from coherence.baseline.calibration import SHIPPED, Calibration, Watch, watch
from coherence.baseline.combiner import Combiner
from coherence.baseline.conformal import draw_coin
from coherence.baseline.own_life import MAX_LIFE, Life, learn_life
from coherence.baseline.runs import CALLS
from coherence.core.config import AlarmConfig
from coherence.core.readings import FrozenDict
from coherence.core.registry import installed
from coherence.store.errors import StoreError
from coherence.store.runs import (
    StoredRun,
    count_learnable,
    labelled_runs,
    left_through,
    life_of,
    newest_relabel,
    read_cache,
    read_learned,
    replace_runs,
    write_cache,
)
from coherence.store.store import Store
from coherence.store.transaction import Transaction

MAX_COMBINERS, MAX_WATCHES = 8, 64
"""Of settings that are not in use, of which is kept what runs that have left the store taught; those in use count."""


class Kept(msgspec.Struct):
    """Statistics that runs have left about some weights."""

    combiner: Combiner
    versions: dict[str, str] = {}
    """Metric -> version of its values, of those with a weight that have one."""


class Learned(msgspec.Struct):
    """Statistics of runs that have left the store, for each of the settings of their time; the newest first."""

    watches: list[Watch] = []
    combiners: list[Kept] = []


_LEARNED = msgspec.msgpack.Decoder(Learned)


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
        Metrics that get a threshold beside those of :data:`~coherence.baseline.calibration.SHIPPED`.
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
        own = {name: versions[name] for name in sorted(start) if name in versions}
        known = list(learned.combiners)
        same = [kept for kept in known if kept.combiner.start == start and kept.versions == own]
        self._kept = same[0] if same else Kept(Combiner(start=start), own)
        self.new = not same or any(not any(each is kept for kept in learned.watches) for each in self.watches)
        """True if something is learned here of which nothing was kept."""
        used = {(each.metric, each.version, each.budget) for each in self.watches}
        self._resting = Learned(
            [each for each in learned.watches if (each.metric, each.version, each.budget) not in used],
            combiners=[kept for kept in known if kept not in same],
        )
        self.through = 0
        """Place of the newest run that was learned."""
        self.relabels = 0
        """Changes of labels that were known, see :func:`~coherence.store.runs.newest_relabel`."""
        self.life = Life()
        """Usual scores of the agent's calls, by its runs, labelled or not."""

    @property
    def key(self) -> str:
        """Short text of everything that changes what the same runs teach; the version of this package is part of it."""
        watches = [(each.metric, each.version, each.budget, each.shipped, each.source) for each in self.watches]
        kept = self._kept
        said = repr((installed("coherence-sensor"), watches, list(kept.combiner.start.items()), kept.versions))
        return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @property
    def combiner(self) -> Combiner:
        """Weights learned from labelled runs."""
        return self._kept.combiner

    def observe(self, agent: str, run: StoredRun) -> None:
        """Learn a run."""
        _learn(agent, run, self.watches, [self._kept])
        self.through = run.known

    def take_leaving(self, agent: str, run: StoredRun) -> None:
        """Learn a run that leaves for good: also what other settings, if they come back, would have learned of it."""
        _learn(agent, run, [*self.watches, *self._resting.watches], [self._kept, *self._resting.combiners])
        self.through = run.known

    def calibration(self) -> Calibration:
        """Return what is in force now, frozen."""
        thresholds = tuple(each.threshold() for each in self.watches)
        names = {*self.combiner.start, *(each.metric for each in self.watches)}
        versions = {name: self.versions[name] for name in sorted(names) if name in self.versions}
        return Calibration(
            thresholds,
            self.combiner.combination(),
            FrozenDict(versions),
            through=self.through,
            relabels=self.relabels,
            life=self.life,
        )

    def in_use(self) -> Learned:
        """Return what was learned so far with these settings, to be kept."""
        return Learned(self.watches, combiners=[self._kept])

    def learned(self) -> Learned:
        """Return what was learned so far with these and with earlier settings, to be kept."""
        resting = self._resting
        room = max(MAX_WATCHES - len(self.watches), 0)
        return Learned(
            [*self.watches, *resting.watches[:room]], combiners=[self._kept, *resting.combiners][:MAX_COMBINERS]
        )


def _learn(agent: str, run: StoredRun, watches: Iterable[Watch], combiners: Iterable[Kept]) -> None:
    for each in watches:
        risk = run.maxima.get((each.metric, each.version))
        if run.good and risk is not None:
            each.observe(risk, draw_coin(agent, run.session, str(run.run), each.metric))
    for kept in combiners:
        versions = kept.versions
        risks = {metric: risk for (metric, version), risk in run.maxima.items() if versions.get(metric) == version}
        kept.combiner.observe(risks, good=run.good)


def _taken_up(fresh: Watch, kept: Sequence[Watch]) -> Watch:
    """Return the kept watch of the same metric, version and budget; else a new one learns the runs of another."""
    same = [each for each in kept if (each.metric, each.version) == (fresh.metric, fresh.version)]
    for each in same:
        if each.budget == fresh.budget and (each.own or each.shipped == fresh.shipped):
            each.shipped, each.source = fresh.shipped, fresh.source
            return each
    for value in same[0].values if same else ():  # of another budget, or another threshold is shipped now
        fresh.observe(value, 0.5)
    return fresh


MAX_LABELLED, SPARE = 500, 50
"""Labelled runs from which everything is computed; when there are ``SPARE`` more, the oldest are learned for good."""

FRESH = 32
"""The newest runs, which are learned anew each time; what the others taught is kept when there are so many more."""

Make: TypeAlias = Callable[[Learned | None], Calibrator]


class _Begun(NamedTuple):
    """State of learning that need not be computed again."""

    through: int
    """Place of the newest run in it."""
    learned: Learned | None


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

    Of very many runs the oldest are learned for good here and leave the store, and what the others taught is kept; not
    so with ``settle=False``, which only looks.
    """
    make: Make = partial(Calibrator, config, versions, weights, metrics)
    count = count_learnable(store, agent) if settle else 0
    many = count > MAX_LABELLED + SPARE
    if many or (count and make(_decoded(read_learned(store, agent)).learned).new):
        with store.transaction() as transaction:
            _settle(transaction, agent, make, leaving=many)
    key = make(None).key
    relabels = newest_relabel(store)  # before the runs: one that is changed meanwhile counts as changed later
    while True:
        begun = _begin(store, agent, key)
        runs = labelled_runs(store, agent, begun.through)
        if left_through(store, agent) <= begun.through:
            break  # else some of these have left meanwhile
    calibrator = _begun_calibrator(make, begun)
    calibrator.relabels, calibrator.life = relabels, _life(store, agent, config.budget)
    old, new = runs[:-FRESH], runs[-FRESH:]
    for run in old:
        calibrator.observe(agent, run)
    if settle and len(old) > FRESH:
        with suppress(StoreError):  # then it is learned again
            _keep(store, agent, key, begun, old, calibrator.in_use())
    for run in new:
        calibrator.observe(agent, run)
    return calibrator


def _life(store: Store, agent: str, budget: float) -> Life:
    """Return what an agent's runs in a store, labelled or not, say of the scores of its calls."""
    shipped = SHIPPED[CALLS]
    limit = shipped.within(budget)
    return learn_life(life_of(store, agent, shipped.version, MAX_LIFE), budget, limit.value) if limit else Life()


def _settle(transaction: Transaction, agent: str, make: Make, *, leaving: bool) -> None:
    """Learn the oldest runs for good, if there are too many, and remove them.

    Settings that are new here are noted, so that later runs teach them as well when they leave while others are in use.
    """
    begun = _decoded(read_learned(transaction, agent))
    calibrator = _begun_calibrator(make, begun)
    runs = labelled_runs(transaction, agent, begun.through) if leaving else []
    for run in runs[: max(len(runs) - MAX_LABELLED, 0)]:
        calibrator.take_leaving(agent, run)
    replace_runs(transaction, agent, calibrator.through, msgspec.msgpack.encode(calibrator.learned()))


def _begin(source: Store | Transaction, agent: str, key: str) -> _Begun:
    left = _decoded(read_learned(source, agent))
    kept = _decoded(read_cache(source, agent, key))
    return kept if kept.learned is not None and kept.through >= left.through else left


def _decoded(found: tuple[int, bytes] | None) -> _Begun:
    if found is None:
        return _Begun(0, None)
    with suppress(msgspec.DecodeError, ValueError):
        return _Begun(found[0], _LEARNED.decode(found[1]))
    return _Begun(found[0], None)  # of another version of this package: its runs are gone


def _begun_calibrator(make: Make, begun: _Begun) -> Calibrator:
    calibrator = make(begun.learned)
    calibrator.through = begun.through
    return calibrator


def _keep(store: Store, agent: str, key: str, begun: _Begun, runs: Sequence[StoredRun], learned: Learned) -> None:
    """Keep what runs taught, unless one of them has changed since they were read."""
    through = runs[-1].known
    data = msgspec.msgpack.encode(learned)
    with store.transaction() as transaction:
        now = labelled_runs(transaction, agent, begun.through)
        same = [run for run in now if run.known <= through] == list(runs)
        if same and _begin(transaction, agent, key).through == begun.through:
            write_cache(transaction, agent, key, through, data)
