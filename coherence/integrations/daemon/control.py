"""Commands to the daemon itself: their form, and what is told of agents and done for them.

A command is the line ``coherence-control`` and a JSON object behind it, such as ``{"do": "status"}``. The answer is a
JSON object that names its schema, or ``{"error": "..."}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from coherence.core.events import Spent
from coherence.core.readings import POLICY, POLICY_IN_WORDS, Band, Reading, excerpt
from coherence.core.signs import said

if TYPE_CHECKING:  # a command to the daemon starts in a third of the time without them
    from coherence.fleet.fleet import AgentStatus, Fleet
    from coherence.integrations.host_session import HostSession
    from coherence.monitor.monitor import Monitor

CONTROL = "coherence-control"
"""First line of a command."""

READINGS = 8
"""Newest readings that a trend is made of."""

STEADY = 0.05
"""Difference of the index between the older and the newer readings below which it is steady."""

MAX_CAUSE = 500
"""Characters of a cause."""

Trend: TypeAlias = Literal["up", "down", "steady"]


class Command(msgspec.Struct, frozen=True):
    """Request to the daemon itself."""

    do: str
    """``status``, ``stop``, ``unblock`` or ``purge``."""
    session: str | None = None
    """Default: all sessions, or the one used last to unblock. Needed to purge."""
    agent: str | None = None
    """Name of the agent to unblock; default: whichever are blocked."""
    reason: str = ""
    """Reason to unblock, for the record."""
    store: str | None = None
    """File of the store that is to be purged; another one than the daemon's is left alone."""
    feed: dict[str, Any] | None = None
    """Figures that the client has told the status line of the session."""


class CommandError(ValueError):
    """A command that cannot be carried out; the message says why."""


def is_command(raw: bytes) -> bool:
    """Tell whether something is a command to the daemon itself, rather than of a hook."""
    return raw.partition(b"\n")[0].strip() == CONTROL.encode()


def read_command(raw: bytes) -> Command:
    r"""Return the command that was sent.

    Raises
    ------
    CommandError
        If it is none.

    Examples
    --------
    >>> read_command(b'coherence-control\n{"do": "stop"}').do
    'stop'
    """
    try:
        return msgspec.json.decode(raw.partition(b"\n")[2], type=Command)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"not a command: {error}") from error


def schema_of(do: str) -> str:
    """Return the schema of the answer to a command.

    Examples
    --------
    >>> schema_of("status")
    'coherence.status/1'
    """
    return f"coherence.{do}/1"


def agent_records(fleet: Fleet) -> list[dict[str, Any]]:
    """Return how each agent of a session stands, in the order they were made, as far as it is known: at once."""
    monitors = {monitor.agent: monitor for monitor in fleet}
    agents = fleet.status(wait=False)
    return [_record(status, monitors[status.agent]) for status in agents if status.agent in monitors]


def session_records(session: HostSession) -> list[dict[str, Any]]:
    """Return how each agent of a session stands, with what the client has told of the main one."""
    found = agent_records(session.fleet)
    waiting, context_percent = session.figures()
    for record in found:
        if record["agent"] == session.HOST:
            record["context_percent"] = context_percent
            if waiting:
                record["cost_usd"] = (record["cost_usd"] or 0.0) + waiting
    return found


def _record(status: AgentStatus, monitor: Monitor) -> dict[str, Any]:
    known = monitor.known_state
    cause = status.cause or sign_of(known.result.reading if known.result is not None else None)
    return {
        "agent": status.agent,
        "parent": status.parent,
        "index": status.coherence_index,
        "band": status.band,
        "trend": trend_of([reading.coherence_index for reading in monitor.history(READINGS)]),
        "pressure": status.pressure,
        "mode": status.mode,
        "decision": status.decision,
        "cause": excerpt(cause, MAX_CAUSE),
        "refusal": known.refusal,
        "steps": known.steps,
        "calls": status.calls,
        "errors": status.errors,
        "cost_usd": _cost(status.spent),
        "context_percent": None,
    }


def sign_of(reading: Reading | None) -> str:
    """Return the strongest sign against a run that is not green, in words."""
    if reading is None or reading.band in (Band.GREEN, Band.UNKNOWN) or not reading.cause:
        return ""
    return POLICY_IN_WORDS if reading.cause == POLICY else said(reading.cause)


def _cost(spent: Spent) -> float | None:
    """Return the cost; the host may have told nothing of it."""
    return spent.cost_usd or (spent.cost_usd if spent.tokens else None)


def trend_of(indices: Sequence[float | None]) -> Trend | None:
    """Return where an index goes: the mean of its newer half against that of its older one.

    Parameters
    ----------
    indices : sequence of float
        Newest first; ``None`` = unknown.

    Returns
    -------
    {"up", "down", "steady"} or None
        ``None``: fewer than two are known.

    Examples
    --------
    >>> trend_of([0.4, 0.5, None, 0.9, 0.9]), trend_of([0.9, 0.9]), trend_of([0.9])
    ('down', 'steady', None)
    """
    known = [index for index in indices if index is not None]
    half = len(known) // 2
    if not half:
        return None
    rise = (sum(known[:half]) - sum(known[-half:])) / half
    if abs(rise) < STEADY:
        return "steady"
    return "up" if rise > 0 else "down"


def unblock_agents(fleet: Fleet, agent: str | None, reason: str) -> list[dict[str, Any]]:
    """End the blocks of a session's agents; return what was ended, one entry an agent.

    Parameters
    ----------
    fleet : Fleet
        The session's.
    agent : str, optional
        Name of an agent, or what follows the main agent's name in it. Default: those that are blocked, or of which a
        call was refused.
    reason : str
        For the record.

    Raises
    ------
    CommandError
        If there is no such agent.
    """
    monitors = {monitor.agent: monitor for monitor in fleet}
    if agent is not None:
        found = next((name for name in monitors if name == agent or name.partition("/")[2] == agent), None)
        if found is None:
            raise CommandError(f"there is no agent {excerpt(agent)} in this session, but {', '.join(monitors)}")
        monitors = {found: monitors[found]}
    decisions = {status.agent: status.decision for status in fleet.status()}
    ended = []
    for name, monitor in monitors.items():
        monitor.decide()  # what blocks is known from a tick
        blocking = monitor.blocking
        if agent is not None or blocking or decisions.get(name) == "block":
            monitor.unblock(reason)
            monitor.decide()
            ended.append({"agent": name, "rules": list(blocking.rules), "call": blocking.call is not None})
    return ended


def ended_in_words(ended: Mapping[str, Any]) -> str:
    """Return what was ended for one agent, for people and agents.

    Parameters
    ----------
    ended : mapping
        An entry of :func:`unblock_agents`.

    Examples
    --------
    >>> ended_in_words({"agent": "claude-code", "rules": ["loop"], "call": True})
    'claude-code: the block by loop ended and the call refused last may run'
    """
    what = [f"the block by {', '.join(ended['rules'])} ended"] if ended["rules"] else []
    what += ["the call refused last may run"] if ended["call"] else []
    return f"{ended['agent']}: {' and '.join(what) or 'nothing blocked it'}"
