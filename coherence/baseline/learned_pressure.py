"""Thresholds, shift and blend from an agent's own history."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import msgspec
import numpy as np

from coherence.baseline.appraiser import aggregate, sigmoid
from coherence.core.config import PressureConfig
from coherence.core.decisions import Appraisal

ENOUGH = 200
"""Appraisals without which nothing is learned."""

GUIDE_AT, WARN_AT = 0.99, 0.999
"""Share of the history's pressures that lies below each threshold, less a margin."""

MARGIN = 0.05

GUIDE_RANGE, WARN_RANGE, BLOCK_RANGE = (0.22, 0.40), (0.40, 0.60), (0.65, 0.76)
"""Ranges of learned thresholds; a burst of errors crosses each of them, whatever was learned, a single error none."""

SHIFT_RANGE, SHARE_RANGE = (2.5, 5.0), (0.1, 0.3)


def learn_pressure(config: PressureConfig, history: Sequence[Appraisal], who: str) -> PressureConfig:
    """Return a configuration whose numbers fit an agent's own history; the same one if there is too little of it.

    Moments of failure (an error streak or a repetition holds the pressure up) are left out. The shift puts the 99 %
    quantile of the z-scores at a pressure of 0.25; the share of the highest signal (the blend) shrinks as far as single
    signals are loud on ordinary days; the thresholds to guide and to warn lie 0.05 above the 99 % and 99.9 % quantiles
    of what the pressure would have been with these two; blocking keeps its distance from warning. Each stays within
    fixed bounds.

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
    z_scores = [signal.z for appraisal in calm for signal in appraisal.signals.values() if signal.usual is not None]
    loudest = [max((signal.pressure for signal in appraisal.signals.values()), default=0.0) for appraisal in calm]
    shift = _within(_quantile(z_scores, 0.99) + log(3.0), SHIFT_RANGE)
    share = _within(config.max_share * min(0.25 / max(_quantile(loudest, 0.95), 1e-9), 1.0), SHARE_RANGE)
    learned = msgspec.structs.replace(config, shift=shift, max_share=share)
    pressures = [_again(appraisal, learned) for appraisal in calm]
    guide = _within(_quantile(pressures, GUIDE_AT) + MARGIN, GUIDE_RANGE)
    warn = _within(max(_quantile(pressures, WARN_AT) + MARGIN, guide + 0.1), WARN_RANGE)
    block = _within(warn + (config.block - config.warn), BLOCK_RANGE)
    who = f"{len(calm)} calm ticks of {who}"
    return msgspec.structs.replace(learned, guide=guide, warn=warn, block=block, learned_from=who)


def _again(appraisal: Appraisal, config: PressureConfig) -> float:
    """Return what the pressure would have been with another shift and share."""
    pressures: dict[str, float | None] = dict.fromkeys(config.weights, 0.0) if config.unknown_is_calm else {}
    for name, signal in appraisal.signals.items():
        pressures[name] = signal.pressure
        if signal.usual is not None:
            pressures[name] = sigmoid(signal.z, config.shift, config.clamp)
    error_rate = appraisal.signals.get("error_rate")
    return aggregate(pressures, config, error_rate=error_rate.value if error_rate is not None else None)


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else 0.0


def _within(value: float, bounds: tuple[float, float]) -> float:
    return round(min(max(value, bounds[0]), bounds[1]), 4)
