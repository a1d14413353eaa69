"""The tables of runs: how each went, and how far each metric rose within it.

Whatever is written here may be written again, by any process, in any order: maxima only rise, an outcome or a label
replaces the one before. The place of a run in the order of learning is fixed when both its maxima and its label are
known, and stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from coherence.store.rows import RunRow
from coherence.store.store import Store
from coherence.store.transaction import Transaction

MAX_RUNS = 1_000
"""Runs of one agent that are kept, the newest: so many that can be learned from, and so many others."""

_ENSURE = "INSERT OR IGNORE INTO runs (agent, session, run) VALUES (?, ?, ?)"
_ID = "SELECT id FROM runs WHERE agent = ? AND session = ? AND run = ?"
_RAISE = (
    "INSERT INTO run_maxima VALUES (?, ?, ?, ?) "
    "ON CONFLICT (run_id, metric, version) DO UPDATE SET risk = max(risk, excluded.risk)"
)
# Above "through" too, the place of the newest run that has left: a place is never given twice.
_PLACE = (
    "UPDATE runs SET known = 1 + max((SELECT coalesce(max(known), 0) FROM runs WHERE agent = :agent), "
    "(SELECT coalesce(max(through), 0) FROM calibrations WHERE agent = :agent)) "
    "WHERE id = :id AND known IS NULL AND coalesce(label, outcome) IS NOT NULL "
    "AND EXISTS (SELECT 1 FROM run_maxima WHERE run_id = :id)"
)
_FORGET = (
    "DELETE FROM runs WHERE agent = :agent AND id NOT IN "
    "(SELECT id FROM runs WHERE agent = :agent AND known IS NULL ORDER BY id DESC LIMIT :most) AND id NOT IN "
    "(SELECT id FROM runs WHERE agent = :agent AND known IS NOT NULL ORDER BY id DESC LIMIT :most)"
)
_LABELLED = (
    "SELECT r.known, r.session, r.run, coalesce(r.label, r.outcome), m.metric, m.version, m.risk FROM runs AS r "
    "JOIN run_maxima AS m ON m.run_id = r.id WHERE r.agent = ? AND r.known IS NOT NULL AND NOT r.mixed "
    "AND coalesce(r.label, r.outcome) IS NOT NULL ORDER BY r.known, m.metric, m.version"
)
_COUNTED = (
    "SELECT count(*) FROM runs WHERE agent = ? AND known IS NOT NULL AND NOT mixed "
    "AND coalesce(label, outcome) IS NOT NULL"
)

CALL = "call "
"""Before a tool's name: in place of a metric, the highest score of that tool's calls."""

_LIFE = (
    "SELECT m.run_id, substr(m.metric, :cut), m.risk FROM run_maxima AS m WHERE m.version = :version "
    "AND substr(m.metric, 1, :cut - 1) = :call AND m.run_id IN (SELECT id FROM runs AS r WHERE r.agent = :agent "
    "AND NOT r.mixed AND coalesce(r.label, 1) <> 0 AND EXISTS (SELECT 1 FROM run_maxima WHERE run_id = r.id "
    "AND version = :version AND substr(metric, 1, :cut - 1) = :call) ORDER BY id DESC LIMIT :most) "
    "ORDER BY m.run_id DESC, m.metric"
)


class StoredRun(msgspec.Struct, frozen=True):
    """A run that can be learned from."""

    known: int
    """Place in the order in which the agent's runs became known."""
    session: str
    run: int
    good: bool
    """Its label, or else its outcome."""
    maxima: dict[tuple[str, str], float]
    """(metric, version) -> highest risk."""


class RunCounts(NamedTuple):
    """Counts of the runs of an agent that are kept."""

    good: int
    bad: int
    unlabelled: int
    mixed: int = 0
    """Told by several processes at once, which count for nothing."""


def write_runs(transaction: Transaction, agent: str, session: str, rows: Iterable[RunRow]) -> None:
    """Keep how runs stand; what is known of them already only grows."""
    for row in rows:
        number = _ensure(transaction, agent, session, row.run)
        transaction.execute_many(_RAISE, [(number, *each) for each in row.maxima])
        if row.success is not None:
            transaction.execute("UPDATE runs SET outcome = ? WHERE id = ?", (int(row.success), number))
        if row.mixed:
            transaction.execute("UPDATE runs SET mixed = 1 WHERE id = ?", (number,))
        transaction.execute(_PLACE, {"agent": agent, "id": number})
    transaction.execute(_FORGET, {"agent": agent, "most": MAX_RUNS})


def write_label(transaction: Transaction, agent: str, session: str, run: int, good: bool | None) -> None:
    """Label a run, whether it is known already or not; ``None`` takes its label back, and its outcome counts again."""
    number = _ensure(transaction, agent, session, run)
    transaction.execute("UPDATE runs SET label = ? WHERE id = ?", (None if good is None else int(good), number))
    transaction.execute(_PLACE, {"agent": agent, "id": number})


def _ensure(transaction: Transaction, agent: str, session: str, run: int) -> int:
    transaction.execute(_ENSURE, (agent, session, run))
    return int(transaction.execute(_ID, (agent, session, run))[0][0])


def labelled_runs(store: Store, agent: str) -> list[StoredRun]:
    """Return an agent's runs with a label or an outcome, in the order in which they became known."""
    found: dict[int, StoredRun] = {}
    for known, session, run, good, metric, version, risk in store.fetch(_LABELLED, (agent,)):
        labelled = found.get(known)
        if labelled is None:
            labelled = found[known] = StoredRun(known, session, run, bool(good), {})
        if not metric.startswith(CALL):
            labelled.maxima[metric, version] = risk
    return list(found.values())


def life_of(store: Store, agent: str, version: str, most: int) -> list[dict[str, float]]:
    """Return tool -> highest score of an agent's newest runs with calls, labelled or not, the newest first.

    Runs that were labelled bad are left out; one that failed is not.
    """
    found: dict[int, dict[str, float]] = {}
    values = {"agent": agent, "version": version, "most": most, "call": CALL, "cut": len(CALL) + 1}
    for run, tool, risk in store.fetch(_LIFE, values):
        found.setdefault(run, {})[tool] = risk
    return list(found.values())


def count_learnable(store: Store, agent: str) -> int:
    """Return how many runs :func:`labelled_runs` would return."""
    return int(store.fetch(_COUNTED, (agent,))[0][0])


def newest_relabel(store: Store) -> int:
    """Return a number that grows with every label or outcome that takes the place of another one; 0 = none has."""
    return int(store.fetch("SELECT coalesce(max(id), 0) FROM relabels")[0][0])


def relabelled(store: Store, agent: str, through: int, since: int) -> bool:
    """Tell whether a run that became known as number ``through`` or before was told to be other than it was.

    ``since`` is what :func:`newest_relabel` returned then.
    """
    sql = (
        "SELECT 1 FROM relabels AS c JOIN runs AS r ON r.id = c.run_id "
        "WHERE c.id > ? AND r.agent = ? AND r.known <= ? LIMIT 1"
    )
    return bool(store.fetch(sql, (since, agent, through)))


def newest_run(store: Store, agent: str, session: str) -> int | None:
    """Return the number of the newest run of a session that is kept, ``None`` = none."""
    rows = store.fetch("SELECT max(run) FROM runs WHERE agent = ? AND session = ?", (agent, session))
    return None if rows[0][0] is None else int(rows[0][0])


def session_label(store: Store, agent: str, session: str) -> bool | None:
    """Tell whether a session's labels say that it was good: all of its labelled runs; ``None`` without a label."""
    rows = store.fetch("SELECT min(label) FROM runs WHERE agent = ? AND session = ?", (agent, session))
    return None if rows[0][0] is None else bool(rows[0][0])


def count_runs(store: Store, agent: str) -> RunCounts:
    """Return how many runs of an agent are kept."""
    sql = (
        "SELECT CASE WHEN mixed THEN 2 ELSE coalesce(label, outcome) END, count(*) FROM runs WHERE agent = ? GROUP BY 1"
    )
    found = dict(store.fetch(sql, (agent,)))
    return RunCounts(found.get(1, 0), found.get(0, 0), found.get(None, 0), found.get(2, 0))


def run_agents(store: Store) -> list[str]:
    """Return the agents of whom runs, or what was learned from them, are kept, by name."""
    sql = "SELECT agent FROM runs UNION SELECT agent FROM calibrations ORDER BY agent"
    return [name for (name,) in store.fetch(sql)]


def forget_runs(transaction: Transaction, agent: str) -> int:
    """Remove an agent's runs, their labels and what was learned from them; return how many runs."""
    removed = transaction.execute("DELETE FROM runs WHERE agent = ? RETURNING id", (agent,))
    transaction.execute("DELETE FROM calibrations WHERE agent = ?", (agent,))
    return len(removed)
