"""Settings files with hooks: those of this package are added and taken out, and nothing else changes.

Claude Code, Codex and Gemini CLI have the same form: ``{"hooks": {EVENT: [{"matcher": ..., "hooks": [HOOK, ...]}]}}``.
"""

from __future__ import annotations

import difflib
import io
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from coherence.core.errors import CoherenceError
from coherence.core.files import check_output, make_folder, open_input
from coherence.integrations.daemon.hook_command import is_hook_command
from coherence.integrations.daemon.http_place import is_http_hook

BACKUP_ENDING = ".coherence-backup"
"""Ending that the name of a settings file has in the copy made before its first change."""

Group: TypeAlias = dict[str, Any]
"""Hooks of an event, with the tools that they are for: ``{"matcher": "*", "hooks": [HOOK]}``."""

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_INDENT = re.compile(r"^(\t| {4}| {2})(?=\S)", re.MULTILINE)
_LONE = re.compile("[\ud800-\udfff]")
_BOM = "\ufeff"


class SettingsError(CoherenceError, ValueError):
    """A settings file cannot be changed without a loss.

    Parameters
    ----------
    path : Path
        The file.
    reason : str
        What is wrong, and what to do.
    line : int, optional
        Line in the file, counted from 1.
    """

    def __init__(self, path: Path, reason: str, line: int | None = None) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(str(path) if line is None else f"{path}:{line}", reason)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.reason}"


def is_ours(hook: dict[str, Any]) -> bool:
    """Tell whether a hook is one of this package, of any version.

    Examples
    --------
    >>> is_ours({"type": "command", "command": "python /old/coherence/integrations/daemon/hook.py /state"})
    True
    >>> is_ours({"type": "command", "command": "make lint"})
    False
    """
    return is_hook_command(hook.get("command")) or is_http_hook(hook)


def with_hooks(settings: dict[str, Any], groups: Mapping[str, Group]) -> dict[str, Any]:
    """Return settings with a hook of this package for each of some events.

    A hook of this package that is in them already is replaced where it stands, and loses its doubles. Hooks of others,
    their order and all else stay. To do it twice is to do it once.

    Parameters
    ----------
    settings : dict
        As :func:`parse_settings` returns them; left unchanged.
    groups : mapping
        Event -> a group with the one hook that it gets.

    Examples
    --------
    >>> hook = {"type": "command", "command": "python coherence/integrations/daemon/hook.py /state"}
    >>> with_hooks({"model": "opus"}, {"Stop": {"hooks": [hook]}})["hooks"]["Stop"][0]["hooks"] == [hook]
    True
    """
    hooks = _replaced(settings.get("hooks", {}), groups)
    for event, group in groups.items():
        present = hooks.setdefault(event, [])
        if not has_ours(present):
            present.append({**group, "hooks": [dict(hook) for hook in group["hooks"]]})
    return {**settings, "hooks": hooks}


def without_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without the hooks of this package, and without what is empty then.

    It undoes :func:`with_hooks`, but for empty lists of its events and an empty ``hooks`` that were there before.

    Examples
    --------
    >>> hook = {"type": "command", "command": "python coherence/integrations/daemon/hook.py /state"}
    >>> without_hooks({"model": "opus", "hooks": {"Stop": [{"hooks": [hook]}]}})
    {'model': 'opus'}
    """
    if not settings.get("hooks"):
        return settings
    if hooks := _replaced(settings["hooks"], {}):
        return {**settings, "hooks": hooks}
    return {name: value for name, value in settings.items() if name != "hooks"}


def has_ours(groups: list[Group]) -> bool:
    """Tell whether any hook of an event is one of this package."""
    return any(is_ours(hook) for group in groups for hook in group["hooks"])


def _replaced(hooks: dict[str, Any], groups: Mapping[str, Group]) -> dict[str, Any]:
    """Put the hook of each event in the place of our first one, and nothing in that of all others of ours."""
    found: dict[str, Any] = {}
    for event, present in hooks.items():
        place = [dict(hook) for hook in groups[event]["hooks"]] if event in groups else []
        kept = []
        for group in present:
            left: list[Any] = []
            for hook in group["hooks"]:
                if not is_ours(hook):
                    left.append(hook)
                elif place:
                    left.append(place.pop())
            if left or not group["hooks"]:
                kept.append({**group, "hooks": left})
        if kept or not present:
            found[event] = kept
    return found


def parse_settings(content: bytes, path: Path) -> dict[str, Any]:
    """Return the settings that a file holds, if they can be changed and written again without a loss.

    Parameters
    ----------
    content : bytes
        What is in the file.
    path : Path
        The file, as errors name it.

    Raises
    ------
    SettingsError
        It is not UTF-8, not JSON, or its hooks have another shape than clients read; the message names the line.

    Examples
    --------
    >>> parse_settings(b'{"hooks": []}', Path("settings.json"))
    Traceback (most recent call last):
    coherence.integrations.hook_settings.SettingsError: settings.json:1: hooks must be an object; correct it ...
    """
    try:
        text = content.decode().removeprefix(_BOM)
        found = json.loads(text, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_finite)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(path, "this is not UTF-8; save it as UTF-8, or move it away", line) from error
    except json.JSONDecodeError as error:
        reason = f"this is not JSON: {error.msg} (column {error.colno}); correct it, or move the file away"
        raise SettingsError(path, reason, error.lineno) from error
    except RecursionError as error:
        raise SettingsError(path, "it is nested too deeply; move the file away") from error
    except ValueError as error:  # of the functions above, or a number of thousands of digits
        raise SettingsError(path, f"{error}; correct it, or move the file away") from error
    if (fault := _fault(found)) is not None:
        steps, shape = fault
        name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
        reason = f"{name or 'it'} must be {shape}; correct it as the documentation of the client has it"
        raise SettingsError(path, reason, _line_of(text, steps))
    settings: dict[str, Any] = found
    return settings


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings of a file, none if there is no such file.

    Raises
    ------
    SettingsError
        As :func:`parse_settings`.
    OSError
        It cannot be read.
    """
    return parse_settings(read_file(path) or b"{}", path)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"one object has the key {twice!r} more than once")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON, or too large a one")
    return number


_Steps: TypeAlias = tuple[str | int, ...]


def _fault(found: Any) -> tuple[_Steps, str] | None:
    """Return the keys and numbers that lead to the first value of another shape, and the shape that it must have."""
    if not isinstance(found, dict):
        return (), "an object"
    hooks = found.get("hooks", {})
    if not isinstance(hooks, dict):
        return ("hooks",), "an object"
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            return ("hooks", event), "an array"
        for number, group in enumerate(groups):
            if not (isinstance(group, dict) and isinstance(group.get("hooks"), list)):
                return ("hooks", event, number), 'an object with an array "hooks"'
            for place, hook in enumerate(group["hooks"]):
                if not isinstance(hook, dict):
                    return ("hooks", event, number, "hooks", place), "an object"
    return None


def _line_of(text: str, steps: _Steps) -> int:
    """Return the line in which a value of a JSON text begins."""
    at = _after_space(text, 0)
    for step in steps:
        at = next(start for name, start in _members(text, at) if name == step)
    return text.count("\n", 0, at) + 1


def _members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Return the name or number of each value of the object or array that begins at a place, and where it begins."""
    named = text[at] == "{"
    number = 0
    at = _after_space(text, at + 1)
    while text[at] not in "}]":
        name: str | int = number
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        yield name, at
        _, at = _DECODER.raw_decode(text, at)
        at = _after_space(text, at)
        if text[at] == ",":
            at = _after_space(text, at + 1)
        number += 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def render_settings(settings: dict[str, Any], like: str = "") -> str:
    r"""Return settings as JSON, with the indentation, line ends and final newline of another text.

    Indentation is that of the first line indented by 2 or 4 spaces or a tab, else 2 spaces.

    Examples
    --------
    >>> render_settings({"model": "opus"}, '{\n\t"model": "sonnet"\n}')
    '{\n\t"model": "opus"\n}'
    """
    found = _INDENT.search(like)
    text = json.dumps(settings, indent=found[1] if found else "  ", ensure_ascii=False, allow_nan=False)
    # Half of a pair, which only an escape can write, has no place in UTF-8.
    text = _LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
    if not like or like.endswith("\n"):
        text += "\n"
    if "\r\n" in like:
        text = text.replace("\n", "\r\n")
    return (_BOM if like.startswith(_BOM) else "") + text


@dataclass(frozen=True)
class Change:
    """Change of a settings file, planned and not yet made.

    Parameters
    ----------
    path : Path
        The file.
    before, after : bytes or None
        What is in it, and what will be; ``None``: there is no such file.
    saves : bool
        ``before`` is kept as the backup.
    restores : bool
        ``after`` is the backup, which goes.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    saves: bool = False
    restores: bool = False

    @property
    def needed(self) -> bool:
        """Return whether there is anything to do."""
        return self.before != self.after

    @property
    def backup(self) -> Path:
        """Return the place of the copy from before the first change."""
        return backup_path(self.path)

    def diff(self) -> str:
        """Return the change as a unified diff; empty if nothing is to be done."""
        old, new = (str(self.path) if content is not None else os.devnull for content in (self.before, self.after))
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), old, new)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(content: bytes | None) -> list[str]:
    # Lines end at "\n" alone: str.splitlines() knows others, which JSON may have inside a string.
    return list(io.StringIO((content or b"").decode(), newline="\n"))


def backup_path(path: Path) -> Path:
    """Return the place of the copy of a settings file from before its first change."""
    return path.with_name(path.name + BACKUP_ENDING)


def plan_install(path: Path, groups: Mapping[str, Group]) -> Change:
    """Plan that a settings file has the hooks of this package; nothing is written.

    Parameters
    ----------
    path : Path
        The file.
    groups : mapping
        As for :func:`with_hooks`.

    Raises
    ------
    SettingsError
        As :func:`parse_settings`, or nothing may be written there.
    OSError
        It cannot be read.
    """
    check_place(path)
    before = read_file(path)
    settings = {} if before is None else parse_settings(before, path)
    wanted = with_hooks(settings, groups)
    if _same(settings, wanted):
        return Change(path, before, before)
    # A file with hooks of ours is not what was there before the first change.
    untouched = not any(map(has_ours, settings.get("hooks", {}).values()))
    saves = before is not None and untouched and not os.path.lexists(backup_path(path))
    return Change(path, before, _rendered(path, wanted, before), saves=saves)


def plan_removal(path: Path, groups: Mapping[str, Group]) -> Change:
    """Plan that a settings file loses the hooks of this package; nothing is written.

    If nothing else has changed since the first change, the file gets the very bytes that it had then. If there was no
    file then, and nothing else is in it, it goes.

    Parameters
    ----------
    path : Path
        The file.
    groups : mapping
        As :func:`plan_install` has put them in.

    Raises
    ------
    SettingsError, OSError
        As :func:`plan_install`.
    """
    check_place(path)
    before = read_file(path)
    if before is None:
        return Change(path, None, None)
    settings = parse_settings(before, path)
    wanted = without_hooks(settings)
    if _same(settings, wanted):
        return Change(path, before, before)
    saved = read_file(backup_path(path))
    if saved is not None:
        with suppress(SettingsError):
            original = parse_settings(saved, backup_path(path))
            # Both ways, so that an empty "hooks" of before the first change makes no difference.
            there_and_back = without_hooks(with_hooks(original, groups))
            if _same(there_and_back, wanted) and not any(map(has_ours, original.get("hooks", {}).values())):
                return Change(path, before, saved, restores=True)
    elif not wanted:
        return Change(path, before, None)
    return Change(path, before, _rendered(path, wanted, before))


def apply_change(change: Change) -> None:
    """Make a planned change, and the backup before it.

    Raises
    ------
    SettingsError
        The file is not the one any more that the change was planned for, or nothing may be written there.
    OSError
        It cannot be written; it is as it was.
    """
    check_place(change.path)
    if read_file(change.path) != change.before:
        raise SettingsError(change.path, "it was changed meanwhile, and nothing was written; run the command again")
    if change.saves and change.before is not None:
        write_file(change.backup, change.before)
    if change.after is None:
        change.path.unlink(missing_ok=True)
    else:
        write_file(change.path, change.after)
    if change.restores:
        change.backup.unlink(missing_ok=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, in a folder that is made if need be.

    A new file is for its owner alone; one that is replaced leaves its rights to the new one.

    Raises
    ------
    OSError
        It cannot be written, or is a symbolic link, a folder, a pipe or a device.
    """
    make_folder(path.parent)
    check_output(path)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # a new file keeps the rights that mkstemp() gives: 0600
            os.chmod(name, stat.S_IMODE(path.stat().st_mode))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def check_place(path: Path) -> None:
    """Refuse a settings file, its backup or their folder if it is a symbolic link.

    Raises
    ------
    SettingsError
        It is one; the message says what to do.
    """
    for found in (path.parent, path, backup_path(path)):
        if found.is_symlink():
            reason = (
                f"this is a symbolic link to {os.path.realpath(found)}, and nothing is written through one; "
                "put what it leads to in its place, or name the folder of the client's settings in its environment"
            )
            raise SettingsError(found, reason)


def read_file(path: Path) -> bytes | None:
    """Return what is in a file, ``None`` if there is none.

    Raises
    ------
    OSError
        It cannot be read.
    """
    try:
        with open_input(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _rendered(path: Path, settings: dict[str, Any], before: bytes | None) -> bytes:
    try:
        return render_settings(settings, (before or b"").decode()).encode()
    except RecursionError as error:
        raise SettingsError(path, "it is nested too deeply; move the file away") from error


def _same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Compare as JSON, which tells 1 from true and 1.0."""
    try:
        one, other = (json.dumps(settings, sort_keys=True) for settings in (first, second))
    except RecursionError:
        return first == second
    return one == other
