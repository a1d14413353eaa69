"""Agents under guard and their patches, as the faces show them."""

from __future__ import annotations

import time

import msgspec

from coherence.guard.ledger import PatchRecord, ledger
from coherence.guard.status import state_of
from coherence.guard.traces import guarded_agents, read_decisions
from coherence.store.store import Store
from coherence.views.shapes import GuardedView, GuardView, PatchView, TrialEvidence


def guard_view(store: Store) -> GuardView:
    """Return all agents under guard with their patches."""
    return GuardView(tuple(_guarded(store, agent, time.time()) for agent in guarded_agents(store)))


def _guarded(store: Store, agent: str, now: float) -> GuardedView:
    state = state_of(store, agent, now)
    records = ledger(read_decisions(store, agent, -1))
    return GuardedView(
        agent=agent,
        calls=state.calls,
        failures=state.failures,
        failures_in_row=state.failures_in_row,
        phase=state.phase,
        trouble=state.trouble,
        failing=state.failing,
        trial_calls=None if state.trial is None else state.trial.served,
        trial_most=None if state.trial is None else state.trial.most_calls,
        evidence=()
        if state.trial is None
        else msgspec.convert(msgspec.to_builtins(state.trial.evidence), tuple[TrialEvidence, ...]),
        patches=tuple(_patch(agent, record) for record in reversed(records)),
    )


def _patch(agent: str, record: PatchRecord) -> PatchView:
    return PatchView(
        agent=agent,
        number=record.number,
        patch=record.patch,
        before=record.backup,
        outcome=record.outcome,
        why=record.why,
        asked_at=record.asked_at,
        served_at=record.served_at,
        ended_at=record.ended_at,
        metric=record.metric,
        evidence=record.evidence,
        limit=record.limit,
        share=record.share,
        can_roll_back=record.can_roll_back,
    )
