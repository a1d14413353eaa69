"""The frozen nouns: ticks, readings, failures, evidence, and what a metric is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, get_args, get_origin

import msgspec

from coherence.core.errors import NotRequestedError, UnknownSourceError
from coherence.core.lazy import lazy_regex
from coherence.core.signs import said

if TYPE_CHECKING:
    from coherence.core.vectors import Matrix

K = TypeVar("K")
V = TypeVar("V")

Kind: TypeAlias = Literal["goals", "context", "memories", "all_memories"]
"""A source of texts: the goals, the recent context, the memories relevant to the goals, or every memory."""

KINDS: tuple[Kind, ...] = ("goals", "context", "memories", "all_memories")


class FrozenDict(dict[K, V]):
    """A dict that refuses to change; it prints, compares, pickles and serialises like a dict."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> FrozenDict[K, V]:
        made = super().__new__(cls)
        dict.update(made, *args, **kwargs)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Leave the contents alone: they were set when the object was made."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("readings are immutable; copy with dict(...) first")

    __setitem__ = __delitem__ = __ior__ = _refuse  # pyright: ignore[reportAssignmentType]
    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return FrozenDict, (dict(self),)


class Band(StrEnum):
    """Range of the index, in a word. A band compares equal to its word: ``reading.band == "green"``."""

    GREEN = "green"
    YELLOW = "yellow"
    ORANGE = "orange"
    RED = "red"
    UNKNOWN = "unknown"
    """Nothing was measured: grey, never green."""


class Tick(msgspec.Struct, frozen=True):
    """Moment of a measurement.

    Parameters
    ----------
    seq : int, optional
        Sequence number, 0 or more; readings are ordered by it. ``None``: the sensor gives the next number.
    ts : float, optional
        Unix time in seconds; ``None``: the moment of measuring.
    reason : str
        Reason in a word: ``"interval"``, ``"step"``, …
    """

    seq: int | None = None
    ts: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.seq is not None and (not isinstance(self.seq, int) or isinstance(self.seq, bool)):
            raise TypeError(f"seq must be an int or None, not {self.seq!r}")
        if self.seq is not None and not 0 <= self.seq < 2**63:
            raise ValueError(f"seq must be 0 or more and below 2**63, not {self.seq}")
        if self.ts is not None and (isinstance(self.ts, bool) or not isinstance(self.ts, int | float)):
            raise TypeError(f"ts must be a number or None, not {self.ts!r}")
        if self.ts is not None and not -1e18 < self.ts < 1e18:
            raise ValueError(f"ts must be Unix seconds, not {self.ts}")


class Failure(msgspec.Struct, frozen=True):
    """One thing that went wrong while measuring."""

    source: str
    """Part that failed: ``provider.get_goals``, ``embedder``, ``metric goal_drift``, ``on_reading``, ``sensor``."""
    kind: str
    """The exception's class name, or ``timeout``, ``disabled``, ``bad value``, ``bad vector``."""
    message: str
    """The failure and its consequence."""

    def __str__(self) -> str:
        return f"{self.source}: {self.kind}: {self.message}"


class Evidence(msgspec.Struct, frozen=True):
    """Items that explain the value of a metric."""

    why: str
    """One plain sentence fragment, such as ``farthest from every goal (cosine 0.03)``."""
    kind: Kind
    """The source the items come from."""
    items: tuple[int, ...] = ()
    """Positions in that source's list of texts."""
    texts: tuple[str, ...] = ()
    """Short excerpts of these items."""

    def __str__(self) -> str:
        return f"{' / '.join(f'“{text}”' for text in self.texts)} {self.why}" if self.texts else self.why


MAX_CLAIMS = 1_500
"""Claims of one text that are looked at."""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One checkable value in a text, as an extractor finds it."""

    kind: str
    """``id``, ``url``, ``email``, ``path``, ``function``, ``date``, ``time``, ``amount``, ``number``, ``quote``,
    ``name``, or an own one."""
    text: str
    """The value as written."""
    start: int
    """Position in the folded text, in characters."""
    forms: tuple[str, ...]
    """Normal forms; two mentions that share one are the same. They begin with a word of the kind and a colon."""
    also: tuple[str, ...] = ()
    """Further values that a *source* with this value gives: the year of a date, the file at the end of a path."""
    value: float | None = None
    """Value of a number, in its base unit."""
    grain: float = 0.0
    """Value of one unit of the last written digit of a number."""
    unit: str = ""
    """Base unit, currency or ``%`` of an amount; ``clock`` for a time of the day."""


class Counters(msgspec.Struct, frozen=True):
    """Running totals of an agent's life, as a provider counts them. ``None`` = not known."""

    calls: int | None = None
    """Tool calls."""
    errors: int | None = None
    """Calls that failed."""
    tokens_in: int | None = None
    """Tokens that models have read."""
    tokens_out: int | None = None
    """Tokens that models have written."""
    cost_usd: float | None = None
    """Cost in US dollars."""


class MetricInput:
    """Input of a metric. Row ``i`` of a matrix is the vector of text ``i`` of the same source.

    Matrices are float32 of shape ``(n, d)`` with rows of unit length. Everything is read-only. Reading a source that
    failed raises :class:`~coherence.core.errors.UnknownSourceError`, which makes the metric unknown at this tick;
    reading ``all_memories`` without declaring ``needs = {"all_memories"}`` raises
    :class:`~coherence.core.errors.NotRequestedError`.

    Parameters
    ----------
    goals, context, memories, all_memories : ndarray, optional
        Vectors of the goals, of the recent context (oldest first), of the memories relevant to the goals, of every
        memory.
    goals_texts, context_texts, memories_texts, all_memories_texts : sequence of str, optional
        The texts.
    tick : Tick, optional
        The tick that is measured.
    tables : callable, optional
        The sensor's kept cosines; without it :meth:`cosines` computes them.
    absent : mapping, optional
        Source -> why it is not there.
    """

    __slots__ = (
        "_absent",
        "_memo",
        "_tables",
        "all_memories",
        "all_memories_texts",
        "context",
        "context_texts",
        "goals",
        "goals_texts",
        "memories",
        "memories_texts",
        "tick",
    )
    tick: Tick
    goals: Matrix
    context: Matrix
    memories: Matrix
    all_memories: Matrix
    goals_texts: tuple[str, ...]
    context_texts: tuple[str, ...]
    memories_texts: tuple[str, ...]
    all_memories_texts: tuple[str, ...]
    _absent: Mapping[str, str]
    _memo: dict[tuple[Kind, Kind], Matrix]
    _tables: Callable[[Kind, Kind], Matrix] | None

    def __init__(
        self,
        *,
        goals: Matrix | None = None,
        context: Matrix | None = None,
        memories: Matrix | None = None,
        all_memories: Matrix | None = None,
        goals_texts: Iterable[str] = (),
        context_texts: Iterable[str] = (),
        memories_texts: Iterable[str] = (),
        all_memories_texts: Iterable[str] = (),
        tick: Tick | None = None,
        tables: Callable[[Kind, Kind], Matrix] | None = None,
        absent: Mapping[str, str] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "tick", tick or Tick())
        put(self, "_tables", tables)
        put(self, "_absent", absent or {})
        put(self, "_memo", {})
        for kind, matrix, texts in (
            ("goals", goals, goals_texts),
            ("context", context, context_texts),
            ("memories", memories, memories_texts),
            ("all_memories", all_memories, all_memories_texts),
        ):
            if matrix is not None:
                put(self, kind, matrix)
                put(self, f"{kind}_texts", tuple(texts))

    def __getattr__(self, name: str) -> NoReturn:
        # Reached only for a slot that was not filled.
        kind = name.removesuffix("_texts")
        if kind in self._absent:
            raise UnknownSourceError(self._absent[kind])
        if kind == "all_memories":
            raise NotRequestedError('to read all memories, a metric declares needs = {"all_memories"}')
        raise AttributeError(f"MetricInput has no {name}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"MetricInput is read-only: {name}")

    def cosines(self, rows: Kind, columns: Kind) -> Matrix:
        """Return the cosine of every pair of two sources, shape ``(n rows, m columns)``.

        Within a sensor only the pairs with a new text are computed; the rest is kept from the tick before.
        """
        table = self._memo.get((rows, columns))
        if table is None:
            # Read even where the table is made elsewhere: a source that failed has to raise.
            left, right = getattr(self, rows), getattr(self, columns)
            if self._tables is not None:
                table = self._tables(rows, columns)
            else:
                from coherence.core.vectors import cosine_table

                table = cosine_table(left, right)
            self._memo[rows, columns] = table
        return table


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one tick: the measurement, and the index and band made of it. Immutable.

    A green band is not a proof that the agent is right.
    """

    tick_seq: int
    """Sequence number of the tick."""
    ts: float
    """Unix time in seconds."""
    metrics: FrozenDict[str, float | None]
    """Value of each metric in [0, 1]; ``None`` = unknown."""
    coherence_index: float | None
    """Calibrated chance in [0, 1] that the run is on course, kept inside the band. A classic index is the weighted mean
    of the known metrics. ``None`` = nothing was measured."""
    band: Band
    """Range of the index: green, yellow, orange, red or unknown."""
    coverage: float
    """Known weight / total weight, in [0, 1]."""
    errors: tuple[Failure, ...] = ()
    """One entry per failure, in order."""
    unknown: FrozenDict[str, str] = FrozenDict()
    """Reason for each metric whose value is ``None``."""
    losses: FrozenDict[str, float] = FrozenDict()
    """Amount that each sign or metric takes from the index. The amounts sum to the risk, or to ``1 - coherence_index``
    with a classic index."""
    evidence: FrozenDict[str, Evidence] = FrozenDict()
    """Texts behind the value of a metric, for each metric that can name them."""
    risk: float | None = None
    """Calibrated chance that the run is off course now, in [0, 1]; ``None`` = unknown, or a classic index."""
    cause: str = ""
    """Strongest sign against the run, or the rule that asked for the band, or ``policy``."""
    scale: str = ""
    """Version of the scale that made the risk; empty for a classic index."""

    def __str__(self) -> str:
        values = "  ".join(f"{name} {_number(value)}" for name, value in self.metrics.items())
        trouble = f"  {len(self.errors)} error{'s'[: len(self.errors) > 1]}" if self.errors else ""
        return (
            f"tick {self.tick_seq}  {self._index('{}')}  coverage {self.coverage:.0%}"
            f"{'  ' if values else ''}{values}{trouble}"
        )

    def __repr__(self) -> str:
        trouble = f", {len(self.errors)} errors" if self.errors else ""
        cause = f", {self.cause}" if self.cause else ""
        return f"<Reading {self.tick_seq}: {self._index('{}')}, coverage {self.coverage:.0%}{cause}{trouble}>"

    def _repr_html_(self) -> str:
        """Draw a card, for notebooks."""
        from coherence.core.cards import reading_card  # which only a notebook needs

        return reading_card(self)

    def short(self) -> str:
        """Return index and band, such as ``0.97 green``."""
        return self._index("{}")

    def worst(self) -> str | None:
        """Return the name of the sign or metric that takes most from the index, ``None`` if none takes anything."""
        name = max(self.losses, key=self.losses.__getitem__, default=None)
        return name if name is not None and self.losses[name] > 0 else None

    def value_of(self, sign: str) -> float | None:
        """Return the value of the metric that a sign is made of, ``None`` if it is unknown or made of none."""
        return self.metrics.get(metric_of(sign))

    def explain(self) -> str:
        """Say in words which scale made the index, what lowers it, what is unknown and what failed."""
        by = scale_in_words(self.scale)
        lines = [f"index {self._index('({})')}, {self.coverage:.0%} of the weight is known; {by}"]
        for name in sorted(self.losses, key=lambda key: -self.losses[key]):
            found = self.evidence.get(metric_of(name))
            evidence = f": {found}" if found is not None and self.losses[name] > 0 else ""
            value = self.value_of(name)
            shown = f" {value:.2f}" if value is not None and name == metric_of(name) else ""
            sign, words = f"{name.replace(CHANGE, ', change since the start')}{shown}", said(name)
            evidence = "" if evidence == f": {words}" else evidence
            sign = sign if words == name or not self.scale else f"{words} ({sign})"
            lines.append(f"  {sign} takes {self.losses[name]:.2f}{evidence}")
        if self.cause and self.cause not in self.losses and self.band is not Band.UNKNOWN:
            by = POLICY_IN_WORDS if self.cause == POLICY else f"the rule {self.cause}"
            lines.append(f"  {by} asks for {self.band}")
        lost = {metric_of(name) for name in self.losses}
        reported = [name for name in self.metrics if name not in lost and name not in self.unknown]
        what = "takes nothing" if self.scale else "is reported only (no weight)"
        lines += [f"  {name} {_number(self.metrics[name])} {what}" for name in reported]
        lines += [f"  {name} is unknown: {reason}" for name, reason in self.unknown.items()]
        lines += [f"  error in {failure}" for failure in self.errors]
        return "\n".join(lines)

    def _index(self, form: str) -> str:
        return "unknown" if self.coherence_index is None else f"{self.coherence_index:.2f} {form.format(self.band)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and strings, ready for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


POLICY = "policy"
"""Cause of a block that something set by somebody asked for: a budget, a refused call, a rule of one's own."""

POLICY_IN_WORDS = "policy (a budget, a refused call or a rule of your own)"

WITHOUT_MEANINGS = "events"
"""First word of the names of scales that nothing an embedder makes has a part in."""

_FITTED = lazy_regex(r"(?:^|-)own-[0-9a-f]{8}$")
"""End of the names that ``coherence calibrate`` gives."""

OWN_SCATTER = "own scatter"
"""Follows the name of a scale whose changes are sized by an agent's first readings."""


def scale_in_words(scale: str) -> str:
    """Return which scale a reading was made by, and what that means, for people.

    Examples
    --------
    >>> for scale in ("minilm-1", "minilm-1+60 own runs", "hashing-own-1a2b3c4d", ""):
    ...     print(scale_in_words(scale))
    scale minilm-1
    scale minilm-1, adjusted by 60 labelled runs of this agent
    scale hashing-own-1a2b3c4d, fitted on your own runs
    classic index: a weighted mean, without a scale
    """
    if not scale:
        return "classic index: a weighted mean, without a scale"
    name, _, change = scale.partition("+")
    words = f"scale {name}"
    if _FITTED.search(name):
        words += ", fitted on your own runs"
    elif name.partition("-")[0] == WITHOUT_MEANINGS:
        words += ", which compares no meanings (no embedder, or none that a scale was fitted for)"
    if change == OWN_SCATTER:
        return f"{words}, fitted for another embedder and adjusted by this agent's first readings"
    return f"{words}, adjusted by {change.replace('own', 'labelled')} of this agent" if change else words


CHANGE = ".change"
"""Suffix of a metric's name for its change since the run's own start."""


def metric_of(sign: str) -> str:
    """Return the metric that a sign is made of.

    Examples
    --------
    >>> metric_of("drift.change"), metric_of("stall")
    ('drift', 'stall')
    """
    return sign.removesuffix(CHANGE)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


_CONTROL = lazy_regex("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is 1.

    Examples
    --------
    >>> [number_of(count, "run") for count in (0, 1, 1200)]
    ['0 runs', '1 run', '1,200 runs']
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def times(count: int) -> str:
    """Return how often something was, in words.

    Examples
    --------
    >>> [times(count) for count in (1, 2, 1200)]
    ['once', '2 times', '1,200 times']
    """
    return "once" if count == 1 else number_of(count, "time")


def span(seconds: float) -> str:
    """Return a length of time in the two largest units that say something.

    Examples
    --------
    >>> [span(seconds) for seconds in (0.4, 40, 150, 7980, 200_000)]
    ['0 s', '40 s', '2 min', '2 h 13 min', '2 d 7 h']
    """
    whole = max(int(seconds), 0)
    if whole < 120:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def one_line(text: str) -> str:
    """Return a text without line breaks, terminal controls, changes of writing direction and lone surrogates."""
    return _CONTROL.sub(" ", text)


def excerpt(text: str, length: int = 120) -> str:
    r"""Return the beginning of a text on one line, for people to recognise it.

    Examples
    --------
    >>> excerpt("one\n  two", 5)
    'one t…'
    """
    # enough to see that there is more: whole texts would stay in the cache
    return _excerpt(text[: 2 * length + 1], length)


def fits_line(text: str, length: int) -> bool:
    """Tell whether a text is one line of so many characters already, which :func:`excerpt` leaves as it is."""
    return len(text) <= length and text.isprintable() and "  " not in text and text.strip() == text


@lru_cache(maxsize=512)  # the same few texts are shown tick after tick
def _excerpt(text: str, length: int) -> str:
    if fits_line(text, length) or (text[-1:] == "…" and fits_line(text, length + 1)):
        return text  # most of what is shown is one line already, or an excerpt
    line = " ".join(text[: 2 * length].split())
    line = line if line.isprintable() else " ".join(one_line(line).split())
    return line if len(line) <= length and len(text) <= 2 * length else line[:length] + "…"


def freeze(pairs: Mapping[K, V] | Iterable[tuple[K, V]]) -> FrozenDict[K, V]:
    """Return an immutable copy."""
    return FrozenDict(pairs)


def frozen_hook(kind: Any, value: Any) -> Any:
    """Decode a :class:`FrozenDict`; msgspec's ``dec_hook`` for the records of this package."""
    if get_origin(kind) is not FrozenDict:
        raise TypeError(f"cannot decode {kind}")
    keys, values = get_args(kind)
    return FrozenDict(msgspec.convert(value, dict[keys, values], dec_hook=frozen_hook))  # type: ignore[valid-type]  # runtime types
