"""Deny list: calls that ``check`` refuses, whatever else is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from coherence.core.validation import check_text, shown


class ForbiddenCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    r"""Entry of the deny list: a kind of call that ``check`` refuses.

    Parameters
    ----------
    tool : str
        Name of the tool. ``*`` stands for any characters; case does not count.
    matches : str
        Text to find anywhere in the arguments, in the same notation; runs of blanks count as one. The default matches
        all arguments. A regular expression is an error, because a hostile text could make one run for ever.

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


def read_deny_list(given: object) -> tuple[ForbiddenCall, ...]:
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
