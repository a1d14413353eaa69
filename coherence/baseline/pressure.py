"""From signals to one pressure and a mode."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from coherence.core.config import PressureConfig
from coherence.core.decisions import Mode

MIN_STD = 0.02


def sigmoid(z: float, shift: float = 3.0, clamp: float = 6.0) -> float:
    r"""Return the pressure of a z-score: 0 for ``z <= 0``, 1 for ``z > clamp``, else :math:`1/(1+e^{shift-z})`.

    Examples
    --------
    >>> sigmoid(-1), sigmoid(3), sigmoid(6.1)
    (0.0, 0.5, 1.0)
    """
    if not z > 0.0:  # NaN is no evidence
        return 0.0
    return 1.0 if z > clamp else 1.0 / (1.0 + math.exp(shift - z))


def signal_pressure(
    value: float, usual: float, std: float, *, min_std: float = MIN_STD, shift: float = 3.0, clamp: float = 6.0
) -> float:
    """Return the pressure of a value against its baseline; 0 at or below the usual.

    Examples
    --------
    >>> signal_pressure(0.05, 0.05, 0.1), round(signal_pressure(0.5, 0.05, 0.1), 4)
    (0.0, 0.8176)
    """
    return sigmoid((value - usual) / max(std, min_std), shift, clamp)


def aggregate(
    pressures: Mapping[str, float | None],
    config: PressureConfig | None = None,
    *,
    informational: Collection[str] = (),
    error_rate: float | None = None,
) -> float:
    """Return one pressure in [0, 1], 0 = calm: ``0.7 x weighted mean + 0.3 x max``, held up by the error rate.

    Parameters
    ----------
    pressures : mapping
        Signal -> pressure in [0, 1]; ``None`` = unknown, which leaves the mean.
    config : PressureConfig, optional
        Weights, the share of the maximum, whether there is a floor.
    informational : collection of str
        Signals that do not count now.
    error_rate : float, optional
        Share of failed calls; from 0.2 on the pressure is at least ``0.10 + 0.60 (rate - 0.2) / 0.8``. Default: the
        pressure of the signal ``error_rate``.

    Examples
    --------
    >>> round(aggregate({"uncertainty": 1.0, "error_rate": 0.0, "cost": 0.0}, PressureConfig.classic()), 4)
    0.6111
    """
    config = config or PressureConfig()
    total = mass = highest = 0.0
    for name, weight in config.weights.items():
        pressure = pressures.get(name)
        if pressure is None or weight <= 0.0 or name in informational:
            continue
        total += weight * pressure
        mass += weight
        highest = max(highest, pressure)
    mean = total / mass if mass else 0.0
    whole = (1.0 - config.max_share) * mean + config.max_share * highest
    rate = error_rate if error_rate is not None else pressures.get("error_rate")
    if config.error_share_floor and rate is not None and rate >= 0.2:
        whole = max(whole, 0.10 + 0.60 * (rate - 0.2) / 0.8)
    return min(max(whole, 0.0), 1.0)


def mode_of(pressure: float, config: PressureConfig | None = None) -> Mode:
    """Return the mode of a pressure; each threshold belongs to the worse mode.

    Raises
    ------
    ValueError
        If the pressure is NaN or outside [0, 1].

    Examples
    --------
    >>> mode_of(0.2499), mode_of(0.25)
    (<Mode.OBSERVE: 'observe'>, <Mode.GUIDE: 'guide'>)
    """
    if not 0.0 <= pressure <= 1.0:
        raise ValueError(f"pressure must be in [0, 1], not {pressure}")
    config = config or PressureConfig()
    if pressure >= config.block:
        return Mode.BLOCK
    if pressure >= config.warn:
        return Mode.WARN
    return Mode.GUIDE if pressure >= config.guide else Mode.OBSERVE
