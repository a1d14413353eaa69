"""Asking somebody else's rules, so that none can raise into, or hang, the host."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from coherence.findings import Appraisal, Finding
from coherence.protocols import Rule
from coherence.records import Failure, Reading
from coherence.sensor.calls import Breaker, Call
from coherence.sensor.stages import Group, Stages, run_stages
from coherence.sensor.waiting import drive_sync
from coherence.state import AgentState


def run_rules(
    rules: Sequence[Rule], state: AgentState, reading: Reading | None, appraisal: Appraisal, timeout_s: float
) -> tuple[list[Finding], list[Failure]]:
    """Return what the rules find, and which of them failed or took too long."""
    calls = [
        Call(f"rule {rule.name}", partial(rule, state, reading, appraisal), Breaker(), partial(_as_finding, rule.name))
        for rule in rules
    ]

    def stages() -> Stages[None]:
        yield Group(calls, time.monotonic() + timeout_s)

    drive_sync(run_stages(stages()))
    findings = [call.value for call in calls if call.failure is None and call.value is not None]
    return findings, [call.failure for call in calls if call.failure is not None]


def _as_finding(name: str, value: object) -> Finding | None:
    if value is None:
        return None
    if not isinstance(value, Finding):
        raise TypeError(f"a rule returns a Finding or None, not {type(value).__name__}")
    if value.rule != name:
        raise ValueError(f"the finding's rule must be {name!r}, not {value.rule!r}")
    if not 0.0 <= value.score <= 1.0:
        raise ValueError(f"the finding's score must lie in [0, 1], not {value.score!r}")
    return value
