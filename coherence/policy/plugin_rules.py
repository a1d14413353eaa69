"""Rules and detectors of somebody else, asked so that none can raise into, or hang, the host."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from coherence.core.calls import Breaker, PluginCall
from coherence.core.decisions import EVIDENCE, Appraisal, Finding
from coherence.core.plugin_calls import run_calls
from coherence.core.protocols import Detector, Rule
from coherence.core.readings import Failure, Reading, one_line
from coherence.core.redact import redact
from coherence.core.validation import check_count, check_text
from coherence.detect.detector import Observed
from coherence.state.reducer import AgentState

MAX_WORDS = 1_000
"""Characters of a rule's ``why`` and ``action``, at most."""

MAX_EVENTS = 10_000
"""Events that wait until a detector is asked; of more, the oldest are never shown."""

SNAPSHOT_S = 1.0
"""Seconds that a detector has for its snapshot."""


class PluginDetector:
    """Somebody else's detector: it is shown events on a worker thread, when a tick asks for its findings.

    So it can neither raise into nor hang the host, and one change of threads a tick is all it costs.

    Parameters
    ----------
    detector : Detector
        Asked through this object alone.
    """

    def __init__(self, detector: Detector) -> None:
        self.name = detector.name
        self.breaker = Breaker()
        self._detector = detector
        self._events: deque[Observed] = deque(maxlen=MAX_EVENTS)

    def observe(self, observed: Observed) -> None:
        """Keep the event until the detector is asked."""
        self._events.append(observed)

    def ask(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Sequence[object]:
        """Show the detector what has happened, and return its findings."""
        self._catch_up()
        return list(self._detector.findings(state, reading, appraisal))

    def findings(self, state: Any, reading: Any, appraisal: Any) -> Sequence[Finding]:
        """Return nothing: it is asked with the rules, under their time limit."""
        return ()

    def snapshot(self) -> Any:
        """Return what the detector remembers; ``None`` if it fails."""
        call = PluginCall(f"detector {self.name}", self._kept, self.breaker)
        run_calls([call], SNAPSHOT_S)
        return call.value if call.failure is None else None

    def restore(self, data: Any) -> None:
        """Let the detector go on with what it remembered."""
        self._events.clear()
        if data is not None:
            self._detector.restore(data)

    def _kept(self) -> Any:
        self._catch_up()
        return msgspec.to_builtins(self._detector.snapshot())

    def _catch_up(self) -> None:
        while self._events:
            self._detector.observe(self._events.popleft())


class PluginRules:
    """Somebody else's rules and detectors, asked so that none can raise into, or hang, the host.

    Parameters
    ----------
    rules : sequence of Rule
        Rules.
    detectors : sequence of callable
        Each makes a detector.
    timeout_s : float
        Seconds for all of them together at a tick. One that overran is left out for a while.
    """

    def __init__(
        self, rules: Sequence[Rule], detectors: Sequence[Callable[[], Detector]] = (), timeout_s: float = 2.0
    ) -> None:
        self.detectors = [PluginDetector(make()) for make in detectors]
        self._rules = [(rule, Breaker()) for rule in rules]
        self._timeout_s = timeout_s

    def __bool__(self) -> bool:
        return bool(self._rules or self.detectors)

    def findings(
        self,
        state: AgentState,
        reading: Reading | None,
        appraisal: Appraisal,
        *,
        made: bool = True,
        until: float | None = None,
    ) -> tuple[list[Finding], list[Failure]]:
        """Return what they find, and which of them failed or took too long.

        ``made``: something has happened; a question about a call is put to rules alone. ``until``: monotonic time by
        which to be done, if that is before the time for all of them is over.
        """
        shown = (state, reading, appraisal)
        calls = [
            PluginCall(f"rule {rule.name}", partial(_asked, rule, shown), breaker, partial(_as_findings, rule.name))
            for rule, breaker in self._rules
        ]
        if made:
            calls += [
                PluginCall(
                    f"detector {each.name}", partial(each.ask, *shown), each.breaker, partial(_as_findings, each.name)
                )
                for each in self.detectors
            ]
        left = self._timeout_s if until is None else max(until - time.monotonic(), 0.0)
        run_calls(calls, min(self._timeout_s, left))
        findings = [found for call in calls if call.failure is None for found in call.value]
        return findings, [call.failure for call in calls if call.failure is not None]


def _asked(rule: Rule, shown: tuple[AgentState, Reading | None, Appraisal]) -> Sequence[object]:
    found = rule(*shown)
    return () if found is None else (found,)


def _as_findings(name: str, values: Sequence[object]) -> list[Finding]:
    return [_as_finding(name, value) for value in values]


def _as_finding(name: str, value: object) -> Finding:
    if not isinstance(value, Finding):
        raise TypeError(f"a rule returns a Finding or None, not {type(value).__name__}")
    if value.rule.partition(".")[0] != name.partition(".")[0]:
        raise ValueError(f"the finding's rule must be {name!r}, not {value.rule!r}")
    if not 0.0 <= value.score <= 1.0:
        raise ValueError(f"the finding's score must lie in [0, 1], not {value.score!r}")
    plain = msgspec.structs.replace(
        value,
        evidence=tuple(value.evidence)[-EVIDENCE:],
        why=_line("why", value.why),
        action=_line("action", value.action),
        lifted=False,  # for the regulator to say
    )
    # What is used must be what a replay reads, to the type of each number; and what cannot be read must not be written.
    found = _READER.decode(_WRITER.encode(plain))
    evidence = [check_count("evidence", seq) for seq in found.evidence]
    # What happened in a session before this one has the number 0 here.
    return msgspec.structs.replace(found, evidence=tuple(seq for seq in evidence if seq))


def _line(field: str, value: object) -> str:
    return one_line(redact(check_text(field, value))[:MAX_WORDS])


def _number(value: object) -> Any:
    """Return a number of numpy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a finding cannot hold a {type(value).__name__}")


_WRITER = msgspec.json.Encoder(enc_hook=_number)
_READER = msgspec.json.Decoder(Finding)
