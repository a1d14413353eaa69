"""Bounds of a patch: listed keys only, each a number in a range or one of some choices; all is accepted, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import msgspec

from coherence.core.redact import redacted_start
from coherence.core.validation import check_flag, check_number, check_text, clean, shown

Scalar: TypeAlias = str | int | float | bool | None
"""A leaf of a patch."""

RuleName: TypeAlias = Literal["shape", "size", "key", "kind", "finite", "range", "step", "choice", "auto_apply", "same"]
"""Rule that refuses a patch: shape = not a table of tables and plain values; size = too many keys; key = not listed;
kind = another type than the key takes; finite = NaN or infinite; range, step, choice = outside what the bound allows;
auto_apply = not True or False; same = the configuration holds all of it already."""

MAX_VALUE = 1e300
"""The largest magnitude of a bound, so that differences stay finite."""

ROUNDING = 1e-9
"""By which part a step may exceed its limit, for the rounding of binary fractions."""


class Bound(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bound of one key: a number in a range, or one of some choices.

    Parameters
    ----------
    least, most : float or None
        Smallest and largest value; both or neither, at most 1e300 in magnitude.
    whole : bool
        True = the number must be an int.
    step : float or None
        Largest change against the current value, more than 0. A relative error of 1e-9 is forgiven: 0.8 to 0.7 is a
        step of 0.1.
    step_ratio : float or None
        Largest change as a part of the current value's magnitude, more than 0 (0.25 = a quarter). If ``step`` is given
        too, both hold. A current value of 0 cannot be changed by a ratio.
    choices : tuple or None
        Allowed values (texts, numbers, True, False, None), 1 to 1,000, instead of a range. 1 is not True.

    Raises
    ------
    TypeError, ValueError
        For a field of another type or outside its range, for a bound with neither or both of range and choices.

    Examples
    --------
    >>> Bound(least=0, most=10, whole=True, step=2).whole, Bound(choices=("fast", "careful")).choices
    (True, ('fast', 'careful'))
    """

    least: float | None = None
    most: float | None = None
    whole: bool = False
    step: float | None = None
    step_ratio: float | None = None
    choices: tuple[Scalar, ...] | None = None

    def __post_init__(self) -> None:
        check_flag("whole", self.whole)
        if self.choices is not None:
            if (self.least, self.most, self.step, self.step_ratio, self.whole) != (None, None, None, None, False):
                raise ValueError("choices exclude least, most, whole, step and step_ratio")
            if type(self.choices) is not tuple or not 1 <= len(self.choices) <= 1000:
                raise ValueError(f"choices must be a tuple of 1 to 1,000 values, not {shown(self.choices)}")
            for choice in self.choices:
                if type(choice) is float:
                    check_number("choice", choice)
                elif not (choice is None or type(choice) in (str, int, bool)):
                    raise TypeError(f"choices must be plain values, not {shown(choice)}")
            return
        if self.least is None or self.most is None:
            raise ValueError("a bound needs least and most, or choices")
        check_number("least", self.least, least=-MAX_VALUE, most=MAX_VALUE)
        check_number("most", self.most, least=self.least, most=MAX_VALUE)
        for name, value in (("step", self.step), ("step_ratio", self.step_ratio)):
            if value is not None and check_number(name, value, least=0, most=MAX_VALUE) == 0:
                raise ValueError(f"{name} must be more than 0")

    def refuses(self, value: Scalar, current: object = None) -> tuple[RuleName, str] | None:
        """Return which rule refuses a plain value and what it says, or None if the value is within bounds.

        Parameters
        ----------
        value : str, int, float, bool or None
            The value to set.
        current : object
            What the configuration holds; anything but a finite number counts as unknown, and forbids a change that has
            a largest step.
        """
        if self.choices is not None:
            if any(type(value) is type(choice) and value == choice for choice in self.choices):
                return None
            return "choice", f"must be one of {short_repr(self.choices)}"
        if isinstance(value, bool) or not isinstance(value, int | float) or (self.whole and not isinstance(value, int)):
            return "kind", f"must be {'an int' if self.whole else 'a number'}"
        if not self.least <= value <= self.most:  # type: ignore[operator]  # both are set where choices are not
            return "range", f"must be in [{self.least!r}, {self.most!r}]"
        return self._refuses_step(value, current)

    def _refuses_step(self, value: float, current: object) -> tuple[RuleName, str] | None:
        if self.step is None and self.step_ratio is None:
            return None
        if isinstance(current, bool) or not isinstance(current, int | float) or not abs(current) <= MAX_VALUE:
            return "step", f"has a largest step, and its current value {short_repr(current)} is no number to step from"
        change = abs(value - current)
        if self.step is not None and change > self.step * (1 + ROUNDING):
            return "step", f"may change by at most {self.step!r} from {short_repr(current)}"
        if self.step_ratio is not None and change > self.step_ratio * abs(current) * (1 + ROUNDING):
            return "step", f"may change by at most {self.step_ratio!r} of the current {short_repr(current)}"
        return None


def plain_scalar(value: object) -> tuple[bool, Scalar]:
    """Return whether a value is plain, and it as exactly str, int, float, bool or None; its methods are not called."""
    kind, known = type(value), cast(Any, value)
    if known is None or kind is bool:
        return True, known
    if issubclass(kind, str):
        return True, str.__str__(known)
    if issubclass(kind, int):
        return True, int.__int__(known)
    if issubclass(kind, float):
        return True, float.__float__(known)
    return False, None


def short_repr(value: object) -> str:
    """Return what a message shows of a value: at most 100 characters of it, or the type of what is not plain."""
    plain, scalar = plain_scalar(value)
    if plain:
        return short_text(repr(redacted_start(scalar, 100)) if isinstance(scalar, str) else shown(scalar))
    return short_text(shown(value)) if type(value) is tuple else type(value).__name__


def short_text(text: str) -> str:
    """Return at most 100 characters of a text, without secrets and fit for UTF-8."""
    found = redacted_start(text, 101)
    return clean(found if len(found) <= 100 else found[:100] + "…")


AUTO_APPLY = ("auto_apply", "auto_apply_enabled")
"""Top-level keys by which a patch or a configuration says whether patches may be applied without a person."""

MAX_KEYS = 200
"""Keys of a patch, those of inner tables included."""

MAX_DEPTH = 8
"""Names in a path; a patch that is nested deeper holds no listed key."""

MAX_REASONS = 20
"""Refusals that are reported; a patch with more is refused all the same."""


class Refusal(msgspec.Struct, frozen=True):
    """Reason why a patch is refused.

    Examples
    --------
    >>> str(Refusal("retry.limit", "50", "range", "must be in [0, 10]"))
    'retry.limit = 50 is refused by range: must be in [0, 10]'
    """

    key: str
    """Dotted path of the key, shortened; empty for the patch as a whole."""
    value: str
    """The value as Python shows it, shortened."""
    rule: RuleName
    why: str
    """Text of the rule."""

    def __str__(self) -> str:
        if self.rule == "same":
            return "the patch changes nothing"
        return f"{self.key or 'patch'} = {self.value} is refused by {self.rule}: {self.why}"


class Judged(msgspec.Struct, frozen=True):
    """Judgement of a patch: all of it is accepted, or nothing."""

    patch: dict[str, Any] | None
    """The accepted patch, a copy in plain values without the auto-apply keys; None if it is refused."""
    apply: bool
    """True = it may be applied now; False for an accepted patch that waits for a person."""
    refusals: tuple[Refusal, ...]
    """Reasons of the refusal, at most :data:`MAX_REASONS`; empty if it is accepted."""
    waits: str
    """Reason why an accepted patch waits, or empty."""


class Bounds:
    """The allow-list of one agent's configuration.

    Parameters
    ----------
    keys : Mapping of str to Bound
        Bounds by dotted path: ``retry.limit`` is the key ``limit`` in the table ``retry``. What is not listed cannot be
        changed.
    auto_apply : bool
        True = accepted patches may be applied without a person. A patch or the current configuration with
        ``auto_apply: false`` (or ``auto_apply_enabled: false``) at its top withholds itself; neither can permit what
        the bounds withhold.

    Raises
    ------
    TypeError, ValueError
        For keys that are no paths, lie in one another, are deeper than :data:`MAX_DEPTH` or named as auto-apply is; for
        bounds of another type.

    Examples
    --------
    >>> bounds = Bounds({"retry.limit": Bound(least=0, most=10, whole=True, step=2)})
    >>> bounds.judge({"retry": {"limit": 5}}, {"retry": {"limit": 3}}).patch
    {'retry': {'limit': 5}}
    >>> print(bounds.judge({"retry": {"limit": 9}}, {"retry": {"limit": 3}}).refusals[0])
    retry.limit = 9 is refused by step: may change by at most 2 from 3
    >>> bounds.judge({"retry": {"limit": 5}, "auto_apply": False}, {"retry": {"limit": 3}}).apply
    False
    """

    def __init__(self, keys: Mapping[str, Bound], *, auto_apply: bool = True) -> None:
        self.keys = dict(keys)
        self.auto_apply = check_flag("auto_apply", auto_apply)
        self._bounds: dict[tuple[str, ...], Bound] = {}
        for key, bound in self.keys.items():
            path = tuple(check_text("key", key, empty=False).split("."))
            if not isinstance(bound, Bound):
                raise TypeError(f"the bound of {key!r} must be a Bound, not {shown(bound)}")
            if not all(path) or len(path) > MAX_DEPTH:
                raise ValueError(f"key must be 1 to {MAX_DEPTH} names with dots between them, not {shown(key)}")
            if key in AUTO_APPLY:
                raise ValueError(f"{key} says whether patches are applied, and cannot be patched")
            self._bounds[path] = bound
        self._tables = frozenset(path[:end] for path in self._bounds for end in range(1, len(path)))
        for path in self._bounds:
            if path in self._tables:
                raise ValueError(f"{'.'.join(path)} cannot be both a value and a table")

    def judge(self, patch: object, current: Mapping[str, Any]) -> Judged:
        """Accept a patch as a whole, or refuse it; never raises on account of the patch.

        Parameters
        ----------
        patch : object
            What a strategy proposed: a dict of plain values and dicts.
        current : Mapping
            The configuration in force; what a step is measured from.
        """
        if not isinstance(current, Mapping):
            raise TypeError(f"current must be a mapping, not {shown(current)}")
        found = _Reading(self._bounds, self._tables)
        try:
            accepted = found.table(patch, (), current)
        except Exception as error:  # a stranger's object may raise anything while it is read
            found.refuse((), type(patch).__name__, "shape", f"cannot be read: {type(error).__name__}")
            accepted = {}
        if not found.changes and not found.refusals:
            found.refuse((), patch, "same", "changes nothing")
        if found.refusals:
            return Judged(None, False, tuple(found.refusals), "")
        waits = ""
        if not self.auto_apply:
            waits = "the bounds ask for a person"
        elif found.withheld:
            waits = "the patch asks not to be applied automatically"
        elif any(key in current and current[key] is not True for key in AUTO_APPLY):
            waits = "the configuration asks that nothing is applied automatically"
        return Judged(accepted, not waits, (), waits)


class _Reading:
    """One patch being read: its plain copy is the return value of :meth:`table`, the rest is kept here."""

    def __init__(self, bounds: Mapping[tuple[str, ...], Bound], tables: frozenset[tuple[str, ...]]) -> None:
        self.bounds = bounds
        self.tables = tables
        self.changes = False
        self.refusals: list[Refusal] = []
        self.withheld = False
        self.keys = 0

    def refuse(self, path: tuple[str, ...], value: object, rule: RuleName, why: str) -> None:
        if len(self.refusals) < MAX_REASONS:
            self.refusals.append(Refusal(short_text(".".join(path)), short_repr(value), rule, why))

    def table(self, value: object, path: tuple[str, ...], current: object) -> dict[str, Any]:
        """Copy a table, and note what refuses it; ``current`` is what the configuration holds there."""
        if not issubclass(type(value), dict):
            self.refuse(path, value, "shape", "must be a dict")
            return {}
        table: dict[object, object] = value  # type: ignore[assignment]  # the type was tested without the object's help
        self.keys += dict.__len__(table)
        if self.keys > MAX_KEYS:
            self.refuse(path, "dict", "size", f"a patch has at most {MAX_KEYS} keys")
            return {}
        if path and not dict.__len__(table):
            self.refuse(path, value, "shape", "changes nothing")
        copied: dict[str, Any] = {}
        for raw, item in dict.items(table):
            if not issubclass(type(raw), str):
                self.refuse(path, raw, "shape", "keys must be texts")
                continue
            key = str.__str__(raw)
            if not path and key in AUTO_APPLY:
                self._auto_apply(key, item)
            else:
                self._item(copied, key, item, path, current)
        return copied

    def _auto_apply(self, key: str, value: object) -> None:
        if value is False:
            self.withheld = True
        elif value is not True:
            self.refuse((key,), value, "auto_apply", "must be True or False")

    def _item(self, copied: dict[str, Any], key: str, value: object, path: tuple[str, ...], current: object) -> None:
        if "." in key:
            self.refuse((*path, key), value, "shape", "a key has no dot: write tables as dicts")
            return
        path = (*path, key)
        known = isinstance(current, Mapping) and key in current
        held = current[key] if isinstance(current, Mapping) and known else None
        bound = self.bounds.get(path)
        if bound is None:
            if path not in self.tables:
                self.refuse(path, value, "key", "is not on the list of keys that may change")
            elif known and not isinstance(held, Mapping):
                self.refuse(path, value, "shape", f"is no table in the configuration, but {short_repr(held)}")
            else:
                copied[key] = self.table(value, path, held)
            return
        if isinstance(held, Mapping | list | tuple):
            self.refuse(path, value, "shape", "holds a table or a list in the configuration")
            return
        is_plain, plain = plain_scalar(value)
        if not is_plain:
            self.refuse(path, value, "kind", "must be a text, a number, True, False or None")
        elif isinstance(plain, float) and not abs(plain) <= MAX_VALUE:
            self.refuse(path, plain, "finite", f"must be finite and at most {MAX_VALUE:g} in magnitude")
        elif refused := bound.refuses(plain, held):
            self.refuse(path, plain, *refused)
        else:
            copied[key] = plain
            self.changes |= not (known and type(held) is type(plain) and held == plain)


def merged(current: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with an accepted patch laid over it, table by table; neither argument is changed.

    Examples
    --------
    >>> merged({"retry": {"limit": 3, "wait_s": 1}, "model": "a"}, {"retry": {"limit": 4}})
    {'retry': {'limit': 4, 'wait_s': 1}, 'model': 'a'}
    """
    result = dict(current)
    for key, value in patch.items():
        held = result.get(key)
        inner = held if isinstance(held, Mapping) else {}
        result[key] = merged(inner, value) if isinstance(value, Mapping) else value
    return result
