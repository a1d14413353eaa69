"""Asking somebody else's rules, so that none can raise into, or hang, the host."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from coherence.core.decisions import EVIDENCE, Appraisal, Finding
from coherence.core.protocols import Rule
from coherence.core.readings import Failure, Reading, one_line
from coherence.core.validation import check_count, check_text
from coherence.sensor.plugin_calls import Breaker, Call, Group, Stages, drive_sync, run_stages
from coherence.state.reducer import AgentState

MAX_WORDS = 1_000
"""Characters of a rule's ``why`` and ``action``, at most."""


def run_rules(
    rules: Sequence[Rule],
    state: AgentState,
    reading: Reading | None,
    appraisal: Appraisal,
    timeout_s: float,
    breakers: Mapping[str, Breaker] | None = None,
) -> tuple[list[Finding], list[Failure]]:
    """Return what the rules find, and which of them failed or took too long.

    One that overran is left out for a while, if its breaker is kept from call to call.
    """
    kept = breakers or {}
    calls = []
    for rule in rules:
        ask, read = partial(rule, state, reading, appraisal), partial(_as_finding, rule.name)
        calls.append(Call(f"rule {rule.name}", ask, kept.get(rule.name) or Breaker(), read))

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
    plain = msgspec.structs.replace(
        value,
        evidence=tuple(value.evidence)[-EVIDENCE:],
        why=_line("why", value.why),
        action=_line("action", value.action),
        lifted=False,
    )
    # What is used must be what a replay reads, to the type of each number; and what cannot be read must not be written.
    found = _READER.decode(_WRITER.encode(plain))
    evidence = [check_count("evidence", seq) for seq in found.evidence]
    # What happened in a session before this one has the number 0 here.
    return msgspec.structs.replace(found, evidence=tuple(seq for seq in evidence if seq))


def _line(field: str, value: object) -> str:
    return one_line(check_text(field, value)[:MAX_WORDS])


def _number(value: object) -> Any:
    """Return a number of numpy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a finding cannot hold a {type(value).__name__}")


_WRITER = msgspec.json.Encoder(enc_hook=_number)
_READER = msgspec.json.Decoder(Finding)
