"""One session of Claude Code: what its hooks say becomes the life of agents, and decisions become answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coherence.core.decisions import Decision
from coherence.core.readings import excerpt
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.results import result_of
from coherence.monitor.monitor import Monitor

AGENT = "claude-code"
"""Name of a session's main agent; its baselines and lessons are those of all sessions."""

TRUST_IN_SUBAGENTS = 0.4
"""Weight of a subagent's pressure for the one that started it, to begin with."""

MAX_CONTEXT = 2_000
"""Characters of a text for the agent: the client shows it no more than about these."""

_NO_REQUEST = "<task-notification>"
"""Beginning of a prompt that the client writes itself, when a task in the background has ended."""

Payload = Mapping[str, Any]
Answer = dict[str, Any]


class ClaudeCodeSession:
    """Follow one session; each payload of a hook is recorded, and its answer returned.

    Parameters
    ----------
    fleet : Fleet
        Of this session alone. Its main agent is ``claude-code``, a subagent's name begins with that.
    session : str
        The client's ``session_id``; the agents' sessions have that name, so that they go on after a restart.

    Examples
    --------
    >>> with Fleet(embedder=False) as fleet:
    ...     session = ClaudeCodeSession(fleet, "s1")
    ...     _ = session.handle({"hook_event_name": "UserPromptSubmit", "prompt": "List the files."})
    ...     asked = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
    ...     answer = session.handle(asked)
    >>> answer["hookSpecificOutput"]["permissionDecision"]
    'deny'
    """

    def __init__(self, fleet: Fleet, session: str) -> None:
        self.fleet, self.session = fleet, session
        self.ended = False
        """True once the client has said that the session is over."""
        self._main = fleet.agent(AGENT, session=session, source="hook")
        self._subagents: dict[str, Monitor] = {}
        self._last_text: dict[str, str] = {}
        """Agent -> newest text that it was given: it is not told the same twice in a row."""
        self._handlers: dict[str, Callable[[Payload], Answer | None]] = {
            "SessionStart": self._on_start,
            "UserPromptSubmit": self._on_prompt,
            "PreToolUse": self._on_call,
            "PostToolUse": self._on_result,
            "PostToolUseFailure": self._on_failure,
            "PostToolBatch": self._on_batch,
            "PermissionDenied": self._on_denial,
            "SubagentStart": self._on_subagent,
            "SubagentStop": self._on_stop,
            "Stop": self._on_stop,
            "StopFailure": self._on_stop_failure,
            "PostCompact": self._on_compaction,
            "SessionEnd": self._on_end,
        }

    def handle(self, payload: Payload, *, steers: bool = True) -> Answer:
        """Record an event and return the answer to it; empty where there is nothing to say.

        Parameters
        ----------
        payload : mapping
            What the client hands to a hook. Events and fields that are not known are passed over.
        steers : bool
            ``False`` records only: nothing is refused, and the agent is told nothing.
        """
        handler = self._handlers.get(_text(payload, "hook_event_name"))
        answer = handler(payload) if handler is not None else None
        return answer if answer is not None and steers else {}

    def _agent(self, payload: Payload) -> Monitor:
        """Return the monitor of the agent that an event is about."""
        agent_id = _text(payload, "agent_id")
        if not agent_id:
            return self._main
        if agent_id not in self._subagents:
            name = f"{AGENT}/{_text(payload, 'agent_type') or 'agent'}-{agent_id[:12]}"
            made = self.fleet.agent(name, parent=AGENT, session=self.session, source="hook")
            self.fleet.add_edge(name, AGENT, TRUST_IN_SUBAGENTS)
            self._subagents[agent_id] = made
        return self._subagents[agent_id]

    def _on_start(self, payload: Payload) -> Answer | None:
        facts = self._main.state.facts
        if _text(payload, "source") != "compact" or not facts.goal:
            return None
        told = f"Before the context was compacted, the user asked: {excerpt(facts.goal, 600)}"
        if facts.request and facts.request != facts.goal:
            told += f"\nThe user's newest request was: {excerpt(facts.request, 600)}"
        return _context("SessionStart", told)

    def _on_prompt(self, payload: Payload) -> None:
        prompt = _text(payload, "prompt")
        if not prompt.startswith(_NO_REQUEST):
            self._agent(payload).message("user", prompt)

    def _on_call(self, payload: Payload) -> Answer | None:
        agent, tool, arguments = self._agent(payload), _text(payload, "tool_name"), payload.get("tool_input")
        decision = agent.check(tool, arguments)
        if decision:
            agent.tool_call(tool, arguments, call=_text(payload, "tool_use_id") or None)
            return None
        return _denied(decision)

    def _on_result(self, payload: Payload) -> None:
        response = payload.get("tool_response")
        self._record_result(payload, result_of(response), error=False)
        if isinstance(response, Mapping) and isinstance(response.get("agentId"), str):
            # It was started before the client told by which prompt.
            subagent = self._agent({"agent_id": response["agentId"], "agent_type": _kind_of(payload)})
            if not subagent.state.facts.goal and _text(response, "prompt"):
                subagent.goal(_text(response, "prompt"))

    def _on_failure(self, payload: Payload) -> None:
        self._record_result(payload, _text(payload, "error"), error=True)

    def _on_denial(self, payload: Payload) -> None:
        reason = _text(payload, "reason") or "refused"
        self._record_result(payload, f"The call was not permitted: {reason}", error=True)

    def _record_result(self, payload: Payload, text: Any, *, error: bool) -> None:
        duration = payload.get("duration_ms")
        self._agent(payload).tool_result(
            text,
            error=error,
            duration_s=duration / 1e3 if isinstance(duration, int | float) and duration >= 0 else None,
            call=_text(payload, "tool_use_id") or None,
            tool=_text(payload, "tool_name") or None,
        )

    def _on_batch(self, payload: Payload) -> Answer | None:
        """Return what the agent is to know before its next step: the guidance, or why it stands badly."""
        agent = self._agent(payload)
        decision = agent.decide()
        text = decision.message if decision.kind in ("warn", "block") else ""
        if decision.guidance:
            text = decision.guidance.text
        if not text or text == self._last_text.get(agent.agent):
            return None
        self._last_text[agent.agent] = text
        if decision.guidance:
            agent.delivered(decision.guidance)
        return _context("PostToolBatch", text)

    def _on_subagent(self, payload: Payload) -> None:
        self._agent(payload)

    def _on_stop(self, payload: Payload) -> None:
        if "agent_type" in payload and not _text(payload, "agent_type"):
            return  # the end of a compaction
        agent, said = self._agent(payload), _text(payload, "last_assistant_message")
        if said:
            agent.message("assistant", said)
        agent.decide()

    def _on_stop_failure(self, payload: Payload) -> None:
        self._main.fault("model", _text(payload, "last_assistant_message") or _text(payload, "error") or "unknown")

    def _on_compaction(self, payload: Payload) -> None:
        self._main.compaction(_text(payload, "compact_summary"))

    def _on_end(self, payload: Payload) -> None:
        self.ended = True
        self.fleet.flush()


def _text(payload: Payload, name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _kind_of(payload: Payload) -> str:
    asked = payload.get("tool_input")
    return _text(asked, "subagent_type") if isinstance(asked, Mapping) else ""


def _context(event: str, text: str) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": excerpt(text, MAX_CONTEXT)}}


def _denied(decision: Decision) -> Answer:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": excerpt(f"coherence refused this call: {decision.message}", MAX_CONTEXT),
        }
    }
