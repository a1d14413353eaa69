"""One session of a client whose hooks report what its agents do: what the sessions of all clients have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

from coherence.core.decisions import Decision, Guidance
from coherence.core.readings import excerpt
from coherence.fleet.fleet import Fleet
from coherence.monitor.monitor import Monitor

MAX_CONTEXT = 2_000
"""Characters of a text for the agent: clients show it no more than about these."""

TRUST_IN_SUBAGENTS = 0.4
"""Weight of a subagent's pressure for the one that started it, to begin with."""

_MEASURING = ThreadPoolExecutor(4, "coherence-measuring")
"""Threads on which is measured what no hook waits for."""

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

    def __init__(self, fleet: Fleet, session: str) -> None:
        self.fleet, self.session = fleet, session
        self.ended = False
        """True once the client has said that the session is over."""
        self.unblocked = False
        """True once the person has ended in a prompt what blocks; refusals that are kept end then, too."""
        self.steers = True
        """False while an event is only recorded."""
        self.monitor = fleet.agent(self.HOST, session=session, source="hook")
        """Monitor of the main agent."""
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
            What the client hands to a hook. Events and fields that are not known are passed over.
        steers : bool
            ``False`` records only: nothing is refused, and the agent is told nothing.
        """
        self.steers = steers
        handler = self.handlers.get(text_of(payload, "hook_event_name"))
        answer = handler(payload) if handler is not None else None
        return answer if answer is not None and steers else {}

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
        monitor = self.fleet.agent(name, parent=self.HOST, session=self.session, source="hook")
        self.fleet.add_edge(name, self.HOST, TRUST_IN_SUBAGENTS)
        return monitor

    def feed(self, told: Payload) -> None:
        """Take in what the client tells its status line; a client without one has nothing to tell."""

    def figures(self) -> tuple[float, float | None]:
        """Return the main agent's cost that is not recorded yet, and how many percent of its context are used."""
        return 0.0, None


class News:
    """Tell an agent what its decisions have for it, each piece once, and learn which of it was seen."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._measured: Future[Decision] | None = None
        self._last_told = ""
        self._unseen: dict[str, Guidance] = {}
        self._lessons: set[int] = set()
        """Lessons that were told at the call that failed."""
        self.decision = Decision(seq=0, kind="continue")
        """The newest decision that was looked at."""

    def measure(self) -> None:
        """Have what was recorded measured, on another thread."""
        if self._measured is None:
            self._measured = _MEASURING.submit(self._monitor.decide)

    def lesson(self) -> str:
        """Return how an error that has just come was solved before; empty if nobody knows, or the agent was told."""
        if self._monitor.lessons is None:
            return ""
        guidance = self._monitor.decide().guidance
        if not guidance or guidance.lesson is None or guidance.lesson in self._lessons:
            return ""
        self._lessons.add(guidance.lesson)
        return self._tell(excerpt(guidance.text, MAX_CONTEXT), guidance)

    def now(self) -> str:
        """Return what the agent is to know before its next step, empty if it knows; wait until that is measured."""
        self._measured = None
        return self._told(self._monitor.decide())

    def next(self) -> str:
        """Return the same of what :meth:`measure` has been asked for, empty while that takes its time."""
        measured = self._measured
        if measured is None or not measured.done():
            return ""
        self._measured = None
        return self._told(measured.result())

    def _told(self, decision: Decision) -> str:
        self.decision = decision
        text = decision.message if decision.kind in ("warn", "block") else ""
        if decision.guidance:
            text = decision.guidance.text
        return self._tell(excerpt(text, MAX_CONTEXT), decision.guidance)

    def _tell(self, text: str, guidance: Guidance | None) -> str:
        if not text or text == self._last_told:
            return ""
        self._last_told = text
        if guidance:
            self._unseen[text] = guidance
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


def context(event: str, text: str) -> Answer:
    """Return the answer that adds a text to what the agent reads next.

    Examples
    --------
    >>> context("PostToolUse", "It failed twice.")
    {'hookSpecificOutput': {'hookEventName': 'PostToolUse', 'additionalContext': 'It failed twice.'}}
    """
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": excerpt(text, MAX_CONTEXT)}}


def denied_alone(decision: Decision) -> Answer:
    """Return the answer that refuses a call, with the reason, to a client that wants no ``hookSpecificOutput``."""
    return {"decision": "deny", "reason": refusal(decision)}


def denied(decision: Decision) -> Answer:
    """Return the answer to ``PreToolUse`` that refuses a call, with the reason."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": refusal(decision),
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


def refusal(decision: Decision) -> str:
    """Return why a call is refused, in words for the agent."""
    reason = decision.message.replace("m.unblock() lets it through", "the user can let it through: coherence unblock")
    return excerpt(f"coherence refused this call: {reason}", MAX_CONTEXT)
