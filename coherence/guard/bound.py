"""Bound of one key of a configuration: a number in a range and within a step, or one of some choices."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

import msgspec

from coherence.core.validation import check_flag, check_number, clean, shown

Scalar: TypeAlias = str | int | float | bool | None
"""A leaf of a patch."""

RuleName: TypeAlias = Literal["shape", "size", "key", "kind", "finite", "range", "step", "choice", "auto_apply", "same"]
"""What refuses a patch: shape = not a table of tables and plain values; size = too many keys; key = not listed; kind =
another type than the key takes; finite = NaN or infinite; range, step, choice = outside what the bound allows;
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
        return short_text(repr(scalar[:100]) if isinstance(scalar, str) else shown(scalar))
    return short_text(shown(value)) if type(value) is tuple else type(value).__name__


def short_text(text: str) -> str:
    """Return at most 100 characters of a text, fit for UTF-8."""
    return clean(text if len(text) <= 100 else text[:100] + "…")
