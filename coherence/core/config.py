"""Reading settings from TOML, with errors that name the entry."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args, get_origin

import msgspec

from coherence.core.readings import FrozenDict, freeze
from coherence.core.scale import Scale, read_scale
from coherence.core.validation import check_count, check_flag, check_number, check_text, shown


def read_table(kind: Any, value: Any) -> Any:
    """Decode a table; a bad entry is named, which msgspec does not do."""
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
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ValueError(f"config {path}: {error.strerror or error}; expected the path of a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"config {path}: not TOML: {error}") from error


def _read_settings(path: str | Path) -> dict[str, Any]:
    """Return the settings of a TOML file; the path of a scale is told from the file's folder."""
    settings = read_toml(path)
    if isinstance(settings.get("scale"), str):
        settings["scale"] = str(Path(path).parent / settings["scale"])
    return settings


TickPolicy: TypeAlias = Literal["step", "event", "manual"] | float
"""When a monitor measures by itself: after each tool result or assistant message, after each event, only when
``decide()`` asks, or every so many seconds (if anything has happened)."""


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
"""What pressure is made of: the vitals and one minus the index."""


_WEIGHTS = "weights must be a table, 'default' or 'classic'"


def disabled() -> bool:
    """Tell whether ``COHERENCE_DISABLED`` switches the package off (any value but empty, 0, false, no, off)."""
    return os.environ.get("COHERENCE_DISABLED", "").strip().lower() not in ("", "0", "false", "no", "off")


class PressureConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings by which signals become one pressure and a mode; see ``docs/decisions.md`` for the formulas.

    The defaults react to failures within a few calls; :meth:`classic` gives the constants of an earlier system.
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
    """Signal -> weight in the mean. A signal of weight 0, or that a given table does not name, is left out, of the
    maximum too."""
    unknown_is_calm: bool = True
    """Whether a signal that is unknown counts as calm in the mean, so that one signal weighs the same whatever else is
    known; else it leaves the mean."""
    alpha: float = 0.08
    """How fast baselines learn, in (0, 1]; higher forgets faster."""
    blend: int = 10
    """Samples over which a new baseline is trusted more and more."""
    cold_mean: FrozenDict[str, float] = FrozenDict()
    """Signal -> what is expected of any agent, mixed in over the first ``blend`` samples; default: nothing."""
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
    """Signal -> least standard deviation; 0.02 for the others."""
    max_share: float = 0.3
    """Share of the highest signal in the aggregate; the rest is the weighted mean's."""
    error_window: int = 10
    """Tool results over which the error rate is taken."""
    streak_floor: tuple[float, ...] = (0.20, 0.30, 0.40, 0.50, 0.60, 0.70, 0.76)
    """Least pressure after 1, 2, 3, … errors in a row; the last one holds on."""
    repeat_floor: tuple[float, ...] = (0, 0, 0, 0, 0.15, 0.18, 0.21, 0.25, 0.28, 0.31, 0.34, 0.37, 0.40, 0.43, 0.45)
    """Least pressure after 1, 2, 3, … identical calls with identical results in a row."""
    error_share_floor: bool = True
    """Whether an error rate of 0.2 or more holds the pressure up: ``0.10 + 0.60 (rate - 0.2) / 0.8``."""
    learn_limit: float = 0.5
    """A sample whose own pressure reaches this is not learned."""
    patience: int = 20
    """After so many samples in a row that were too unusual to learn, a baseline follows; never that of errors."""
    guide: float = 0.25
    warn: float = 0.50
    block: float = 0.75
    learned_from: str = ""
    """Whose history the numbers were learned from, in words; empty = the shipped ones."""

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
    """Limits of what an agent may use up. ``None`` = no limit.

    At ``soft`` of any limit the decision is to warn; at the limit the *next* call is refused. A limit of one tool asks
    to guide while that tool is in use, refuses that tool's calls only, and blocks where it is passed all the same.

    Parameters
    ----------
    tokens : int, optional
        Input and output tokens together.
    cost_usd : float, optional
        US dollars. Calls of unknown cost count 0 and are reported.
    wall_s : float, optional
        Seconds from the first event to the newest.
    calls : int, optional
        Tool calls.
    tool_calls : mapping of str to int
        Tool -> calls of it, 1 or more; exact names.
    soft : float
        Share of a limit at which to warn, in [0, 1].

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
        """Return the limits that are set, but for those of single tools."""
        fields = ("tokens", "cost_usd", "wall_s", "calls")
        return {field: value for field in fields if (value := getattr(self, field)) is not None}


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Price of a model, in US dollars per million tokens."""

    input: float
    output: float

    def __post_init__(self) -> None:
        check_number("price input", self.input, least=0.0)
        check_number("price output", self.output, least=0.0)


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of what a store keeps. ``None`` = everything."""

    max_events: int | None = None
    max_age_s: float | None = None

    def __post_init__(self) -> None:
        if self.max_events is not None:
            check_count("retention max_events", self.max_events, least=1)
        if self.max_age_s is not None:
            check_number("retention max_age_s", self.max_age_s, least=1.0)


class RuleConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one rule."""

    enabled: bool = True
    threshold: float | None = None
    """Score from which it is active, in [0, 1]; default: the rule's own."""
    most: Literal["continue", "guide", "warn", "block"] = "block"
    """The most it may ask for; ``continue`` = it is shown, and does nothing."""
    release: float = 0.1
    """Hysteresis: once active, it stays so until its score is this share below its threshold, in [0, 1]."""
    dwell: int = 1
    """Steps (results and messages) for which it stays active at least, unless it does not apply any more."""

    def __post_init__(self) -> None:
        if self.threshold is not None:
            check_number("rule threshold", self.threshold, least=0.0, most=1.0)
        check_number("rule release", self.release, least=0.0, most=1.0)
        check_count("rule dwell", self.dwell, least=0, most=10_000)


class GuidanceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of guidance, and of the measurement of its effect."""

    enabled: bool = True
    randomise: bool = False
    """Whether every second firing of a pattern is withheld, at random, so that the effect can be measured."""
    seed: int = 0
    """Of the random order."""
    cooldown: int = 5
    """Steps after a firing during which the same pattern does not fire again."""
    limit: int = 400
    """Characters of one text at most."""
    learn: bool = True
    """Whether a new session tells what was proven to help, always, and does not tell what was proven not to."""
    off: tuple[str, ...] = ()
    """Patterns that never fire."""

    def __post_init__(self) -> None:
        check_count("guidance seed", self.seed, least=0, most=2**62)
        check_count("guidance cooldown", self.cooldown, least=0, most=10_000)
        check_count("guidance limit", self.limit, least=40, most=10_000)


LEAST_BUDGET, MAX_BUDGET = 0.005, 0.5
"""Range of a budget. 0.5 % needs 399 good runs of the agent's own; 500 are kept."""


class AlarmConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of alarms: the share of an agent's good runs that may alarm, and if its own runs decide.

    Examples
    --------
    >>> AlarmConfig().budgets, AlarmConfig(budget=0.1, block_budget=0.01).budgets
    ((0.05,), (0.1, 0.01))
    """

    budget: float = 0.05
    """Share of good runs that may alarm, in [0.005, 0.5]."""
    block_budget: float | None = None
    """Share of good runs in which a call may be refused, in [0.005, budget]; default: none is."""
    learn: bool = True
    """Whether a new session takes thresholds and weights that the agent's own labelled runs have set."""

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
    """Settings of the checks of what the agent states, and of the gate that can fail a run."""

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
    """Names of what is looked for: extractors of this package (``names``, of people, is a further one) or registered
    ones. Earlier ones take their stretch of a text from later ones."""
    gate: float | None = None
    """Least ``grounding`` of the last answer, in [0, 1], with which a run counts as a success; default: not asked."""

    def __post_init__(self) -> None:
        if self.gate is not None:
            check_number("grounding gate", self.gate, least=0.0, most=1.0)


class ForbiddenCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    r"""Calls that ``check`` refuses: an entry of the deny list.

    Parameters
    ----------
    tool : str
        The tool's name; ``*`` stands for any characters, case does not count.
    matches : str
        What the call's arguments hold, in the same way, anywhere in them; blanks of any length are one. Default:
        whatever they are. A regular expression is refused: a hostile text could make one take for ever.

    Examples
    --------
    >>> entry = ForbiddenCall(tool="bash", matches="git push*--force")
    >>> entry.forbids("Bash", "git  push origin main --force"), entry.forbids("Bash", "git push")
    (True, False)
    """

    tool: str = "*"
    matches: str = "*"

    def __post_init__(self) -> None:
        for field in ("tool", "matches"):
            value = getattr(self, field)
            check_text(f"forbid {field}", value, empty=False)
            if len(value) > MAX_PATTERN:
                raise ValueError(f"forbid {field} must have {MAX_PATTERN} characters at most, not {len(value)}")
            if (sign := _regex_sign(value)) is not None:
                raise ValueError(
                    f"forbid {field} = {value!r} looks like a regular expression ({sign}); "
                    "write plain text, in which * stands for any characters"
                )
        if not self.tool.strip("* ") and not self.matches.strip("* "):
            raise ValueError("forbid needs a tool or what it matches: an entry without either would refuse every call")

    def names(self, tool: str) -> bool:
        """Tell whether the entry is about a tool."""
        first, *rest = self.tool.strip().casefold().split("*")
        name = tool[:MAX_TOOL].casefold()
        if not rest:
            return name == first
        ends = name.startswith(first) and name.endswith(rest[-1]) and len(name) >= len(first) + len(rest[-1])
        return ends and _hold(name[len(first) : len(name) - len(rest[-1])], rest[:-1])

    def forbids(self, tool: str, text: str) -> bool:
        """Tell whether the entry forbids a call; ``text`` = its arguments as text. Takes time in their proportion."""
        if not self.names(tool):
            return False
        parts = [part for part in " ".join(self.matches.casefold().split()).split("*") if part.strip()]
        return not parts or _hold(" ".join(text.casefold().split()), parts)

    def __str__(self) -> str:
        """Return the entry as it stands in a settings file."""
        shown = [f"{field} = {value!r}" for field in ("tool", "matches") if (value := getattr(self, field)) != "*"]
        return "{" + ", ".join(shown) + "}"


MAX_PATTERN = 500
MAX_FORBIDDEN = 200
"""Entries of a deny list."""

MAX_TOOL = 1_000
_REGEX_SIGNS = ("(?", "[a-z", "[^", ".+", "\\s", "\\b", "\\d", "\\w", "\\S", "\\.")


def _regex_sign(pattern: str) -> str | None:
    """Return what makes a pattern look like a regular expression; a path of Windows does not."""
    if ".*" in pattern.replace("*.*", ""):
        return ".*"
    path = ":\\" in pattern
    return next((sign for sign in _REGEX_SIGNS if sign in pattern and not (path and sign[0] == "\\")), None)


def _hold(text: str, parts: Sequence[str]) -> bool:
    """Tell whether a text holds parts in their order."""
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _forbidden(given: object) -> tuple[ForbiddenCall, ...]:
    """Return a deny list; an error names the entry."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise TypeError(f"forbid must be a list of tables such as {{tool = 'Bash'}}, not {shown(given)}")
    if len(given) > MAX_FORBIDDEN:
        raise ValueError(f"forbid must have {MAX_FORBIDDEN} entries at most, not {len(given)}")
    entries = []
    for at, entry in enumerate(given):
        try:
            entries.append(entry if isinstance(entry, ForbiddenCall) else msgspec.convert(entry, ForbiddenCall))
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            raise ValueError(f"forbid[{at}]: {error}") from error
    return tuple(entries)


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a judge's second opinion on a call. Without a judge they do nothing.

    Examples
    --------
    >>> MonitorConfig.load({"judge": {"timeout_s": 0.5, "budget_usd": 0.10}}).judge.budget_usd
    0.1
    """

    low: float = 0.15
    """Value of ``goal_hijack`` from which an acting call is in the grey zone, in [0, 1]."""
    high: float = 0.33
    """Value at which the zone ends, or at the threshold of a warning where that is higher, or of a refusal where that
    is lower: above it no further opinion is needed."""
    confirm: float = 0.7
    """Probability from which the call is warned of."""
    dismiss: float = 0.2
    """Probability up to which a warning becomes a hint (``guide``). A judge never silences one: it reads what may have
    been planted."""
    timeout_s: float = 2.0
    """Seconds that whoever asked waits at most for one answer."""
    budget_s: float = 60.0
    """Seconds of waiting in all, for one monitor; then nobody is asked any more."""
    budget_usd: float | None = None
    """US dollars in all, by the judge's own ``cost_usd`` a question; ``None`` = no limit."""
    max_chars: int = 4_000
    """Characters of evidence shown to it at most."""

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
    """Everything about a monitor that changes what it measures and decides; recorded with each session.

    A mapping or the path of a TOML file with these keys is as good.
    """

    tick: TickPolicy = "step"
    window: int = 20
    """Messages of context, 1 or more."""
    metrics: tuple[str, ...] = ()
    """Names of registered metrics or vitals that count in the index beside the default ones."""
    weights: dict[str, Any] | Literal["default", "classic"] | None = "default"
    """What the index is made of: ``default`` = every sign, through the shipped scale (:mod:`coherence.sensor.light`);
    ``classic`` (``None`` in old recordings) = the mean of the four vector metrics; a table = a weighted mean of its
    metrics and vitals."""
    scale: Scale | str | None = None
    """Scale of the calibrated index, fitted with the embedder in use, or the path of its file, which
    ``coherence calibrate`` writes: it is read here, and what it holds is recorded. ``None`` = a shipped one."""
    bands: tuple[float, float, float] | None = None
    """Lowest index of green, yellow, orange; ``None`` = 0.85, 0.60, 0.10 of the calibrated index, 0.8, 0.6, 0.4 of a
    weighted mean."""
    prior: float = 0.03
    """Share of steps off course that is expected of a run of which nothing is known, above 0 and below 1."""
    missing: Literal["unknown", "zero"] = "unknown"
    pressure: PressureConfig = PressureConfig()
    learn_pressure: bool = False
    """Whether a new session learns thresholds, blend and shift from this agent's earlier ones, if there are enough."""
    rules: FrozenDict[str, RuleConfig] = FrozenDict()
    """Rule -> how it may act."""
    detectors: tuple[str, ...] = ()
    """Names of registered detectors that follow the run beside those of this package."""
    block: Literal["destructive", "all"] = "destructive"
    """Which calls ``check`` refuses while something blocks; a budget that is used up refuses every call."""
    forbid: tuple[ForbiddenCall, ...] = ()
    """Deny list: calls that ``check`` refuses, and that are warned of where they are made all the same."""
    refusals: int = 10
    """Refused calls after which a block ends, because the agent is not helped by it; budgets do not end so."""
    guidance: GuidanceConfig = GuidanceConfig()
    grounding: GroundingConfig = GroundingConfig()
    implicit_corrections: bool = False
    """Whether a user's message that plainly corrects the agent counts as a correction."""
    budget: Budget | None = None
    """Used where the monitor is not given one."""
    prices: FrozenDict[str, Price] = FrozenDict()
    """Model -> price, for usage that comes without a cost."""
    context_tokens: int | None = None
    """Size of the model's context window; without it, exhaustion is unknown."""
    output_format: Literal["json", "code", "list", "prose"] | None = None
    """The form that messages should have; default: the one they mostly had."""
    timeout_s: float = 2.0
    """Seconds a measurement may take."""
    redact: bool = True
    """Whether secrets are replaced before anything is recorded or measured."""
    alarms: AlarmConfig = AlarmConfig()
    """How many good runs may alarm, and whether the agent's own runs set that."""
    judge: JudgeConfig = JudgeConfig()
    """When a judge is asked, where the monitor was given one."""
    retention: Retention | None = None
    """Applied when the monitor is closed; default: keep everything."""

    def __post_init__(self) -> None:
        put = msgspec.structs.force_setattr
        put(self, "prices", freeze(self.prices))
        put(self, "rules", freeze(self.rules))
        put(self, "forbid", _forbidden(self.forbid))
        check_count("refusals", self.refusals, least=1, most=1_000_000)
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
            given = cls._read(where, _read_settings(given) if isinstance(given, str | Path) else given)
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
