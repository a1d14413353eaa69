"""An agent against itself: each signal against its own baseline, and one pressure of them all."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from math import isfinite, log1p
from typing import Protocol

import msgspec

from coherence.core.config import Budget, PressureConfig
from coherence.core.decisions import Appraisal, Mode, Signal
from coherence.core.events import Usage
from coherence.core.readings import CHANGE, FrozenDict
from coherence.detect.detector import EventDetector, Observed
from coherence.metrics import RecentErrorRate, Repetition
from coherence.sensor.own_start import Departure, OwnStart
from coherence.state.reducer import AgentState, sound


class SignalBaseline(msgspec.Struct):
    r"""The usual level and spread of one signal.

    .. math:: \mu \leftarrow \alpha x + (1 - \alpha) \mu, \quad v \leftarrow \alpha (x - \mu_{old})^2 + (1 - \alpha) v

    The first sample is taken as it is, with variance 0.

    References
    ----------
    The recursion and its test values are those of ``soma-ai`` 2026.4.30. It is the incremental form of T. Finch,
    "Incremental calculation of weighted mean and variance", 2009, but for its variance, which lacks a factor.

    Examples
    --------
    >>> baseline = SignalBaseline()
    >>> for sample in (0.5, 0.5, 0.1):
    ...     baseline.learn(sample, alpha=0.08)
    >>> round(baseline.usual(blend=5, cold_mean=0.05), 4), round(baseline.std, 4)
    (0.3008, 0.1131)
    """

    mean: float = 0.0
    variance: float = 0.0
    count: int = 0
    refused: int = 0
    """Samples in a row that were too unusual to be learned."""

    def learn(self, sample: float, alpha: float) -> None:
        """Take in a sample; NaN and infinity are passed over.

        Parameters
        ----------
        sample : float
            In [0, 1] mostly.
        alpha : float
            Weight of the new sample, in (0, 1].
        """
        if not math.isfinite(sample):
            return
        if self.count == 0:
            self.mean = sample
        else:
            off = sample - self.mean
            self.mean = alpha * sample + (1.0 - alpha) * self.mean
            self.variance = alpha * (off * off) + (1.0 - alpha) * self.variance
        self.count += 1
        self.refused = 0

    @property
    def std(self) -> float:
        """The standard deviation, 1e-9 or more; 0.1 before the first sample."""
        return max(math.sqrt(self.variance), 1e-9) if self.count else 0.1

    def usual(self, blend: int, cold_mean: float | None) -> float:
        """Return the mean; over the first ``blend`` samples mixed with what is expected of any agent, if anything is.

        Parameters
        ----------
        blend : int
            Samples, 1 or more.
        cold_mean : float, optional
            What is expected before anything is known; ``None``: nothing.
        """
        if cold_mean is None:
            return self.mean
        trust = min(self.count / blend, 1.0)
        return trust * self.mean + (1.0 - trust) * cold_mean


MIN_STD = 0.02  # else the first change of a signal that stood still would be beyond all measure


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
        if pressure > highest:
            highest = pressure
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


STEP_DRIFT = "step_drift"
"""Metric whose sum over the run's steps is the sign of a departure."""

MAX_TOKENS = 1e7
"""Tokens of one model call at which the velocity is 1; logarithmic, because calls differ by orders of magnitude."""

LEAST_COST, MAX_COST = 1e-6, 1e3
"""US dollars of one model call at which the velocity is 0 and 1; logarithmic too."""

FULL_AT, FULL_SPREAD = 0.5, 0.15
"""A share of a budget or of the context window presses from 50 % on: ``sigmoid((share - 0.5) / 0.15)``."""

ERRORS_FREE = 0.1
"""Error rate up to which errors as such do not press: ``(rate - 0.1) / 0.9`` is the least pressure above it."""


COLD_FALL = 6
"""Power with which doubt about a new baseline falls; with the sixth, most of it is gone after a third of the blend."""


class Measured(Protocol):
    """As much of a reading as is appraised: what was measured, never the index made from it."""

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Name -> value."""
        ...

    @property
    def tick_seq(self) -> int:
        """The tick's number."""
        ...


class AppraiserState(msgspec.Struct):
    """Everything an appraisal remembers; plain data, so that it can be kept and taken up again."""

    baselines: dict[str, SignalBaseline] = {}
    signals: dict[str, Signal] = {}
    pressure: float = 0.0
    floor: str = ""
    start: OwnStart = msgspec.field(default_factory=OwnStart)
    """Levels of the run's measures since it began."""
    departure: Departure = msgspec.field(default_factory=Departure)
    """Sum of how far its steps have left what was asked."""
    changes: dict[str, float] = {}
    """Distance of the agent's newest step from there, by sign."""
    acted: bool = False
    """True once the agent has said or called anything since the newest reading."""
    learned_steps: int = 0
    """Steps up to which readings were learned: a second tick after a step teaches nothing."""


class Appraiser(EventDetector[AppraiserState]):
    """Keep one agent's signals, baselines and pressure.

    Signals of events (error rate, repetition, velocity of tokens and cost, fullness of the context) are appraised as
    the events come, those of readings (uncertainty, drift, goal coherence) with each tick. A sample is
    compared before it is learned; what comes while the agent fails, or is too unusual, is not learned.

    Parameters
    ----------
    state : AgentState
        The agent; ``state.config.pressure`` has the numbers.
    budget : Budget, optional
        The agent's own.
    """

    name, data_type = "baselines", AppraiserState

    def __init__(self, state: AgentState, budget: Budget | None = None) -> None:
        super().__init__()
        self.state = state
        self.config = state.config.pressure
        self.limits = budget.limits() if budget is not None else {}

    @property
    def mood(self) -> AppraiserState:
        """Memory of an appraisal."""
        return self.data

    @property
    def mode(self) -> Mode:
        """The mode of the present pressure."""
        return mode_of(self.mood.pressure, self.config)

    def on_goal(self, observed: Observed) -> None:
        """Begin anew with another goal: what changes with it is no drift."""
        if observed.new_goal:
            self.mood.start, self.mood.departure, self.mood.changes = OwnStart(), Departure(), {}

    def on_message(self, observed: Observed) -> None:
        """Remember that the agent has spoken, or that the user may ask for something else."""
        if observed.event.role == "user":
            self.mood.start.ask_anew()
        self.mood.acted = self.mood.acted or observed.event.role == "assistant"

    def on_tool_call(self, observed: Observed) -> None:
        """Remember that the agent has acted."""
        self.mood.acted = True

    def on_tool_result(self, observed: Observed) -> None:
        """Compare how often calls fail and repeat, as the state has just counted them."""
        state = self.state
        failing = state.facts.error_streak > 0
        # Patient: an agent that goes on failing must not get used to it.
        self._compare("error_rate", RecentErrorRate(state).compute(), failing=failing, patient=True)
        self._compare("repetition", Repetition(state).compute(), failing=failing)
        self._settle()

    def on_compaction(self, observed: Observed) -> None:
        """Forget how full the context is: unknown until the next model call."""
        self.mood.signals.pop("context_exhaustion", None)
        self._settle()

    def on_usage(self, observed: Observed) -> None:
        """Compare what a model call used up."""
        self._compare_usage(sound(observed.event))
        self._settle()

    def _compare_usage(self, event: Usage) -> None:
        state, facts = self.state, self.state.facts
        failing = facts.error_streak > 0
        if event.input_tokens is not None or event.output_tokens is not None:
            tokens = (event.input_tokens or 0) + (event.output_tokens or 0)
            self._compare("token_usage", log1p(tokens) / log1p(MAX_TOKENS), failing=failing)
            self._fill("token_usage", state.spent.tokens, self.limits.get("tokens"))
        cost = state.cost_of(event)
        if cost is not None:
            velocity = log1p(cost / LEAST_COST) / log1p(MAX_COST / LEAST_COST)
            self._compare("cost", velocity, failing=failing)
            self._fill("cost", facts.cost_usd or 0.0, self.limits.get("cost_usd"))
        size = state.config.context_tokens
        if size is not None and facts.context_used is not None:
            share = facts.context_used / size
            z = (share - FULL_AT) / FULL_SPREAD
            self.mood.signals["context_exhaustion"] = Signal(min(max(share, 0.0), 1.0), None, max(z, 0.0), sigmoid(z))

    def _fill(self, name: str, spent: float, limit: float | None) -> None:
        """Raise a signal to the pressure of its share of a budget."""
        if not limit:
            return
        signal = self.mood.signals[name]
        pressure = sigmoid((spent / limit - FULL_AT) / FULL_SPREAD)
        if pressure > signal.pressure:
            self.mood.signals[name] = msgspec.structs.replace(signal, pressure=pressure)

    def appraise(self, reading: Measured) -> Appraisal:
        """Take in the reading of a tick, and return the appraisal."""
        mood, facts = self.mood, self.state.facts
        new = facts.steps > mood.learned_steps
        mood.learned_steps = facts.steps
        failing = facts.error_streak > 0 or not new
        metrics = reading.metrics
        coherence = metrics.get("goal_coherence")
        self._compare("uncertainty", metrics.get("uncertainty"), failing=failing)
        self._compare("drift", metrics.get("drift"), failing=failing)
        self._compare("goal_coherence", None if coherence is None else 1.0 - coherence, failing=failing)
        if mood.acted:
            mood.changes = mood.start.changes(metrics)
            mood.start.learn(metrics)
            self._depart(metrics.get(STEP_DRIFT))
            mood.acted = False
        self._settle()
        return Appraisal(
            seq=reading.tick_seq,
            pressure=mood.pressure,
            mode=mode_of(mood.pressure, self.config),
            signals=FrozenDict(mood.signals),
            floor=mood.floor,
            learned_from=self.config.learned_from,
        )

    def _depart(self, distance: float | None) -> None:
        """Take in how far the newest step lies from what was asked, unless it only does again what was done before."""
        step, facts = self.state.assumption.data.step, self.state.facts
        if distance is None or step is None:
            return
        before = {action.made.masked for action in facts.actions}
        made = [call.made for call in facts.open_calls]
        if not made or not all(call.waits or call.masked in before for call in made):
            self.mood.departure.learn(distance, min(step.novelty, 1.0), step.weight)
        self.mood.changes[STEP_DRIFT + CHANGE] = self.mood.departure.value

    def _compare(self, name: str, value: float | None, *, failing: bool, patient: bool = False) -> None:
        """Compare a sample with its baseline, then learn it unless it must not become normal."""
        mood, config = self.mood, self.config
        if value is None or not isfinite(value):
            mood.signals.pop(name, None)
            return
        if not 0.0 <= value <= 1.0:
            value = min(max(value, 0.0), 1.0)
        baseline = mood.baselines.get(name)
        if baseline is None:
            baseline = mood.baselines[name] = SignalBaseline()
        cold_mean = config.cold_mean.get(name)
        z = 0.0
        usual: float | None = None
        if baseline.count or cold_mean is not None:
            usual = baseline.mean if cold_mean is None else baseline.usual(config.blend, cold_mean)
            std = max(baseline.std, config.min_std.get(name, MIN_STD))
            if baseline.count < config.blend:
                std += config.cold_std * (1.0 - baseline.count / config.blend) ** COLD_FALL
            z = (value - usual) / std
        pressure = sigmoid(z, config.shift, config.clamp)
        # Errors press even where they are usual for this agent.
        if name == "error_rate" and config.error_share_floor and value > ERRORS_FREE:
            pressure = max(pressure, (value - ERRORS_FREE) / (1.0 - ERRORS_FREE))
        mood.signals[name] = Signal(value, usual, max(z, 0.0), pressure)
        if failing:
            return
        unusual = pressure >= config.learn_limit and config.learn_limit < 1.0
        if unusual:
            baseline.refused += 1
        if not unusual or (not patient and baseline.refused > config.patience):
            # learn() would begin the count anew, and the next sample as unusual would have to wait again
            refused = baseline.refused if unusual else 0
            baseline.learn(value, config.alpha)
            baseline.refused = refused

    def _settle(self) -> None:
        """Make one pressure of all signals, held up by bursts of errors and by repetition."""
        mood, config, facts = self.mood, self.config, self.state.facts
        pressures = dict.fromkeys(config.weights, 0.0) if config.unknown_is_calm else {}
        pressures |= {name: signal.pressure for name, signal in mood.signals.items()}
        signal = mood.signals.get("error_rate")
        error_rate = signal.value if signal is not None else None
        informational = () if self._drift_counts(error_rate) else ("drift",)
        whole = aggregate(pressures, config, informational=informational, error_rate=error_rate)
        floor = ""
        streak = facts.error_streak
        for count, floors, what in (
            (streak, config.streak_floor, "errors in a row"),
            (facts.same_streak, config.repeat_floor, "identical calls with identical results in a row"),
        ):
            least = floors[min(count, len(floors)) - 1] if count and floors else 0.0
            if least > whole:
                whole, floor = least, f"{count} {what}" if count > 1 else "an error"
        # While errors go on the pressure does not fall, whatever calms down in between.
        if streak and mood.pressure > whole and config.streak_floor:
            whole, floor = mood.pressure, mood.floor or (f"{streak} errors in a row" if streak > 1 else "an error")
        mood.pressure, mood.floor = whole, floor

    def _drift_counts(self, error_rate: float | None) -> bool:
        """Tell whether drift is more than a change of topic: it counts only beside errors or uncertainty."""
        mood = self.mood
        uncertainty = mood.signals.get("uncertainty")
        unsure = uncertainty is not None and (uncertainty.value or 0.0) > 0.3
        usual = mood.baselines.get("error_rate")
        failing = error_rate is not None and error_rate > (usual.mean if usual is not None else 0.0)
        return unsure or failing
