"""Thresholds learned from an agent's labelled runs in a store.

They are computed anew whenever a session begins, from the runs that the store keeps, in the order in which those became
known. A label that is changed so changes all that followed from it, and processes need not agree on anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coherence.baseline.calibration import SHIPPED, Calibration, watch
from coherence.baseline.conformal import draw_coin
from coherence.baseline.own_life import MAX_LIFE, Life, learn_life
from coherence.baseline.runs import CALLS
from coherence.core.config import AlarmConfig
from coherence.core.readings import FrozenDict
from coherence.store.runs import labelled_runs, life_of, newest_relabel
from coherence.store.store import Store


def read_calibration(
    store: Store, agent: str, config: AlarmConfig, versions: Mapping[str, str], metrics: Iterable[str] = ()
) -> Calibration:
    """Return what an agent's runs in a store teach about its alarms.

    Parameters
    ----------
    store : Store
        Holds the runs.
    agent : str
        Whose they are.
    config : AlarmConfig
        The budgets.
    versions : mapping
        Metric -> version of its values now; those of another version do not count.
    metrics : iterable of str
        Metrics that get a threshold beside those of :data:`~coherence.baseline.calibration.SHIPPED`.
    """
    versions = {name: shipped.version for name, shipped in SHIPPED.items()} | dict(versions)
    watched = {name: versions[name] for name in (*SHIPPED, *metrics) if name in versions}
    watches = [watch(name, version, budget) for name, version in watched.items() for budget in config.budgets]
    relabels = newest_relabel(store)  # before the runs: one that is changed meanwhile counts as changed later
    runs = labelled_runs(store, agent)
    for run in runs:
        for each in watches:
            risk = run.maxima.get((each.metric, each.version))
            if run.good and risk is not None:
                each.observe(risk, draw_coin(agent, run.session, str(run.run), each.metric))
    shipped = SHIPPED[CALLS]
    limit = shipped.within(config.budget)
    scores = life_of(store, agent, shipped.version, MAX_LIFE)
    return Calibration(
        tuple(each.threshold() for each in watches),
        FrozenDict(sorted(watched.items())),
        through=runs[-1].known if runs else 0,
        relabels=relabels,
        life=learn_life(scores, config.budget, limit.value) if limit is not None else Life(),
    )
