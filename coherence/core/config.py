"""Reading settings from TOML, with errors that name the entry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args, get_origin

import msgspec

from coherence.core.files import open_input
from coherence.core.forbidden_calls import ForbiddenCall, read_deny_list
from coherence.core.readings import FrozenDict, freeze
from coherence.core.scale import Scale, read_scale
from coherence.core.validation import check_count, check_flag, check_number, check_text, shown


def read_table(kind: Any, value: Any) -> Any:
    """Decode a table; an error names the bad entry, which msgspec does not do."""
    if get_origin(kind) is not FrozenDict:
        raise TypeError(f"cannot decode {kind}")
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a table, not {value!r}")
    table = {}
    for key, item in value.items():
        try:
            table[key] = msgspec.convert(item, get_args(kind)[1], strict=True)
        except msgspec.ValidationError as error:
            raise ValueError(f"{key!r}: {error}") from error
    return FrozenDict(table)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the content of a TOML file; a ValueError names what is wrong with it."""
    import tomllib  # which most processes never need

    try:
        with open_input(path) as file:
            return tomllib.load(file)
    except OSError as error:
        raise ValueError(f"config {path}: {error.strerror or error}; expected the path of a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"config {path}: not TOML: {error}") from error


def placed(settings: dict[str, Any], path: str | Path) -> dict[str, Any]:
    """Return the settings of a file; the path of a scale in them is relative to the folder of the file."""
    if isinstance(settings.get("scale"), str):
        settings["scale"] = str(Path(path).parent / settings["scale"])
    return settings


TickPolicy: TypeAlias = Literal["step", "event", "manual"] | float
"""Moment of a measurement: after each tool result or assistant message (``step``), after each event, only in
``decide()`` (``manual``), or every so many seconds if anything has happened."""


SIGNALS = (
    "uncertainty",
    "drift",
    "error_rate",
    "goal_coherence",
    "context_exhaustion",
    "cost",
    "token_usage",
    "repetition",
    "incoherence",
)
"""Signals of the pressure: the vitals, and one minus the index."""


_WEIGHTS = "weights must be a table, 'default' or 'classic'"


def disabled() -> bool:
    """Return ``True`` if ``COHERENCE_DISABLED`` is set to anything but empty, 0, false, no or off."""
    return os.environ.get("COHERENCE_DISABLED", "").strip().lower() not in ("", "0", "false", "no", "off")


class PressureConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Formula that turns signals into one pressure and a mode.

    The defaults react to failures within a few calls. :meth:`classic` has the constants of ``soma-ai`` 2026.4.30.
    """

    weights: FrozenDict[str, float] = FrozenDict(
        uncertainty=1.0,
        drift=1.0,
        error_rate=1.5,
        goal_coherence=1.0,
        context_exhaustion=2.0,
        cost=1.0,
        token_usage=0.8,
        repetition=1.0,
        incoherence=1.0,
    )
    """Weight of each signal in the mean. A signal of weight 0, or one that your table does not name, is ignored."""
    unknown_is_calm: bool = True
    """Count an unknown signal as calm in the mean. If false, it leaves the mean."""
    alpha: float = 0.08
    """Learning rate of the baselines, in (0, 1]. Higher values forget faster."""
    blend: int = 10
    """Number of samples after which a new baseline is fully trusted."""
    cold_mean: FrozenDict[str, float] = FrozenDict()
    """Expected value of each signal for any agent, mixed in over the first ``blend`` samples."""
    cold_std: float = 0.14
    """Added to the standard deviation of a new baseline, times ``(1 - samples / blend)**6``."""
    shift: float = 3.0
    """The z-score at which a signal's pressure is 0.5; higher is calmer."""
    clamp: float = 6.0
    """The z-score above which a signal's pressure is 1."""
    min_std: FrozenDict[str, float] = FrozenDict(
        uncertainty=0.18,
        drift=0.2,
        goal_coherence=0.2,
        incoherence=0.2,
        repetition=0.1,
        error_rate=0.1,
        token_usage=0.064,
        cost=0.051,
    )
    """Smallest standard deviation of each signal; 0.02 for signals without an entry."""
    max_share: float = 0.3
    """Share of the highest signal in the pressure, in [0, 1]. The rest is the weighted mean."""
    error_window: int = 10
    """Number of tool results over which the error rate is computed, 1 to 30."""
    streak_floor: tuple[float, ...] = (0.20, 0.30, 0.40, 0.50, 0.60, 0.70, 0.76)
    """Lowest pressure after 1, 2, 3, … errors in a row. The last value holds for longer streaks."""
    repeat_floor: tuple[float, ...] = (0, 0, 0, 0, 0.15, 0.18, 0.21, 0.25, 0.28, 0.31, 0.34, 0.37, 0.40, 0.43, 0.45)
    """Lowest pressure after 1, 2, 3, … identical calls with identical results in a row."""
    error_share_floor: bool = True
    """Keep the pressure at ``0.10 + 0.60 (rate - 0.2) / 0.8`` or above while the error rate is 0.2 or more."""
    learn_limit: float = 0.5
    """A baseline does not learn a sample with this pressure or more, in [0, 1]."""
    patience: int = 20
    """Number of unusual samples in a row after which a baseline learns again. The baseline of errors never does."""
    guide: float = 0.25
    """Pressure from which the mode is ``guide``, in [0, 1]."""
    warn: float = 0.50
    """Pressure from which the mode is ``warn``, in [0, 1]."""
    block: float = 0.75
    """Pressure from which the mode is ``block``, in [0, 1]."""
    learned_from: str = ""
    """Source of the numbers in words, if you have fitted them to an agent's history; a warning names it."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "weights", freeze(self.weights))
        msgspec.structs.force_setattr(self, "min_std", freeze(self.min_std))
        msgspec.structs.force_setattr(self, "cold_mean", freeze(self.cold_mean))
        for name, weight in self.weights.items():
            check_number(f"weights[{name!r}]", weight, least=0.0, most=1e6)
        for name, std in self.min_std.items():
            check_number(f"min_std[{name!r}]", std, least=1e-9, most=1.0)
        for name, mean in self.cold_mean.items():
            check_number(f"cold_mean[{name!r}]", mean, least=0.0, most=1.0)
        check_number("cold_std", self.cold_std, least=0.0, most=10.0)
        check_number("alpha", self.alpha, least=1e-6, most=1.0)
        check_count("blend", self.blend, least=1, most=10_000)
        check_number("shift", self.shift, least=0.0, most=100.0)
        check_number("clamp", self.clamp, least=0.0, most=1000.0)
        check_number("max_share", self.max_share, least=0.0, most=1.0)
        check_count("error_window", self.error_window, least=1, most=30)
        check_number("learn_limit", self.learn_limit, least=0.0, most=1.0)
        check_count("patience", self.patience, least=1)
        for field in ("streak_floor", "repeat_floor"):
            floors = getattr(self, field)
            for floor in floors:
                check_number(field, floor, least=0.0, most=1.0)
            if list(floors) != sorted(floors):
                raise ValueError(f"{field} must not fall, not {floors}")
        for field in ("guide", "warn", "block"):
            check_number(field, getattr(self, field), least=0.0, most=1.0)
        if not self.guide <= self.warn <= self.block:
            raise ValueError(f"guide <= warn <= block must hold, not {self.guide}, {self.warn}, {self.block}")

    @classmethod
    def classic(cls) -> PressureConfig:
        """Return the constants of ``soma-ai`` 2026.4.30: cold-start blend over 5, window 30, its weights and floors."""
        return cls(
            weights=FrozenDict(
                uncertainty=2.0,
                drift=1.8,
                error_rate=1.5,
                goal_coherence=1.5,
                context_exhaustion=1.5,
                cost=1.0,
                token_usage=0.8,
            ),
            unknown_is_calm=False,
            blend=5,
            cold_mean=FrozenDict(uncertainty=0.05, drift=0.05, token_usage=0.01, cost=0.01, error_rate=0.01),
            cold_std=0.0,
            min_std=FrozenDict(),
            error_window=30,
            streak_floor=(),
            repeat_floor=(),
            learn_limit=1.0,
        )


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on an agent's spending. ``None`` = no limit.

    At ``soft`` of any limit the decision is ``warn``. At the limit, ``check`` refuses the *next* call. The limit of one
    tool guides while that tool is in use, refuses only calls of that tool, and blocks if such a call is made anyway.

    Parameters
    ----------
    tokens : int, optional
        Input and output tokens together.
    cost_usd : float, optional
        US dollars. A call of unknown cost counts 0, and the finding reports it.
    wall_s : float, optional
        Seconds from the first event to the newest.
    calls : int, optional
        Tool calls.
    tool_calls : mapping of str to int
        Largest number of calls of each tool, 1 or more, by the exact name of the tool.
    soft : float
        Share of a limit from which the decision is ``warn``, in [0, 1].

    Examples
    --------
    >>> Budget(tokens=100_000, cost_usd=2.5).limits()
    {'tokens': 100000, 'cost_usd': 2.5}
    """

    tokens: int | None = None
    cost_usd: float | None = None
    wall_s: float | None = None
    calls: int | None = None
    tool_calls: Mapping[str, Any] = FrozenDict()  # Any: checked below, where the message can name the tool
    soft: float = 0.8

    def __post_init__(self) -> None:
        if not isinstance(self.tool_calls, Mapping):
            raise TypeError(f"budget tool_calls must be a table of tools and numbers, not {shown(self.tool_calls)}")
        msgspec.structs.force_setattr(self, "tool_calls", freeze(self.tool_calls))
        for tool, limit in self.tool_calls.items():
            check_text("budget tool_calls: a tool's name", tool, empty=False)
            check_count(f"budget tool_calls[{shown(tool)}]", limit, least=1)
        for field in ("tokens", "calls"):
            if getattr(self, field) is not None:
                check_count(f"budget {field}", getattr(self, field), least=0)
        for field in ("cost_usd", "wall_s"):
            if getattr(self, field) is not None:
                check_number(f"budget {field}", getattr(self, field), least=0.0)
        check_number("budget soft", self.soft, least=0.0, most=1.0)

    def limits(self) -> dict[str, float]:
        """Return the limits that are set, except those of single tools."""
        fields = ("tokens", "cost_usd", "wall_s", "calls")
        return {field: value for field in fields if (value := getattr(self, field)) is not None}


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Price of a model, in US dollars per million tokens."""

    input: float
    """Price of a million input tokens, 0 or more."""
    output: float
    """Price of a million output tokens, 0 or more."""

    def __post_init__(self) -> None:
        check_number("price input", self.input, least=0.0)
        check_number("price output", self.output, least=0.0)


DAY_S = 86_400.0


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on the events that a store keeps. ``None`` = no limit."""

    max_events: int | None = None
    """Number of events to keep, 1 or more. The oldest are removed first."""
    max_age_s: float | None = None
    """Age in seconds from which events are removed, 1 or more. The texts of guidance of that age go with them, and
    lessons and baselines that nothing has renewed for so long."""
    max_age_days: float | None = None
    """The same in days, above 0; give one of the two."""

    def __post_init__(self) -> None:
        if self.max_events is not None:
            check_count("retention max_events", self.max_events, least=1)
        if self.max_age_s is not None:
            check_number("retention max_age_s", self.max_age_s, least=1.0)
        if self.max_age_days is not None:
            check_number("retention max_age_days", self.max_age_days, least=1.0 / DAY_S)
            if self.max_age_s is not None:
                raise ValueError("retention: give max_age_s or max_age_days, not both")

    @property
    def age_s(self) -> float | None:
        """Age in seconds from which events are removed, however it was given."""
        return self.max_age_s if self.max_age_days is None else self.max_age_days * DAY_S


class RuleConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one rule."""

    enabled: bool = True
    """Evaluate the rule. If false, it gives no finding."""
    threshold: float | None = None
    """Score from which the rule is active, in [0, 1]; ``None`` = the rule's own threshold."""
    most: Literal["continue", "guide", "warn", "block"] = "block"
    """Strongest decision that the rule may ask for. With ``continue`` its finding is reported and has no effect."""
    release: float = 0.1
    """An active rule stays active until its score has fallen this far below the threshold, as a share of it: 0 to 1."""
    dwell: int = 1
    """Smallest number of steps (results and messages) for which the rule stays active while it applies."""

    def __post_init__(self) -> None:
        if self.threshold is not None:
            check_number("rule threshold", self.threshold, least=0.0, most=1.0)
        check_number("rule release", self.release, least=0.0, most=1.0)
        check_count("rule dwell", self.dwell, least=0, most=10_000)


class GuidanceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the guidance for the agent, and of the experiment that measures its effect."""

    enabled: bool = True
    """Offer guidance. If false, ``decision.guidance`` is always ``None``."""
    randomise: bool = False
    """Withhold one of every two firings of a pattern, at random, so that the effect can be measured."""
    seed: int = 0
    """Seed of the random order, 0 or more."""
    cooldown: int = 5
    """Number of steps after a firing in which the same pattern does not fire again."""
    limit: int = 400
    """Longest text, in characters, 40 or more."""
    learn: bool = True
    """Act on the experiment in new sessions: always send what is proven to help, never what is proven not to."""
    off: tuple[str, ...] = ()
    """Names of patterns (rules) that never give guidance."""

    def __post_init__(self) -> None:
        check_count("guidance seed", self.seed, least=0, most=2**62)
        check_count("guidance cooldown", self.cooldown, least=0, most=10_000)
        check_count("guidance limit", self.limit, least=40, most=10_000)


LEAST_BUDGET, MAX_BUDGET = 0.005, 0.5
"""Range of a budget. 0.5 % needs 399 good runs of the agent; 500 are kept."""


class AlarmConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Budgets of false alarms, and the choice to learn thresholds from the agent's own runs.

    Examples
    --------
    >>> AlarmConfig().budgets, AlarmConfig(budget=0.1, block_budget=0.01).budgets
    ((0.05,), (0.1, 0.01))
    """

    budget: float = 0.05
    """Share of good runs that may cause an alarm, in [0.005, 0.5]."""
    block_budget: float | None = None
    """Share of good runs in which a call may be refused, in [0.005, budget]; ``None`` = alarms only warn."""
    learn: bool = True
    """Use the thresholds and weights learned from the agent's own runs in new sessions."""

    def __post_init__(self) -> None:
        check_number("alarms budget", self.budget, least=LEAST_BUDGET, most=MAX_BUDGET)
        if self.block_budget is not None:
            check_number("alarms block_budget", self.block_budget, least=LEAST_BUDGET, most=self.budget)
        check_flag("alarms learn", self.learn)

    @property
    def budgets(self) -> tuple[float, ...]:
        """The budgets for which there is a threshold, each once."""
        return tuple(dict.fromkeys((self.budget, self.block_budget or self.budget)))


class GroundingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Checks of the values that an agent states, and the gate by which an answer can fail a run."""

    extractors: tuple[str, ...] = (
        "urls",
        "emails",
        "quotes",
        "functions",
        "papers",
        "paths",
        "dates",
        "times",
        "ids",
        "numbers",
    )
    """Extractors in use, shipped or registered (``names`` of people is shipped and off). An earlier extractor claims
    its part of a text before later ones."""
    gate: float | None = None
    """Lowest ``grounding`` of the last answer with which a run counts as a success, in [0, 1]; ``None`` = no gate."""

    def __post_init__(self) -> None:
        if self.gate is not None:
            check_number("grounding gate", self.gate, least=0.0, most=1.0)


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions for asking the judge about a call, and the effect of its answer. Without a judge they have no effect.

    Examples
    --------
    >>> MonitorConfig.load({"judge": {"timeout_s": 0.5, "budget_usd": 0.10}}).judge.budget_usd
    0.1
    """

    low: float = 0.15
    """Value of ``goal_hijack`` at which the grey zone begins, in [0, 1]."""
    high: float = 0.33
    """Value at which the grey zone ends, in [0, 1]. A higher threshold for warning extends the zone; a lower threshold
    for refusing ends it."""
    confirm: float = 0.7
    """Probability from which the answer causes a warning, in [0, 1]."""
    dismiss: float = 0.2
    """Probability up to which a warning becomes ``guide``, in [0, 1]. No answer silences a warning, because the judge
    reads text that may have been planted."""
    timeout_s: float = 2.0
    """Longest wait for one answer, in seconds."""
    budget_s: float = 60.0
    """Total waiting time of one monitor, in seconds. After that the judge is not asked again."""
    budget_usd: float | None = None
    """Total cost in US dollars, by the judge's own ``cost_usd`` per question; ``None`` = no limit."""
    max_chars: int = 4_000
    """Longest evidence shown to the judge, in characters."""

    def __post_init__(self) -> None:
        for field in ("low", "high", "confirm", "dismiss"):
            check_number(f"judge {field}", getattr(self, field), least=0.0, most=1.0)
        if self.low > self.high:
            raise ValueError(f"judge low must not be above high, not {self.low} and {self.high}")
        if self.dismiss >= self.confirm:
            raise ValueError(f"judge dismiss must be below confirm, not {self.dismiss} and {self.confirm}")
        check_number("judge timeout_s", self.timeout_s, least=0.001, most=600.0)
        check_number("judge budget_s", self.budget_s, least=0.0, most=1e7)
        if self.budget_usd is not None:
            check_number("judge budget_usd", self.budget_usd, least=0.0, most=1e9)
        check_count("judge max_chars", self.max_chars, least=200, most=1_000_000)


class MonitorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a monitor. Each session records the settings it began with.

    ``Monitor(config=...)`` takes an instance, a mapping, or the path of a TOML file with the same keys.
    """

    tick: TickPolicy = "step"
    """Moment of a measurement: ``step`` = after each tool result or assistant message, ``event`` = after each event,
    ``manual`` = only in ``decide()``, a number = every so many seconds if anything has happened."""
    window: int = 20
    """Number of recent messages that count as context, 1 or more."""
    metrics: tuple[str, ...] = ()
    """Names of registered metrics or vitals that count in the index besides the default ones."""
    weights: dict[str, Any] | Literal["default", "classic"] | None = "default"
    """Kind of index: ``default`` = the calibrated index; ``classic`` = the mean of the four vector metrics; a table =
    the weighted mean of the metrics and vitals that it names. ``None`` occurs in old recordings only."""
    scale: Scale | str | None = None
    """Scale of the calibrated index for the embedder in use, or the path of the file that ``coherence calibrate``
    writes. ``None`` = the shipped scale."""
    bands: tuple[float, float, float] | None = None
    """Lowest index of green, yellow and orange; ``None`` = 0.85, 0.60, 0.10 for the calibrated index, 0.8, 0.6, 0.4 for
    a weighted mean."""
    prior: float = 0.03
    """Expected share of steps off course before anything is known of a run, above 0 and below 1."""
    missing: Literal["unknown", "zero"] = "unknown"
    """Effect of an unknown metric on a weighted mean: it leaves the mean (``unknown``) or counts as 0 (``zero``)."""
    pressure: PressureConfig = PressureConfig()
    """Settings of the pressure."""
    rules: FrozenDict[str, RuleConfig] = FrozenDict()
    """Settings of each rule, by its name."""
    detectors: tuple[str, ...] = ()
    """Names of registered detectors that run besides the shipped ones."""
    block: Literal["destructive", "all"] = "destructive"
    """Calls that ``check`` refuses while a rule blocks. A used-up budget refuses every call."""
    forbid: tuple[ForbiddenCall, ...] = ()
    """Deny list: calls that ``check`` refuses. A call that is made anyway causes a warning."""
    refusals: int = 10
    """Number of refused calls after which a block ends. Budgets do not end this way."""
    guidance: GuidanceConfig = GuidanceConfig()
    """Settings of the messages for the agent."""
    grounding: GroundingConfig = GroundingConfig()
    """Settings of the check of stated values."""
    implicit_corrections: bool = False
    """Count a user's message that plainly corrects the agent as a correction."""
    budget: Budget | None = None
    """Budget of a monitor that is created without ``budget=``."""
    prices: FrozenDict[str, Price] = FrozenDict()
    """Price of each model, for usage that comes without a cost."""
    context_tokens: int | None = None
    """Size of the model's context window in tokens. ``None`` leaves ``context_exhaustion`` unknown."""
    output_format: Literal["json", "code", "list", "prose"] | None = None
    """Expected form of messages; ``None`` = the form that they mostly had."""
    timeout_s: float = 2.0
    """Longest duration of a measurement, and of all that ``decide`` and ``check`` do, in seconds."""
    wait_s: float = 2.0
    """Longest wait for the store where a call of the host waits for it, in seconds; what could not be written in time
    is written later. Also the longest time in which an argument that runs code of its own is read, at least 0.1 s."""
    redact: bool = True
    """Replace secrets before anything is recorded or measured."""
    privacy: Literal["full", "no-text"] = "full"
    """Content of the store: ``full`` = texts as they are measured; ``no-text`` = fingerprints, numbers and decisions
    only. Then nothing can be replayed or resumed, and there are no lessons."""
    alarms: AlarmConfig = AlarmConfig()
    """Budgets of false alarms."""
    judge: JudgeConfig = JudgeConfig()
    """Conditions for asking the judge, if the monitor has one."""
    retention: Retention | None = None
    """Limits on stored events, applied every hour and at the monitor's end; ``None`` = keep everything."""

    def __post_init__(self) -> None:
        # Copies that cannot change: whoever keeps the table that was given must not change settings by it.
        put = msgspec.structs.force_setattr
        put(self, "prices", freeze(self.prices))
        put(self, "rules", freeze(self.rules))
        put(self, "forbid", read_deny_list(self.forbid))
        check_count("refusals", self.refusals, least=1, most=1_000_000)
        if self.privacy not in ("full", "no-text"):
            raise ValueError(f"privacy must be 'full' or 'no-text', not {self.privacy!r}")
        if self.block not in ("destructive", "all"):
            raise ValueError(f"block must be 'destructive' or 'all', not {self.block!r}")
        if isinstance(self.weights, Mapping):
            put(self, "weights", freeze(self.weights))
            for name, weight in self.weights.items():
                check_number(f"weights[{name!r}]", weight, least=0.0)
        elif self.weights not in ("default", "classic", None):
            raise ValueError(f"{_WEIGHTS}, not {self.weights!r}")
        if isinstance(self.scale, str | Path):
            put(self, "scale", read_scale(self.scale))
        if self.scale is not None and self.weights != "default":
            raise ValueError("scale belongs to the calibrated index: leave out weights, or the scale")
        for table in ("weights", "min_std", "cold_mean"):
            for name in getattr(self.pressure, table):
                if name not in SIGNALS:
                    raise ValueError(f"pressure.{table}: no signal is called {name!r}; there are {', '.join(SIGNALS)}")
        check_number("prior", self.prior, least=1e-6, most=1.0 - 1e-6)
        for edge in self.bands or ():
            check_number("bands", edge, least=0.0, most=1.0)
        if self.bands is not None and list(self.bands) != sorted(self.bands, reverse=True):
            raise ValueError(f"bands must not rise, not {self.bands}")
        if isinstance(self.tick, str):
            if self.tick not in ("step", "event", "manual"):
                raise ValueError(f"tick must be 'step', 'event', 'manual' or seconds, not {self.tick!r}")
        else:
            check_number("tick", self.tick, least=0.01, most=1e7)
        check_count("window", self.window, least=1, most=10_000)
        if self.context_tokens is not None:
            check_count("context_tokens", self.context_tokens, least=1)
        check_number("timeout_s", self.timeout_s, least=0.001, most=86_400)
        check_number("wait_s", self.wait_s, least=0.0, most=86_400)

    @property
    def given_scale(self) -> Scale | None:
        """The scale that was given, ``None`` = a shipped one counts."""
        return self.scale if isinstance(self.scale, Scale) else None

    @classmethod
    def load(cls, given: MonitorConfig | Mapping[str, Any] | str | Path | None) -> Self:
        """Return settings from what a user passed.

        Raises
        ------
        TypeError, ValueError
            For an unknown key, a value of the wrong type or out of range, or a file that cannot be read; the message
            names it.
        """
        if given is None:
            return cls()
        where = str(given) if isinstance(given, str | Path) else "config"
        if not isinstance(given, cls):
            given = cls._read(where, placed(read_toml(given), given) if isinstance(given, str | Path) else given)
        if isinstance(given.weights, Mapping) and not any(given.weights.values()):  # which an old recording may hold
            raise ValueError(
                f"{where}: weights: no metric has a weight above 0, so the index would always be 1 and green; "
                "name one, or leave the table out for the default weights"
            )
        return given

    @classmethod
    def _read(cls, where: str, given: object) -> Self:
        if not isinstance(given, Mapping):
            raise TypeError(f"config must be a MonitorConfig, a mapping or the path of a TOML file, not {given!r}")
        if isinstance(given.get("scale"), Path):
            given = {**given, "scale": str(given["scale"])}
        weights = given.get("weights", "default")
        if not isinstance(weights, Mapping) and weights not in ("default", "classic"):
            # msgspec would not say what there is, and None is for old recordings
            raise ValueError(f"{where}: {_WEIGHTS}, not {weights!r}")
        try:
            return msgspec.convert(given, cls, strict=True, dec_hook=read_table)
        except msgspec.ValidationError as error:
            raise ValueError(f"{where}: {error}") from error
