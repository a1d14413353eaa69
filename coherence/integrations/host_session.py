"""One session of a client whose hooks report what its agents do: what the sessions of all clients have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from coherence.core.decisions import Decision, Guidance
from coherence.core.readings import excerpt
from coherence.fleet.fleet import Fleet
from coherence.monitor.monitor import Monitor

MAX_CONTEXT = 2_000
"""Characters of a text for the agent: clients show it no more than about these."""

TRUST_IN_SUBAGENTS = 0.4
"""Weight of a subagent's pressure for the one that started it, to begin with."""

REFUSED = "coherence refused this call"
"""Beginning of what an agent is told of a call that was refused."""

SHOWN_DIGITS = 8
"""Digits of a refusal's id in its reason: among a hundred thousand refusals, two of a kind are rare."""

UNTOLD = "hooks"
"""Part that failed, in faults about events that no hook has told and that were found elsewhere."""

ABSENT = "daemon"
"""Part that failed, in faults about events that were told later, because no daemon answered."""

MAX_NOTES = 200
"""Events and fields of a session that are not known and kept."""

MAX_NOTE, MAX_FIELDS, MAX_VALUE = 500, 20, 100
"""Characters of one of them that are kept, fields of an event, and characters of a field."""

Payload = Mapping[str, Any]
Answer = dict[str, Any]


class HostSession:
    """Follow one session; each payload of a hook is recorded, and its answer returned.

    A client of its own is a subclass, which fills :attr:`handlers`.

    Parameters
    ----------
    fleet : Fleet
        Of this session alone.
    session : str
        The client's name of it; the agents' sessions have that name, so that they go on after a restart.
    """

    HOST: ClassVar[str]
    """Name of the client, and of a session's main agent; a subagent's name begins with it."""

    CARRIERS: ClassVar[frozenset[str]] = frozenset()
    """Events whose answer can add a text, as :func:`context` has it, to what the agent reads next."""
    FIELDS: ClassVar[frozenset[str]] = frozenset()
    """Fields that payloads of known events have; empty: nobody looks for others."""

    def __init__(self, fleet: Fleet, session: str) -> None:
        self.fleet, self.session = fleet, session
        self.ended = False
        """True once the client has said that the session is over."""
        self.unblocked = False
        """True once the person has ended in a prompt what blocks; refusals that are kept end then, too."""
        self.steers = True
        """False while an event is only recorded."""
        self.monitor = self.make_agent(self.HOST)
        """Monitor of the main agent."""
        self._notes = 0
        self._noted: set[str] = set()
        self.handlers: dict[str, Callable[[Payload], Answer | None]] = {}
        """Name of an event -> what is done about it."""
        self.standing: dict[tuple[str, str], Answer | None] = {}
        """Event that asks about a call, and id of the agent -> the answer to all its calls from now on if the daemon
        cannot be reached, ``None`` for none; what has changed since somebody took it."""

    def handle(self, payload: Payload, *, steers: bool = True) -> Answer:
        """Record an event and return the answer to it; empty where there is nothing to say.

        Parameters
        ----------
        payload : mapping
            What the client hands to a hook. Events that are not known are kept as notes, in a small form, and so is
            the first value of a field that is not known.
        steers : bool
            ``False`` records only: nothing is refused, and the agent is told nothing.
        """
        self.steers = steers
        name = text_of(payload, "hook_event_name")
        handler = self.handlers.get(name)
        if handler is None:
            self._note(name or "an event without a name", payload)
            return {}
        if self.FIELDS and (new := payload.keys() - self.FIELDS - self._noted):
            self._noted |= new
            self._note(f"{name} with new fields", {field: payload[field] for field in sorted(new)})
        answer = handler(payload)
        return answer if answer is not None and steers else {}

    def make_agent(self, name: str, **options: Any) -> Monitor:
        """Return the monitor of a new agent of the session."""
        return self.fleet.agent(name, session=self.session, source="hook", **options)

    def come_late(self) -> None:
        """Record that no daemon answered, so that what follows is told late; of a session that begins so, nothing."""
        if self.monitor.state.facts.seq:
            self.monitor.fault(ABSENT, "no daemon answered: what follows was kept by hooks, and nothing was refused")

    def close(self) -> None:
        """Record what waits, before the session's monitors are closed."""

    def _note(self, what: str, payload: Payload) -> None:
        """Keep what is not known, in a small form."""
        self._notes += 1
        if self._notes <= MAX_NOTES:
            told = [(field, _small(value)) for field, value in payload.items() if field not in _COMMON]
            values = ", ".join(f"{excerpt(field, MAX_VALUE)}: {value}" for field, value in told[:MAX_FIELDS])
            self.monitor.note(excerpt(f"{excerpt(what, MAX_VALUE)}: {values}", MAX_NOTE))

    def refuses(self, answer: Answer) -> bool:
        """Tell whether an answer refuses a call; it is then given again if the daemon cannot be reached."""
        return answer.get("decision") == "deny" or "permissionDecision" in answer.get("hookSpecificOutput", ())

    def carries(self, payload: Payload) -> bool:
        """Tell whether the answer to an event can add a text to what the main agent reads next."""
        return text_of(payload, "hook_event_name") in self.CARRIERS and not text_of(payload, "agent_id")

    def monitor_of(self, payload: Payload) -> Monitor:
        """Return the monitor of the agent that an event is the first to tell of; that of a subagent is made."""
        agent_id = text_of(payload, "agent_id")
        if not agent_id:
            return self.monitor
        # Ids may begin with the time: their ends tell them apart.
        name = f"{self.HOST}/{text_of(payload, 'agent_type') or 'agent'}-{agent_id[-12:]}"
        monitor = self.make_agent(name, parent=self.HOST)
        self.fleet.add_edge(name, self.HOST, TRUST_IN_SUBAGENTS)
        return monitor

    def feed(self, told: Payload) -> None:
        """Take in what the client tells its status line; a client without one has nothing to tell."""

    def figures(self) -> tuple[float, float | None]:
        """Return the main agent's cost that is not recorded yet, and how many percent of its context are used."""
        return 0.0, None


_COMMON = ("session_id", "transcript_path", "cwd", "hook_event_name", "permission_mode")
"""Fields of all events, which a note leaves out."""


def _small(value: Any) -> str:
    """Return a value in a few characters, without a look into what may be large."""
    if isinstance(value, list | dict):
        return f"{type(value).__name__} of {len(value)}"
    return excerpt(value if isinstance(value, str) else repr(value), MAX_VALUE)


class News:
    """Tell an agent what its decisions have for it, each piece once, and learn which of it was seen."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._last_told = ""
        self._unseen: dict[str, Guidance] = {}
        self.decision = Decision(seq=0, kind="continue")
        """The newest decision that was looked at."""

    def now(self) -> str:
        """Return what the agent is to know before its next step, empty if it knows; wait until that is measured."""
        return self._told(self._monitor.decide())

    def next(self) -> str:
        """Return the same of what is measured by now."""
        return self._told(self._monitor.known_decision)

    def _told(self, decision: Decision) -> str:
        self.decision = decision
        text = decision.message if decision.kind in ("warn", "block") else ""
        if decision.guidance:
            text = decision.guidance.text
        text = excerpt(text, MAX_CONTEXT)
        if not text or text == self._last_told:
            return ""
        self._last_told = text
        if decision.guidance:
            self._unseen[text] = decision.guidance
        return text

    def seen(self, text: str) -> None:
        """Record that the agent was shown a text."""
        if (guidance := self._unseen.pop(text, None)) is not None:
            self._monitor.delivered(guidance)


def has_past(monitor: Monitor) -> bool:
    """Tell whether anything of an agent was recorded before, by this process or by another one."""
    counts = monitor.counters
    return bool(monitor.state.facts.goal or counts.calls or counts.tokens_in)


def text_of(payload: Payload, name: str) -> str:
    """Return a text of a payload, empty if it has none of that name.

    Examples
    --------
    >>> text_of({"tool_name": "Bash"}, "tool_name"), text_of({"tool_name": 7}, "tool_name")
    ('Bash', '')
    """
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def count_of(payload: Payload, name: str) -> int | None:
    """Return a count of a payload, ``None`` if it has none of that name.

    Examples
    --------
    >>> count_of({"input_tokens": 7}, "input_tokens"), count_of({"input_tokens": -1}, "input_tokens")
    (7, None)
    """
    value = payload.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def context(event: str, text: str) -> Answer:
    """Return the answer that adds a text to what the agent reads next.

    Examples
    --------
    >>> context("PostToolUse", "It failed twice.")
    {'hookSpecificOutput': {'hookEventName': 'PostToolUse', 'additionalContext': 'It failed twice.'}}
    """
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": excerpt(text, MAX_CONTEXT)}}


def denied_alone(decision: Decision, monitor: Monitor) -> Answer:
    """Return the answer that refuses a call, with the reason, to a client that wants no ``hookSpecificOutput``."""
    return {"decision": "deny", "reason": refusal(decision, monitor)}


def denied(decision: Decision, monitor: Monitor) -> Answer:
    """Return the answer to ``PreToolUse`` that refuses a call, with the reason."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": refusal(decision, monitor),
        }
    }


def requests_again(monitor: Monitor) -> str:
    """Return what the user asked first and last, for an agent whose context was compacted; empty if nothing."""
    facts = monitor.state.facts
    if not facts.goal:
        return ""
    told = f"Before the context was compacted, the user asked: {excerpt(facts.goal, 600)}"
    if facts.request and facts.request != facts.goal:
        told += f"\nThe user's newest request was: {excerpt(facts.request, 600)}"
    return told


def refusal(decision: Decision, monitor: Monitor) -> str:
    """Return why a call is refused, in words for the agent, and how the person finds out more."""
    reason = decision.message.replace("m.unblock() lets it through", "the user can let it through: coherence unblock")
    more = explained(decision, monitor)
    return excerpt(f"{REFUSED}: {reason}", MAX_CONTEXT - len(more)) + more


def explained(decision: Decision, monitor: Monitor) -> str:
    """Return the command that explains a refusal, in brackets; empty for one that could not be judged."""
    digits = monitor.refusal_id(decision).rpartition("-")[2]
    return f" (coherence explain {digits[:SHOWN_DIGITS]})" if digits else ""
