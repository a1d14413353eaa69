"""Agents of the Claude Agent SDK: its hooks and the client's transcripts tell their lives, and decisions answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar

import anyio
import msgspec
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage

from coherence.core.decisions import Decision
from coherence.frameworks.agents import Agents, Watching
from coherence.integrations.claude_code.session import ClaudeCodeSession
from coherence.integrations.claude_code.settings import EVENTS
from coherence.integrations.conversation import Refused
from coherence.integrations.host_session import Answer, Payload, text_of
from coherence.monitor.monitor import Monitor
from coherence.policy.budgets import PER_TOOL, is_budget

_Message = TypeVar("_Message")

_STOPPABLE = ("UserPromptSubmit", "PostToolBatch")
"""Events before a request to the model: there a used-up budget ends the run."""


class CoherenceHooks(Watching):
    """Watch one agent of the Claude Agent SDK, and its subagents.

    Give the options of :meth:`options` to ``query()`` or ``ClaudeSDKClient``, and read the messages through
    :meth:`messages`. Hooks are answered in a thread, so that they do not hold up the event loop.

    Parameters
    ----------
    agent : str
        Name of the agent; those of its subagents begin with it.
    agents : Agents, optional
        Agents of yours, in place of ``options``.
    **options
        Arguments of :class:`~coherence.frameworks.agents.Agents`: ``goal``, ``store``, ``guide``, ``budget``,
        ``config`` and ``fleet``.

    Raises
    ------
    ValueError
        For arguments that exclude each other, and for agents that are one monitor of yours: subagents need a fleet.
    """

    def __init__(self, agent: str = "claude-code", *, agents: Agents | None = None, **options: Any) -> None:
        super().__init__(agent, agents=agents, **options)
        # Steps are measured as the transcript tells them: by time, the decisions would depend on the client's speed.
        manual = msgspec.structs.replace(self.agents.fleet.config, tick="manual")
        self._watch = self.agents.watch(agent, source="hook", config=manual)
        self._has_budget = self.agents.fleet.budget is not None
        self._sessions: dict[str, ClaudeCodeSession] = {}
        self._charged: set[str] = set()
        """Sessions whose cost was told."""
        self._stopped: Decision | None = None
        self._lock = Lock()

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """Return a copy of the options with hooks behind those that are there."""
        options = options or ClaudeAgentOptions()
        hooks: dict[Any, list[HookMatcher]] = {event: list(found) for event, found in (options.hooks or {}).items()}
        for event, matcher in EVENTS.items():
            hooks.setdefault(event, []).append(HookMatcher(matcher=matcher, hooks=[self._hook]))
        return replace(options, hooks=hooks)

    async def messages(self, messages: AsyncIterator[_Message]) -> AsyncIterator[_Message]:
        """Yield the messages of ``query()`` or of a client's ``receive_response()``, and record what they have cost.

        Raises
        ------
        CoherenceBlocked
            After the last message, if a used-up budget has ended the run.
        """
        async for message in messages:
            if isinstance(message, ResultMessage):
                await anyio.to_thread.run_sync(self._end, message.session_id, message.total_cost_usd)
            yield message
        with self._lock:
            stopped, self._stopped = self._stopped, None
        if stopped is not None:
            raise self._watch.blocked([Refused("", stopped)])

    def close(self) -> None:
        """Record what waits, and close the monitors, but not a fleet of the user's."""
        with self._lock:
            for session in self._sessions.values():
                session.close()
        self.agents.close()

    async def _hook(self, payload: Any, _call: str | None, _context: Any) -> Any:
        return await anyio.to_thread.run_sync(self._answer, payload)

    def _answer(self, payload: Payload) -> Answer:
        """Record an event and return the answer to it."""
        try:
            with self._lock:
                answer = self._session(text_of(payload, "session_id")).handle(payload)
                if self._has_budget and text_of(payload, "hook_event_name") in _STOPPABLE:
                    decision = self.monitor.decide()
                    if _is_spent(decision):
                        self._stopped = decision
                        return {"continue": False, "stopReason": decision.message}
            return answer if self.agents.guides else _without_guidance(answer)
        except Exception as error:  # the client goes on
            self.monitor.fault("hooks", error)
            return {}

    def _end(self, session: str, cost: float | None) -> None:
        """Record a turn to its end, and what the session has cost so far."""
        try:
            with self._lock:
                if session in self._sessions:
                    if self._charged and session not in self._charged:
                        # A first figure is taken to contain what the monitor knows: that is of other sessions.
                        self._sessions[session].feed({"cost": {"total_cost_usd": 0.0}})
                    self._charged.add(session)
                    self._sessions[session].feed({"cost": {"total_cost_usd": cost}})
                    self._sessions[session].handle({"hook_event_name": "SessionEnd", "session_id": session})
        except Exception as error:
            self.monitor.fault("hooks", error)

    def _session(self, id: str) -> ClaudeCodeSession:
        """Return a session, made at its first event; a new one of the same agent goes on with its monitor."""
        if id not in self._sessions:
            kind = type("Session", (_Session,), {"HOST": self.monitor.agent})
            self._sessions[id] = kind(self.agents.fleet, id)
        return self._sessions[id]


class _Session(ClaudeCodeSession):
    """A session whose agents may be in the fleet already, and whose hooks may be sooner than the transcript."""

    LAG_S = 1.0

    def make_agent(self, name: str, **options: Any) -> Monitor:
        known = any(monitor.agent == name for monitor in self.fleet)
        return self.fleet.agent(name) if known else super().make_agent(name, **options)


def _is_spent(decision: Decision) -> bool:
    """Tell whether a budget is used up, of which all calls are part."""
    rules = [finding.rule for finding in decision.findings if finding.acts == "block"]
    return any(is_budget(rule) and not rule.partition(".")[2].startswith(PER_TOOL) for rule in rules)


def _without_guidance(answer: Answer) -> Answer:
    """Return an answer without the text that it adds to what the agent reads."""
    told = answer.get("hookSpecificOutput")
    if not isinstance(told, dict) or "additionalContext" not in told:
        return answer
    rest = {key: value for key, value in told.items() if key != "additionalContext"}
    answer = {key: value for key, value in answer.items() if key != "hookSpecificOutput"}
    return {**answer, "hookSpecificOutput": rest} if len(rest) > 1 else answer
