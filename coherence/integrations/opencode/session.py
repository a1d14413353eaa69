"""One session of OpenCode: what the plug-in tells becomes the life of agents, and decisions become answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from coherence.fleet.fleet import Fleet
from coherence.integrations.briefing import Briefing
from coherence.integrations.host_session import Answer, HostSession, Payload, denied_alone, text_of
from coherence.monitor.monitor import Monitor

_QUOTED = re.compile(r'\A"([^"]*)"\Z')
"""Prompt of the command line, which the client puts between quotes."""


class _Agent:
    """One agent of a session: its monitor, and what it was told."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor, self.briefing = monitor, Briefing(monitor)
        self.model = ""
        self.calls: set[str] = set()
        """Ids of calls without a result."""
        self.last = ""
        """Id of the newest text; the client may tell one more than once."""


class OpenCodeSession(HostSession):
    """Follow one session of OpenCode, with the sessions of its subagents.

    Examples
    --------
    >>> with Fleet(embedder=False) as fleet:
    ...     session = OpenCodeSession(fleet, "s1")
    ...     _ = session.handle({"hook_event_name": "chat.message", "prompt": "List the files."})
    ...     command = {"command": "rm -rf /"}
    ...     asked = {"hook_event_name": "tool.execute.before", "tool_name": "bash", "tool_input": command}
    ...     answer = session.handle(asked)
    >>> answer["decision"]
    'deny'
    """

    HOST = "opencode"

    def __init__(self, fleet: Fleet, session: str) -> None:
        super().__init__(fleet, session)
        self._agents: dict[str, _Agent] = {}
        """Id of a subagent, empty for the main agent -> the agent."""
        self.handlers = {
            "chat.message": self._on_prompt,
            "tool.execute.before": self._on_call,
            "tool.execute.after": self._on_result,
            "tool.failed": self._on_failure,
            "session.idle": self._on_idle,
        }

    def handle(self, payload: Payload, *, steers: bool = True) -> Answer:
        """Record what has happened since the last event, then the event, and return the answer to it."""
        notes = payload.get("notes")
        for each in notes if isinstance(notes, list) else ():
            if isinstance(each, Mapping):
                self._on_note(each)
        return super().handle(payload, steers=steers)

    def _agent(self, payload: Payload) -> _Agent:
        """Return the agent that an event is about."""
        agent_id = text_of(payload, "agent_id")
        if agent_id not in self._agents:
            self._agents[agent_id] = _Agent(self.monitor_of(payload))
        return self._agents[agent_id]

    def _on_note(self, note: Payload) -> None:
        agent, kind = self._agent(note), text_of(note, "kind")
        if kind == "text" and text_of(note, "text").strip() and text_of(note, "id") != agent.last:
            agent.last = text_of(note, "id")
            agent.monitor.message("assistant", text_of(note, "text"), model=agent.model or None)
        elif kind == "usage":
            _record_usage(agent, note)
        elif kind == "compaction":
            agent.briefing.compacted(text_of(note, "text"))
        elif kind == "shown":
            agent.briefing.seen(text_of(note, "text"))
        elif kind == "error":
            agent.monitor.fault("model", text_of(note, "text") or "unknown")

    def _on_prompt(self, payload: Payload) -> None:
        agent, prompt = self._agent(payload), _QUOTED.sub(r"\1", text_of(payload, "prompt").strip())
        agent.model = text_of(payload, "model")
        if text_of(payload, "agent_id") and prompt:
            agent.monitor.goal(prompt)
        elif prompt:
            agent.monitor.message("user", prompt)

    def _on_call(self, payload: Payload) -> Answer | None:
        agent, tool, arguments = self._agent(payload), text_of(payload, "tool_name"), payload.get("tool_input")
        decision = agent.monitor.check(tool, arguments)
        if not decision and self.steers:
            return denied_alone(decision, agent.monitor)
        agent.calls.add(agent.monitor.tool_call(tool, arguments, call=text_of(payload, "call_id") or None))
        return None

    def _on_result(self, payload: Payload) -> Answer | None:
        status = payload.get("exit")
        failed = (isinstance(status, int) and status != 0) or text_of(payload, "tool_name") == "invalid"
        return self._record_result(payload, payload.get("output"), error=failed)

    def _on_failure(self, payload: Payload) -> Answer | None:
        if text_of(payload, "call_id") not in self._agent(payload).calls:
            return None
        return self._record_result(payload, text_of(payload, "error"), error=True)

    def _record_result(self, payload: Payload, output: Any, *, error: bool) -> Answer | None:
        agent, call = self._agent(payload), text_of(payload, "call_id")
        agent.calls.discard(call)
        agent.monitor.tool_result(output, error=error, call=call or None, tool=text_of(payload, "tool_name") or None)
        text = agent.briefing.next()
        return {"context": text} if text else None

    def _on_idle(self, payload: Payload) -> None:
        self._agent(payload).monitor.decide()
        self.fleet.flush()


def _record_usage(agent: _Agent, note: Payload) -> None:
    tokens, cost = note.get("tokens"), note.get("cost")
    found = tokens if isinstance(tokens, Mapping) else {}
    cache = found.get("cache")
    kept = cache if isinstance(cache, Mapping) else {}
    agent.monitor.usage(
        tokens_in=_sum(found.get("input"), kept.get("read"), kept.get("write")),
        tokens_out=_sum(found.get("output"), found.get("reasoning")),
        # A model without a price costs 0 to the client, which is no cost that anybody knows.
        cost_usd=float(cost) if isinstance(cost, int | float) and 0 < cost < 1e12 else None,
        model=agent.model or None,
    )


def _sum(*counts: Any) -> int | None:
    known = [count for count in counts if isinstance(count, int) and 0 <= count < 10**12]
    return sum(known) if known else None
