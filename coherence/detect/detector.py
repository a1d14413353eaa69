"""The parts of every detector: the event it observes, a method for each kind of event, and the table of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec

from coherence.core.decisions import Finding
from coherence.core.events import Event, Goal, ToolCall, ToolResult, kind_of, text_of
from coherence.core.protocols import Detector
from coherence.core.validation import call_text
from coherence.detect.text_analysis import TextAnalysis

D = TypeVar("D")
Handler: TypeAlias = Callable[["Observed"], object]

DATA_TYPES: dict[str, type] = {}
"""Detector -> type of its data, by which a snapshot is read."""


class Observed(NamedTuple):
    """One event as detectors see it: numbered, its text analysed once, a call's arguments decoded once."""

    seq: int
    ts: float
    """Time at which it happened, Unix seconds."""
    event: Any
    """The event; each handler knows its kind."""
    text: TextAnalysis
    """Text of the event; of a call, its name and arguments as one text."""
    arguments: Any = None
    """Of a call: decoded, or as one text where they are no JSON that can be read."""
    new_goal: bool = False
    """True if it sets another goal than the one before."""

    @classmethod
    def of(cls, event: Event, seq: int = 0, ts: float = 0.0, goal: str = "") -> Observed:
        """Return an event to be observed by an agent that has had this goal so far.

        Examples
        --------
        >>> Observed.of(Goal("fix the bug"), goal="write the docs").new_goal
        True
        """
        if type(event) is ToolCall:
            arguments = read_arguments(bytes(event.arguments))
            return cls(seq, ts, event, TextAnalysis(call_text(event.tool_name, arguments)), arguments)
        new = type(event) is Goal and event.text.strip() != goal
        return cls(seq, ts, event, TextAnalysis(text_of(event), skims=type(event) is ToolResult), None, new)


def read_arguments(raw: bytes) -> Any:
    """Return a call's arguments as they are judged: decoded, or as one text where they are no JSON that can be read."""
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return bytes(raw).decode("utf-8", "replace")


class EventDetector(Generic[D]):
    """Base of a detector that has a method for each kind of event it looks at: ``on_message``, ``on_tool_call``, ...

    What it remembers is plain data in :attr:`data`, so that it can be stored and restored. It is changed by those
    methods alone.

    Attributes
    ----------
    name : str
        Under which its data is stored.
    data_type : type
        Of its data, a :class:`msgspec.Struct` that needs no arguments.

    Examples
    --------
    >>> from coherence.core.events import Message
    >>> class Shouts(msgspec.Struct):
    ...     count: int = 0
    >>> class Shouting(EventDetector[Shouts]):
    ...     name, data_type = "shouting", Shouts
    ...     def on_message(self, observed):
    ...         self.data.count += observed.event.content.isupper()
    >>> detector = Shouting()
    >>> detector.observe(Observed.of(Message("assistant", "WHY?")))
    >>> detector.snapshot()
    Shouts(count=1)
    """

    name: ClassVar[str]
    data_type: ClassVar[type]
    data: D

    def __init__(self, data: D | None = None) -> None:
        self.data = self.data_type() if data is None else data

    def __init_subclass__(cls) -> None:
        if "data_type" in cls.__dict__:
            DATA_TYPES[cls.name] = cls.data_type

    def observe(self, observed: Observed) -> None:
        """Take in the next event; kinds without a method are passed over."""
        handler = getattr(self, f"on_{kind_of(observed.event)}", None)
        if handler is not None:
            handler(observed)

    def findings(self, state: Any, reading: Any, appraisal: Any) -> Sequence[Finding]:
        """Return what stands out at a tick, below its threshold too."""
        return ()

    def snapshot(self) -> D:
        """Return what it remembers; it is the data itself, to be encoded before the next event."""
        return self.data

    def restore(self, data: D) -> None:
        """Go on with what was remembered elsewhere."""
        self.data = data

    def renumber(self) -> None:
        """Let the next event be number 1: the data of one session begins another."""


EVENT_KINDS: Mapping[type, str] = {kind: str(kind.__struct_config__.tag) for kind in get_args(Event)}
"""Type of an event -> name of its kind, which is that of its handler."""


class DetectorTable:
    """Detectors in the order in which they take in each event.

    Parameters
    ----------
    detectors : iterable of Detector
        Each with a name of its own.

    Examples
    --------
    >>> from coherence.core.events import Goal
    >>> from coherence.detect.hijack import HijackDetector
    >>> table = DetectorTable([HijackDetector()])
    >>> table.observe(Observed.of(Goal("pay the bill"), seq=1))
    >>> table.snapshot()["goal_hijack"].known.asked
    ['bill', 'pay']
    """

    def __init__(self, detectors: Iterable[Detector] = ()) -> None:
        self._detectors: dict[str, Detector] = {}
        self._taken: dict[str, dict[type, Handler]] = {}
        for detector in detectors:
            self._insert(detector)
        self._order()

    def add(self, detector: Detector, *, before: str | None = None) -> None:
        """Let a detector follow the run from now on, last or before the one of a name.

        Raises
        ------
        ValueError
            If another one has its name.
        """
        self._insert(detector, before)
        self._order()

    def _insert(self, detector: Detector, before: str | None = None) -> None:
        if detector.name in self._detectors:
            raise ValueError(f"there are two detectors of the name {detector.name!r}")
        found = list(self._detectors.values())
        at = len(found) if before is None else list(self._detectors).index(before)
        found.insert(at, detector)
        self._detectors = {each.name: each for each in found}
        self._taken[detector.name] = _handlers_of(detector)

    def _order(self) -> None:
        taken = [self._taken[name] for name in self._detectors]
        self._handlers = {kind: [each[kind] for each in taken if kind in each] for kind in EVENT_KINDS}

    def observe(self, observed: Observed) -> None:
        """Hand an event to every detector that looks at its kind."""
        for handle in self._handlers[type(observed.event)]:
            handle(observed)

    def findings(self, state: Any, reading: Any, appraisal: Any) -> list[Finding]:
        """Return what all of them find at a tick."""
        return [found for each in self._detectors.values() for found in each.findings(state, reading, appraisal)]

    def snapshot(self) -> dict[str, object]:
        """Return what each remembers, by name; it is the data itself, to be encoded before the next event."""
        return {name: detector.snapshot() for name, detector in self._detectors.items()}

    def restore(self, parts: Mapping[str, object]) -> None:
        """Go on with what was remembered elsewhere; a detector without a part begins from nothing."""
        for name, data in parts.items():
            if name in self._detectors:
                self._detectors[name].restore(data)

    def renumber(self) -> None:
        """Let the next event be number 1: the state of one session begins another."""
        for detector in self._detectors.values():
            renumber = getattr(detector, "renumber", None)
            if renumber is not None:
                renumber()


def _handlers_of(detector: Detector) -> dict[type, Handler]:
    """Return what takes in events of each kind: the methods for some, or else the one for all."""
    named = {kind: getattr(detector, f"on_{name}", None) for kind, name in EVENT_KINDS.items()}
    found = {kind: handler for kind, handler in named.items() if handler is not None}
    return found or dict.fromkeys(EVENT_KINDS, detector.observe)
