"""The table of detectors that follow one run: the one place where an event is handed out by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from coherence.core.decisions import Finding
from coherence.core.protocols import Detector
from coherence.detect.detector import EVENT_KINDS, Observed


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
        self._handlers: dict[type, list[Callable[[Observed], object]]] = {}
        for detector in detectors:
            self.add(detector)

    def add(self, detector: Detector, *, before: str | None = None) -> None:
        """Let a detector follow the run from now on, last or before the one of a name.

        Raises
        ------
        ValueError
            If another one has its name.
        """
        if detector.name in self._detectors:
            raise ValueError(f"there are two detectors of the name {detector.name!r}")
        found = list(self._detectors.values())
        at = len(found) if before is None else list(self._detectors).index(before)
        found.insert(at, detector)
        self._detectors = {each.name: each for each in found}
        self._handlers = {kind: [] for kind in EVENT_KINDS}
        for each in found:
            for kind, handlers in self._handlers.items():
                handler = _handler(each, EVENT_KINDS[kind])
                if handler is not None:
                    handlers.append(handler)

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


def _handler(detector: Detector, kind: str) -> Callable[[Observed], object] | None:
    """Return what takes in events of a kind: the method for it, or else the one for all."""
    if any(hasattr(detector, f"on_{each}") for each in EVENT_KINDS.values()):
        found: Callable[[Observed], object] | None = getattr(detector, f"on_{kind}", None)
        return found
    return detector.observe
