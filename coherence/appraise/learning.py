"""Thresholds, shift and blend from an agent's own history."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import msgspec
import numpy as np

from coherence.config import PressureConfig
from coherence.findings import Appraisal

ENOUGH = 200
"""Appraisals without which nothing is learned."""

GUIDE_AT, WARN_AT = 0.95, 0.99
"""Share of the history's pressures that lies below each threshold."""

GUIDE_RANGE, WARN_RANGE, BLOCK_RANGE = (0.15, 0.40), (0.40, 0.60), (0.65, 0.76)
"""How far thresholds may move; a burst of errors crosses each of them, whatever was learned."""

SHIFT_RANGE, SHARE_RANGE = (2.0, 5.0), (0.1, 0.3)


def learn_pressure(config: PressureConfig, history: Sequence[Appraisal], who: str) -> PressureConfig:
    """Return a configuration whose numbers fit an agent's own history; the same one if there is too little of it.

    Moments of failure (an error streak or a repetition holds the pressure up) are left out. The thresholds to guide and
    to warn are the 95 % and 99 % quantiles of the pressure, blocking keeps its distance from warning; the shift puts
    the 99 % quantile of the z-scores at a pressure of 0.25; the share of the highest signal shrinks as far as single
    signals are loud on ordinary days. Each stays within fixed bounds.

    Parameters
    ----------
    config : PressureConfig
        What to start from.
    history : sequence of Appraisal
        From sessions that were no tests.
    who : str
        Whose they are, for ``learned_from``.

    Examples
    --------
    >>> learn_pressure(PressureConfig(), [], "agent main").learned_from
    ''
    """
    calm = [appraisal for appraisal in history if not appraisal.floor]
    if len(calm) < ENOUGH:
        return config
    pressures = np.array([appraisal.pressure for appraisal in calm])
    z_scores = np.array([signal.z for appraisal in calm for signal in appraisal.signals.values()] or [0.0])
    loudest = np.array([max((s.pressure for s in appraisal.signals.values()), default=0.0) for appraisal in calm])
    guide = _within(float(np.quantile(pressures, GUIDE_AT)), GUIDE_RANGE)
    warn = _within(max(float(np.quantile(pressures, WARN_AT)), guide + 0.1), WARN_RANGE)
    block = _within(warn + (config.block - config.warn), BLOCK_RANGE)
    shift = _within(float(np.quantile(z_scores, 0.99)) + log(3.0), SHIFT_RANGE)
    loud = float(np.quantile(loudest, GUIDE_AT))
    share = _within(config.max_share * min(0.25 / max(loud, 1e-9), 1.0), SHARE_RANGE)
    return msgspec.structs.replace(
        config,
        guide=guide,
        warn=warn,
        block=block,
        shift=shift,
        max_share=share,
        learned_from=f"{len(calm)} calm ticks of {who}",
    )


def _within(value: float, bounds: tuple[float, float]) -> float:
    return round(min(max(value, bounds[0]), bounds[1]), 4)
