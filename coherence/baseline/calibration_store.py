"""Learning from the runs in a store, without learning all of them again at each opening.

What the oldest runs have taught is kept as such when they leave. What those have taught that are still here is kept
too, but only as long as none of them changes (the store sees to that), and without the newest ones, which often still
do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from coherence.baseline.calibration_history import Calibrator, Learned
from coherence.core.config import AlarmConfig
from coherence.store.errors import StoreError
from coherence.store.runs import (
    LabelledRun,
    count_learnable,
    labelled_runs,
    left_through,
    newest_relabel,
    read_cache,
    read_learned,
    replace_runs,
    write_cache,
)
from coherence.store.store import Store
from coherence.store.transaction import Transaction

MOST_LABELLED, SPARE = 500, 50
"""Labelled runs from which everything is computed; when there are ``SPARE`` more, the oldest are learned for good."""

FRESH = 32
"""The newest runs, which are learned anew each time; what the others taught is kept when there are so many more."""

Make: TypeAlias = Callable[[Learned | None], Calibrator]


class _Begun(NamedTuple):
    """What need not be learned again."""

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
    many = count > MOST_LABELLED + SPARE
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
    calibrator.relabels = relabels
    old, new = runs[:-FRESH], runs[-FRESH:]
    for run in old:
        calibrator.take(agent, run)
    if settle and len(old) > FRESH:
        with suppress(StoreError):  # then it is learned again
            _keep(store, agent, key, begun, old, calibrator.in_use())
    for run in new:
        calibrator.take(agent, run)
    return calibrator


def _settle(transaction: Transaction, agent: str, make: Make, *, leaving: bool) -> None:
    """Learn the oldest runs for good, if there are too many, and remove them.

    Settings that are new here are noted, so that later runs teach them as well when they leave while others are in use.
    """
    begun = _decoded(read_learned(transaction, agent))
    calibrator = _begun_calibrator(make, begun)
    runs = labelled_runs(transaction, agent, begun.through) if leaving else []
    for run in runs[: max(len(runs) - MOST_LABELLED, 0)]:
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
        return _Begun(found[0], msgspec.msgpack.decode(found[1], type=Learned))
    return _Begun(found[0], None)  # of another version of this package: its runs are gone


def _begun_calibrator(make: Make, begun: _Begun) -> Calibrator:
    calibrator = make(begun.learned)
    calibrator.through = begun.through
    return calibrator


def _keep(store: Store, agent: str, key: str, begun: _Begun, runs: Sequence[LabelledRun], learned: Learned) -> None:
    """Keep what runs taught, unless one of them has changed since they were read."""
    through = runs[-1].known
    data = msgspec.msgpack.encode(learned)
    with store.transaction() as transaction:
        now = labelled_runs(transaction, agent, begun.through)
        same = [run for run in now if run.known <= through] == list(runs)
        if same and _begin(transaction, agent, key).through == begun.through:
            write_cache(transaction, agent, key, through, data)
