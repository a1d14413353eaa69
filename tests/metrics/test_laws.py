"""Laws of the vector metrics, whatever the vectors are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from coherence.core.vectors import exact_cosines
from coherence.metrics import (
    ContradictionPressure,
    GoalDrift,
    MemoryRetention,
    SemanticDiffusion,
    compute_contradiction_pressure,
    compute_goal_drift,
    compute_memory_retention,
    compute_semantic_diffusion,
)
from coherence.testing import metric_input

VECTORS = st.integers(1, 7).flatmap(
    lambda n: arrays(np.float64, (n, 3), elements=st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]))
)


def slow_cosine(a: np.ndarray, b: np.ndarray) -> float:
    lengths = float(np.sqrt(a @ a) * np.sqrt(b @ b))
    return float(a @ b) / lengths if lengths else 0.0


@given(VECTORS, VECTORS)
def test_laws_drift_and_retention_agree_with_the_definition_written_out(goals: np.ndarray, others: np.ndarray) -> None:
    drift = 1 - sum(max(slow_cosine(g, c) for g in goals) for c in others) / len(others)
    retention = sum(max(slow_cosine(g, m) for m in others) for g in goals) / len(goals)
    assert compute_goal_drift(goals, others) == pytest.approx(min(max(drift, 0), 1), abs=1e-12)
    assert compute_memory_retention(goals, others) == pytest.approx(min(max(retention, 0), 1), abs=1e-12)


@given(VECTORS.filter(lambda v: len(v) > 1))
def test_laws_diffusion_agrees_with_the_definition_written_out(context: np.ndarray) -> None:
    pairs = [1 - slow_cosine(context[i], context[j]) for i in range(len(context)) for j in range(i)]
    assert compute_semantic_diffusion(context) == pytest.approx(min(max(sum(pairs) / len(pairs), 0), 1), abs=1e-12)


@given(VECTORS.filter(lambda v: len(v) > 1), st.randoms(use_true_random=False))
def test_laws_order_and_length_of_messages_do_not_matter(context: np.ndarray, random: object) -> None:
    shuffled = context[np.random.default_rng(len(context)).permutation(len(context))] * 4.0
    assert compute_semantic_diffusion(shuffled) == pytest.approx(compute_semantic_diffusion(context), abs=1e-12)
    assert compute_contradiction_pressure(shuffled) == compute_contradiction_pressure(context)


@given(VECTORS, VECTORS, VECTORS)
def test_laws_the_plug_ins_agree_with_the_pure_functions(
    goals: np.ndarray, context: np.ndarray, memories: np.ndarray
) -> None:
    data = metric_input(goals=goals, context=context, memories=memories)
    # float16 rounding moves a cosine by 2**-11 at most
    pairs = [
        (GoalDrift().compute(data), compute_goal_drift(goals, context)),
        (MemoryRetention().compute(data), compute_memory_retention(goals, memories)),
        (SemanticDiffusion().compute(data), compute_semantic_diffusion(context)),
    ]
    near = np.abs(exact_cosines(context, context) - 0.3) <= 2.0**-11
    if not near.any():  # at the threshold itself, rounding decides on which side a pair is counted
        pairs.append((ContradictionPressure().compute(data), compute_contradiction_pressure(context)))
    for plugin, pure in pairs:
        assert plugin == pure if pure is None else plugin == pytest.approx(pure, abs=2.0**-11)


def test_laws_the_evidence_points_at_the_item_that_causes_the_value() -> None:
    data = metric_input(
        goals=[[1, 0], [0, 1]], context=[[1, 0], [1, 0.1], [-1, -1], [1, 0.2]], memories=[[1, 0], [1, 0.1]]
    )
    drift, retention = GoalDrift().explain(data), MemoryRetention().explain(data)
    diffusion, pressure = SemanticDiffusion().explain(data), ContradictionPressure().explain(data)
    assert drift is not None and drift.items == (2,) and drift.texts == ("context 2",)
    assert retention is not None and retention.kind == "goals" and retention.items == (1,)
    assert diffusion is not None and diffusion.items == (2,)
    assert pressure is not None and pressure.items == (3, 2)
