"""Player of eval cases: each goes through a monitor, whose decisions make a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from coherence.core.decisions import Decision, Finding
from coherence.core.events import Correction, Fault, Feedback, Outcome
from coherence.guard.cases.packet import Case, CaseKind, CaseVerdict, Packet, PacketError
from coherence.monitor.monitor import Monitor
from coherence.monitor.tick_result import Record
from coherence.policy.rules.quality import OUTCOME_RULE

RECORDED = (Outcome, Feedback, Correction, Fault)
"""Events by which somebody reports what went wrong or right."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a case."""

    id: str
    kind: CaseKind
    healthy: bool
    expected: CaseVerdict
    verdict: CaseVerdict
    rule: str = ""
    """The rule that decided it; empty where none did."""
    event: int = 0
    """Number of the tick at which it did; 0 = none."""
    found: str = ""
    """The finding, in a sentence."""
    refused: str = ""
    """The tool whose call was refused; empty = none was."""
    right: bool
    """True = the verdict is the expected one, for the expected rule; where the sensor is not to see the failure, for
    none."""


def play_packet(packet: Packet) -> list[Played]:
    """Play every case, in order.

    Raises
    ------
    PacketError
        For settings or steps that a monitor does not take; the message names the case.
    """
    return [play_case(case, packet) for case in packet.cases]


def play_case(case: Case, packet: Packet) -> Played:
    """Play one case through a new monitor that embeds nothing and keeps nothing.

    The host of a case obeys: before each call it asks ``check``, and a call that is refused ends the session.

    Parameters
    ----------
    case : Case
        The session.
    packet : Packet
        Its ``config`` holds for every case; a case's own keys win.

    Raises
    ------
    PacketError
        For settings or steps that a monitor does not take.
    """
    try:
        with Monitor(
            strict=True,
            goal=case.goal,
            embedder=False,
            source="test",
            config={**packet.config, **case.config},
            budget=case.budget or None,
        ) as monitor:
            refused = next((step for step in case.steps if not _is_taken(monitor, step)), None)
            monitor.decide()
            records = monitor.events()[::-1]
    except (TypeError, ValueError) as error:
        raise PacketError(f"case {case.id!r}: {error}") from error
    verdict, decision, finding = verdict_of(records)
    rule = finding.rule if finding is not None else ""
    return Played(
        id=case.id,
        kind=case.kind,
        healthy=case.healthy,
        expected=case.expected,
        verdict=verdict,
        rule=rule,
        event=decision.seq if decision is not None else 0,
        found=finding.why if finding is not None else "",
        refused="" if refused is None else refused["tool"],
        right=verdict == case.expected and (rule == case.rule if case.rule or not case.seen else True),
    )


def verdict_of(records: Sequence[Record]) -> tuple[CaseVerdict, Decision | None, Finding | None]:
    """Return what the decisions of a session make of it, and the first decision and finding that did.

    ``blocked``
        A decision blocks, or the last answer fails the run (``ungrounded_outcome``).
    ``review``
        Else: a decision warns; or the newest one still guides, so that the agent has not taken the hint.
    ``learning``
        Else: an outcome, a judgement, a correction or a fault was reported, or an error was met with guidance that
        came to an end. Nobody has to look; it is there to learn from.
    ``unseen``
        Else: neither we nor anybody else said anything.

    Parameters
    ----------
    records : sequence of Record
        The session's events with their verdicts, oldest first.
    """
    decisions = [record.result.decision for record in records if record.result is not None]
    for decision in decisions:
        for finding in decision.findings:
            if finding.active and (finding.acts == "block" or finding.rule == OUTCOME_RULE):
                return "blocked", decision, finding
    standing = decisions[-1:]
    for decision in (*(decision for decision in decisions if decision.kind == "warn"), *standing):
        if decision.kind != "continue":
            return "review", decision, decision.findings[0]
    for decision in decisions:
        if decision.kind == "guide":
            return "learning", decision, decision.findings[0]
    return ("learning" if any(isinstance(record.event, RECORDED) for record in records) else "unseen"), None, None


def _is_taken(monitor: Monitor, step: dict[str, Any]) -> bool:
    """Report one step to the monitor; return False if it was a call that is refused."""
    arguments = {name: value for name, value in step.items() if name != "step"}
    match step["step"]:
        case "call":
            if not monitor.check(**arguments):
                return False
            monitor.tool_call(**arguments)
        case "result":
            monitor.tool_result(**arguments, call="unrecorded" if arguments.get("tool") else None)
        case method:
            getattr(monitor, method)(**arguments)
    return True
