"""Settings from files and the environment: which value counts, where it comes from, and what is wrong with it.

A project keeps its settings in ``coherence.toml``. Later ones count over earlier ones: the defaults, the user's own
file, the project's file, the environment.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from coherence.core.config import Budget, MonitorConfig, placed
from coherence.core.errors import CoherenceError
from coherence.core.files import open_input

PROJECT_FILE = "coherence.toml"
"""File of a project's settings, in its folder or in one above it."""

PREFIX = "COHERENCE__"
"""Beginning of the environment variables that hold settings: ``COHERENCE__BUDGET__CALLS`` is ``budget.calls``."""

HARMLESS = ("context_tokens", "prices", "output_format")
"""Settings that hooks take from a project's file as they are, besides those that only make them stricter."""

_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_HEADER = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_PLACE = re.compile(r" - at `\$[^`]*`")


class Layer(NamedTuple):
    """Settings of one source."""

    where: str
    """Path of the file, or ``environment``."""
    settings: dict[str, Any]
    places: dict[tuple[str, ...], str]
    """Path of a key -> its place, such as ``coherence.toml:12`` or the name of a variable."""

    def place(self, path: tuple[str, ...]) -> str:
        """Return the place of a key, or of the nearest one above it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, self.where)


class Problem(NamedTuple):
    """One bad setting."""

    place: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key}: {self.message}" if self.key else f"{self.place}: {self.message}"


class ConfigError(CoherenceError, ValueError):
    """Settings that cannot be used; the message names each bad one with its place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class Setting(NamedTuple):
    """One value that counts."""

    key: str
    value: Any
    source: str
    """Its place, or ``default``."""


def user_file() -> Path:
    """Return the file of the user's own settings, which may be missing.

    It is what ``COHERENCE_CONFIG`` names, else ``config.toml`` in the system's place for settings.
    """
    from platformdirs import user_config_path

    return Path(os.environ.get("COHERENCE_CONFIG") or user_config_path("coherence") / "config.toml").absolute()


def project_file(folder: Path | None = None) -> Path | None:
    """Return the nearest ``coherence.toml``, from a folder upwards to the root of its repository.

    Parameters
    ----------
    folder : Path, optional
        Default: the current one.

    Returns
    -------
    Path or None
        ``None``: there is none. Outside a repository only the folder itself is looked at.
    """
    start = (folder or Path.cwd()).absolute()
    above = [start, *start.parents]
    root = next((at for at, each in enumerate(above) if (each / ".git").exists()), 0)
    return next((path for each in above[: root + 1] if (path := each / PROJECT_FILE).is_file()), None)


def read_layers(folder: Path | None = None, *, env: Mapping[str, str] | None = None) -> list[Layer]:
    """Return the settings of the user, of a project and of the environment, those that count last.

    Raises
    ------
    ConfigError
        If a file cannot be read or is no TOML.
    """
    files = [path for path in (user_file(), project_file(folder)) if path is not None and path.is_file()]
    return [*map(read_layer, files), environment(os.environ if env is None else env)]


def read_layer(path: Path) -> Layer:
    """Return the settings of a file, with the line of each key.

    Raises
    ------
    ConfigError
        If it cannot be read or is no TOML.
    """
    try:
        with open_input(path) as file:
            text = file.read().decode("utf-8")
        settings = tomllib.loads(text)
    except OSError as error:
        raise ConfigError([Problem(str(path), "", error.strerror or str(error))]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([Problem(str(path), "", f"not UTF-8 at byte {error.start}")]) from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise ConfigError([Problem(f"{path}:{line[1]}" if line else str(path), "", f"not TOML: {error}")]) from error
    return Layer(str(path), placed(settings, path), {key: f"{path}:{line}" for key, line in _lines(text).items()})


def environment(env: Mapping[str, str]) -> Layer:
    """Return the settings of environment variables.

    Examples
    --------
    >>> environment({"COHERENCE__BUDGET__CALLS": "300", "COHERENCE__PRIVACY": "no-text"}).settings
    {'budget': {'calls': 300}, 'privacy': 'no-text'}
    """
    layer = Layer("environment", {}, {})
    for name, text in sorted(env.items()):
        path = tuple(name.removeprefix(PREFIX).lower().split("__"))
        if name.startswith(PREFIX) and all(path):
            table = layer.settings
            for part in path[:-1]:
                below = table.setdefault(part, {})
                table = below if isinstance(below, dict) else {}
            table[path[-1]] = _value(text)
            layer.places[path] = name
    return layer


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line on which each key first stands; keys of an inline table stand where the table does."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _path(f"[{header[1]}]")
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault((*table, *_path(f"{key[1]} = 0")), number)
    return found


def _path(toml: str) -> tuple[str, ...]:
    try:
        below: Any = tomllib.loads(toml)
    except tomllib.TOMLDecodeError:  # inside a text of several lines
        return ()
    path = []
    while isinstance(below, dict) and below:
        ((key, below),) = below.items()
        path.append(key)
    return tuple(path)


def problems_of(layer: Layer) -> list[Problem]:
    """Return all that is wrong with the settings of one source, each with its place."""
    found: list[Problem] = []
    for key, value in layer.settings.items():
        message = _refusal({key: value})
        if not message:
            continue
        own = [(part, refused) for part, each in _parts(value) if (refused := _refusal({key: {part: each}}))]
        for part, refused in own or [("", message)]:
            path = (key, part) if part else (key,)
            found.append(Problem(layer.place(path), ".".join(path), refused))
    return found or _of_all(layer)


def _parts(value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()


def _of_all(layer: Layer) -> list[Problem]:
    """Return what is wrong with settings that are right one by one."""
    message = _refusal(layer.settings)
    return [Problem(layer.where, "", message)] if message else []


def _refusal(settings: Mapping[str, Any]) -> str:
    try:
        MonitorConfig.load(settings)
    except (TypeError, ValueError) as error:
        message = _PLACE.sub("", str(error).removeprefix("config: "))
        if unknown := _UNKNOWN.search(message):
            return f"there is no such setting{_nearest(unknown[1])}"
        return message
    return ""


def _nearest(name: str) -> str:
    known = {*MonitorConfig.__struct_fields__, *Budget.__struct_fields__}
    for field in msgspec.structs.fields(MonitorConfig):
        if isinstance(field.default, msgspec.Struct):
            known |= set(field.default.__struct_fields__)
    near = difflib.get_close_matches(name, sorted(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def merged(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    """Return the settings that count, and the place of each; deny lists are added up."""
    settings: dict[str, Any] = {}
    places: dict[tuple[str, ...], str] = {}
    for layer in layers:
        for path, value in _leaves(layer.settings):
            table = settings
            for part in path[:-1]:
                below = table.get(part)
                table[part] = below if isinstance(below, dict) else {}
                table = table[part]
            before = table.get(path[-1])
            added = path == ("forbid",) and isinstance(before, list) and isinstance(value, list)
            table[path[-1]] = [*before, *value] if added else value  # type: ignore[misc]
            places[path] = f"{places[path]}, {layer.place(path)}" if added else layer.place(path)
    return settings, places


def _leaves(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def load_settings(folder: Path | None = None, *, env: Mapping[str, str] | None = None) -> MonitorConfig:
    """Return the settings of a project, for ``Monitor(config=...)``.

    Parameters
    ----------
    folder : Path, optional
        Folder in or below which the agent works; default: the current one. Its ``coherence.toml``, or that of a folder
        above it in the same repository, counts over the user's own file, and environment variables such as
        ``COHERENCE__BUDGET__CALLS`` count over both.
    env : mapping, optional
        Default: the environment of this process.

    Raises
    ------
    ConfigError
        For settings that cannot be used; the message names the line of each.

    Examples
    --------
    >>> load_settings(Path("/"), env={"COHERENCE__BUDGET__CALLS": "300"}).budget.calls
    300
    """
    return _load(read_layers(folder, env=env))


def _load(layers: Sequence[Layer]) -> MonitorConfig:
    if problems := [each for layer in layers for each in problems_of(layer)]:
        raise ConfigError(problems)
    settings, _ = merged(layers)
    try:
        return MonitorConfig.load(settings)
    except (TypeError, ValueError) as error:
        raise ConfigError([Problem(" and ".join(each.where for each in layers), "", str(error))]) from error


def load_for_hooks(user: Path, project: Path | None) -> MonitorConfig:
    """Return the settings of a session that hooks follow: a project's file can only make them stricter.

    A project may be somebody else's work, and its files may be written by the agent.

    Parameters
    ----------
    user : Path
        File of the user's own settings; it may be missing.
    project : Path or None
        File of the project.

    Raises
    ------
    ConfigError
        As :func:`load_settings`.
    """
    own = [*([read_layer(user)] if user.is_file() else []), environment(os.environ)]
    config = _load(own)
    if project is None:
        return config
    layer = read_layer(project)
    asked = _load([layer])
    changes: dict[str, Any] = {name: getattr(asked, name) for name in HARMLESS if name in layer.settings}
    changes["forbid"] = (*config.forbid, *asked.forbid)
    changes["budget"] = _smaller(config.budget, asked.budget)
    changes["privacy"] = "no-text" if "no-text" in (config.privacy, asked.privacy) else "full"
    changes["redact"] = config.redact or asked.redact
    return msgspec.structs.replace(config, **changes)


def _smaller(one: Budget | None, other: Budget | None) -> Budget | None:
    """Return the budget that is used up as soon as one of both is."""
    if one is None or other is None:
        return one or other
    limits: dict[str, Any] = {}
    for name in ("tokens", "cost_usd", "wall_s", "calls", "soft"):
        given = [value for each in (one, other) if (value := getattr(each, name)) is not None]
        limits[name] = min(given, default=None)
    tools = {*one.tool_calls, *other.tool_calls}
    limits["tool_calls"] = {
        tool: min(each.tool_calls[tool] for each in (one, other) if tool in each.tool_calls) for tool in tools
    }
    return Budget(**limits)


def effective(layers: Sequence[Layer]) -> list[Setting]:
    """Return each setting with the value that counts and its source, in the order in which they are documented.

    Raises
    ------
    ConfigError
        As :func:`load_settings`.
    """
    config, (_, places) = _load(layers), merged(layers)
    found = []
    for path, value in _leaves(msgspec.to_builtins(config)):
        source = next((places[path[:end]] for end in range(len(path), 0, -1) if path[:end] in places), "")
        found.append(Setting(".".join(path), value, source or _below(places, path) or "default"))
    return found


def _below(places: Mapping[tuple[str, ...], str], path: tuple[str, ...]) -> str:
    """Return the places of the keys of a table that is shown as one value."""
    return ", ".join(dict.fromkeys(place for key, place in places.items() if key[: len(path)] == path))
