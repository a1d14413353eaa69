"""Plug-ins by name: registered in code, or offered by an installed package through an entry point.

Groups: ``coherence.metrics`` (metrics and scalar metrics), ``coherence.embedders``, ``coherence.providers``,
``coherence.rules``, ``coherence.detectors``, ``coherence.extractors``, ``coherence.readers``. The built-ins come
through the same door: they are listed in ``plugins.ini``, from which the package's entry points are made. It is read as
a file, since to look through the entry points of everything that is installed takes longer than all else that a first
``Monitor()`` does.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, overload

import msgspec

from coherence.core.errors import PluginError
from coherence.core.protocols import Detector, Extractor, MetricFn, Rule, ScalarMetricFn, TranscriptReader
from coherence.core.readings import MetricInput

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DISTRIBUTION = "coherence-sensor"
"""The name under which this package is installed."""

Group: TypeAlias = Literal["metrics", "embedders", "providers", "rules", "detectors", "extractors", "readers"]
"""The kinds of plug-ins."""

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M")


class Reference(msgspec.Struct, frozen=True):
    """A plug-in that an entry point names and nobody has imported yet."""

    value: str
    """``module:name``."""

    def load(self) -> Any:
        """Import the module and return what it calls so."""
        module, _, path = self.value.partition(":")
        found: Any = import_module(module.strip())
        # an entry point may name extras: "module:name [extra]"
        for name in path.partition("[")[0].strip().split(".") if path else ():
            found = getattr(found, name)
        return found


class Plugin(msgspec.Struct, frozen=True):
    """One line of the registry."""

    name: str
    origin: str
    """The distribution that offers it, or ``registered in <module>``."""
    target: Any
    """The class, instance or factory; an :class:`Reference` until it is loaded."""

    def load(self) -> Any:
        """Import and return the class, instance or factory.

        Raises
        ------
        PluginError
            If the package that offers it fails to import.
        """
        if not isinstance(self.target, Reference):
            return self.target
        try:
            return self.target.load()
        except Exception as error:
            raise PluginError(
                f"plug-in {self.name!r} of {self.origin} fails to load from {self.target.value!r}: "
                f"{type(error).__name__}: {error}"
            ) from error


_registered: dict[Group, dict[str, Plugin]] = {
    "metrics": {},
    "embedders": {},
    "providers": {},
    "rules": {},
    "detectors": {},
    "extractors": {},
    "readers": {},
}


class FunctionMetric(Generic[F]):
    """A plain function as a metric; calling it calls the function."""

    def __init__(self, function: F, name: str, inverted: bool) -> None:
        self.function = function
        self.name = name
        self.inverted = inverted
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__qualname__ = getattr(function, "__qualname__", name)

    def compute(self, data: MetricInput) -> float | None:
        """Call the function with the input."""
        value: float | None = self.function(data)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<metric {self.name}>"


class FunctionScalar(FunctionMetric[F]):
    """A plain function without arguments as a scalar metric."""

    def compute(self) -> Any:  # type: ignore[override]  # the scalar socket has no input
        """Call the function; what it returns may be awaitable."""
        return self.function()


def is_scalar(metric: object) -> bool:
    """Tell whether ``compute`` takes no input, which makes a plug-in a scalar metric."""
    compute = getattr(metric, "compute", None)
    if not callable(compute):
        raise TypeError(f"{metric!r} has no compute method")
    if inspect.isclass(metric):
        bound = isinstance(inspect.getattr_static(metric, "compute", None), staticmethod | classmethod)
        # Of a class, compute has its self as the first parameter still.
        function, given = compute, 0 if bound else 1
    elif inspect.ismethod(compute):
        function, given = compute.__func__, 1
    else:
        function, given = compute, 0
    # A function has a hash, another callable may have none.
    return (_remembered if inspect.isfunction(function) else _takes_no_input)(function, given)


def _takes_no_input(function: Callable[..., Any], given: int) -> bool:
    """Tell whether a function has no positional parameters but for the first ones that are given."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # written in C, it may have no signature
        return False
    taken = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    left = parameters[given:] if parameters and parameters[0].kind in taken else parameters
    return len(parameters) >= given and not any(
        each.kind in {*taken, inspect.Parameter.VAR_POSITIONAL} for each in left
    )


_remembered = lru_cache(maxsize=200)(_takes_no_input)  # the metrics of each agent are asked


def check_metric(metric: object) -> None:
    """Raise TypeError or ValueError if an object is not a usable metric; the message says what is missing."""
    name, inverted = getattr(metric, "name", None), getattr(metric, "inverted", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"metric {metric!r}: name must be a non-empty str, not {name!r}")
    if not isinstance(inverted, bool):
        raise TypeError(f"metric {name!r}: inverted must be True (a high value is bad) or False, not {inverted!r}")
    if inspect.isclass(metric):
        raise TypeError(f"metric {name!r}: pass an instance, {metric.__name__}(), not the class")
    if not callable(getattr(metric, "compute", None)):
        raise TypeError(f"metric {name!r} has no compute method")
    needs: object = getattr(metric, "needs", frozenset())
    if isinstance(needs, str) or not isinstance(needs, Iterable) or not set(needs) <= {"all_memories"}:
        raise ValueError(f'metric {name!r}: needs may be {{"all_memories"}} or absent, not {needs!r}')


@overload
def register(plugin: M, *, name: str = ..., replace: bool = ...) -> M: ...
@overload
def register(plugin: M, *, name: str, group: Group, replace: bool = ...) -> M: ...
def register(plugin: M, *, name: str | None = None, group: Group = "metrics", replace: bool = False) -> M:
    """Make a plug-in known by name, for this process; returns it, so that it works as a class decorator.

    Parameters
    ----------
    plugin : object
        A metric, or a class or factory that gives one when called. In group ``embedders`` or ``providers``: a class.
        In group ``rules`` or ``readers``: a rule or reader, or a class that gives one when called without arguments.
    name : str, optional
        Default: ``plugin.name``.
    group : {"metrics", "embedders", "providers", "rules", "detectors", "extractors", "readers"}
        The kind of plug-in.
    replace : bool
        Whether another plug-in of that name may be replaced.

    Raises
    ------
    PluginError
        If the name is taken.
    TypeError
        If it is not a usable plug-in.
    """
    if group not in _registered:
        raise ValueError(f"group must be one of {', '.join(_registered)}, not {group!r}")
    if group == "metrics":
        if inspect.isclass(plugin):
            is_scalar(plugin)  # raises without compute; name and inverted may be set by __init__
        elif hasattr(plugin, "compute") or not callable(plugin):  # else it is a factory
            check_metric(plugin)
    elif group == "rules" and not inspect.isclass(plugin):
        check_rule(plugin)
    elif group == "readers" and not inspect.isclass(plugin):
        check_reader(plugin)
    name = name or getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"{plugin!r} has no name: give name=")
    taken = _find(group, name)
    if taken is not None and not replace and _identity(taken.target) != _identity(plugin):
        raise PluginError(f"{group[:-1]} {name!r} is taken ({taken.origin}); pass replace=True to replace it")
    module = getattr(plugin, "__module__", None) or type(plugin).__module__
    _registered[group][name] = Plugin(name, f"registered in {module}", plugin)
    return plugin


def metric(name: str, *, inverted: bool, replace: bool = False) -> Callable[[F], FunctionMetric[F]]:
    """Turn a plain function into a registered metric.

    A function of one argument gets the :class:`~coherence.core.readings.MetricInput`; one without arguments becomes a
    scalar metric.

    Examples
    --------
    >>> @metric("shouting", inverted=True)
    ... def shouting(data):
    ...     '''Share of messages in capitals.'''
    ...     texts = data.context_texts
    ...     return sum(t.isupper() for t in texts) / len(texts) if texts else None
    >>> shouting.name
    'shouting'
    >>> unregister("shouting")
    """

    def wrap(function: F) -> FunctionMetric[F]:
        takes_input = any(
            p.kind is not inspect.Parameter.KEYWORD_ONLY for p in inspect.signature(function).parameters.values()
        )
        made = (FunctionMetric if takes_input else FunctionScalar)(function, name, inverted)
        return register(made, replace=replace)

    return wrap


def unregister(name: str, group: Group = "metrics") -> None:
    """Forget a plug-in that was registered in code; unknown names are ignored."""
    _registered[group].pop(name, None)


def available(group: Group = "metrics") -> list[Plugin]:
    """Return every known plug-in of a group, by name; what is registered in code hides an entry point."""
    from importlib.metadata import entry_points

    nearer = {**_shipped()[group], **_registered[group]}
    # Reversed: of two with one name the first counts, as in _find. To name its package is to read the package's file.
    points = [point for point in reversed(list(entry_points(group=f"coherence.{group}"))) if point.name not in nearer]
    return [plugin for _, plugin in sorted({**{point.name: _of(point) for point in points}, **nearer}.items())]


def lookup(group: Group, name: str, besides: Iterable[str] = ()) -> Any:
    """Return the class, instance or factory behind a name; ``besides``: names that need no plug-in, for the message.

    Raises
    ------
    PluginError
        If nobody offers the name (the message lists what there is), or its package fails to load.
    """
    plugin = _find(group, name)
    if plugin is None:
        known = ", ".join(sorted({*besides, *(plugin.name for plugin in available(group))})) or "none"
        raise PluginError(f"no {group[:-1]} is called {name!r}; known: {known}")
    return plugin.load()


def _made(
    group: Group, name: str, make: Callable[[Any], Any], check: Callable[[Any], None], besides: Iterable[str] = ()
) -> Any:
    """Return what ``make`` gives for the target of a name, once it has passed a check."""
    target = lookup(group, name, besides)
    try:
        made = make(target)
        check(made)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"{group[:-1]} {name!r} cannot be made by name: {reason}") from error
    return made


def _instance(target: Any) -> Any:
    return target() if inspect.isclass(target) else target


def create_metric(name: str, provider: object = None) -> MetricFn | ScalarMetricFn:
    """Return a metric by name; a scalar class is given the provider, whose counters it reads."""

    def make(target: Any) -> Any:
        if inspect.isclass(target) and is_scalar(target):
            scalar: Any = target
            return scalar(provider)
        return _instance(target) if hasattr(target, "compute") else target()

    made: MetricFn | ScalarMetricFn = _made("metrics", name, make, check_metric)
    return made


def create_extractor(name: str) -> Extractor:
    """Return an extractor by name.

    Raises
    ------
    PluginError
        If nobody offers the name, or what is offered cannot be called.
    """
    extractor: Extractor = lookup("extractors", name)
    if not callable(extractor):
        raise PluginError(f"extractor {name!r} cannot be called with a text")
    return extractor


def check_rule(rule: object) -> None:
    """Raise TypeError if an object is not a usable rule; the message says what is missing."""
    name = getattr(rule, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"rule {rule!r}: name must be a non-empty str, not {name!r}")
    if inspect.isclass(rule):
        raise TypeError(f"rule {name!r}: pass an instance, {rule.__name__}(), not the class")
    if not callable(rule):
        raise TypeError(f"rule {name!r} cannot be called with state, reading and appraisal")


def create_rule(name: str, besides: Iterable[str] = ()) -> Rule:
    """Return a rule by name; ``besides``: names of rules that need no plug-in, for the message.

    Raises
    ------
    PluginError
        If nobody offers the name, or what is offered is no rule.
    """
    rule: Rule = _made("rules", name, _instance, check_rule, besides)
    _check_own_name("rule", rule, name)
    return rule


def _check_own_name(kind: str, plugin: Rule | Detector, name: str) -> None:
    if plugin.name != name:
        raise PluginError(f"{kind} {name!r} calls itself {plugin.name!r}")


def create_detector(name: str) -> Callable[[], Detector]:
    """Return what makes a detector of a name: its class, or a factory.

    Raises
    ------
    PluginError
        If nobody offers the name, or what is offered makes no detector that calls itself so.
    """
    factory: Callable[[], Detector] = lookup("detectors", name)
    check_detector(factory)
    _check_own_name("detector", factory(), name)
    return factory


def check_detector(factory: object) -> None:
    """Raise TypeError unless an object makes a usable detector when called; the message says what is missing."""
    if not callable(factory):
        raise TypeError(f"detector {factory!r}: pass its class, or a function that makes one; each run has its own")
    made = factory()
    name = getattr(made, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"detector {made!r}: name must be a non-empty str, not {name!r}")
    for method in ("observe", "findings", "snapshot", "restore"):
        if not callable(getattr(made, method, None)):
            raise TypeError(f"detector {name!r} has no method {method}")


def create_reader(name: str) -> TranscriptReader:
    """Return a reader of transcripts by the name of its format.

    Raises
    ------
    PluginError
        If nobody offers the name, or what is offered is no reader.
    """
    reader: TranscriptReader = _made("readers", name, _instance, check_reader)
    return reader


def check_reader(reader: object) -> None:
    """Raise TypeError if an object is not a usable reader of transcripts; the message says what is missing."""
    if inspect.isclass(reader):
        raise TypeError(f"reader {reader!r}: pass an instance, {reader.__name__}(), not the class")
    for method in ("matches", "read"):
        if not callable(getattr(reader, method, None)):
            raise TypeError(f"reader {reader!r} has no method {method}")


def strangers(group: Group) -> list[str]:
    """Return the names of the plug-ins of others: those registered in code, then those of installed packages.

    What is installed is looked through once for each ``sys.path``.
    """
    offered = (name for name in _offered(group, tuple(sys.path)) if name not in _shipped()[group])
    return list(dict.fromkeys((*_registered[group], *offered)))


@lru_cache(maxsize=4)
def _offered(group: Group, path: tuple[str, ...]) -> list[str]:  # a new path is asked anew
    from importlib.metadata import entry_points

    return sorted({point.name for point in entry_points(group=f"coherence.{group}")})


def _find(group: Group, name: str) -> Plugin | None:
    if name in _registered[group]:
        return _registered[group][name]
    if name in _shipped()[group]:
        return _shipped()[group][name]
    from importlib.metadata import entry_points

    return next((_of(point) for point in entry_points(group=f"coherence.{group}", name=name)), None)


def shipped(group: Group) -> list[str]:
    """Return the names of this package's own plug-ins of a group, in the order of ``plugins.ini``."""
    return list(_shipped()[group])


@cache
def _shipped() -> Mapping[Group, Mapping[str, Plugin]]:
    found: dict[Group, dict[str, Plugin]] = {group: {} for group in _registered}
    group: Group | None = None
    for line in files(__package__).joinpath("plugins.ini").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]").removeprefix("coherence.")
            group = next((name for name in found if name == section), None)  # pytest looks for its plug-ins there, too
        elif group is not None and " = " in line:
            name, _, value = line.partition(" = ")
            found[group][name] = Plugin(name, DISTRIBUTION, Reference(value))
    return found


def _of(point: EntryPoint) -> Plugin:
    return Plugin(point.name, point.dist.name if point.dist else "an installed package", Reference(point.value))


def _identity(target: Any) -> object:
    """Return what makes two registrations the same plug-in: a re-run notebook cell defines it anew."""
    if isinstance(target, Reference):
        return target.value.replace(":", ".")
    thing = target if hasattr(target, "__qualname__") else type(target)
    return f"{thing.__module__}.{thing.__qualname__}"


@cache
def installed(package: str) -> str:
    """Return the version of an installed package, empty if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
