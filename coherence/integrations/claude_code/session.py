"""One session of Claude Code: what its hooks say becomes the life of agents, and decisions become answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from coherence.core.decisions import Decision
from coherence.core.readings import excerpt
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.agent import Agent
from coherence.integrations.claude_code.results import result_of
from coherence.integrations.host_session import Answer, HostSession, Payload, context, refusal, text_of
from coherence.monitor.monitor import Monitor

TRUST_IN_SUBAGENTS = 0.4
"""Weight of a subagent's pressure for the one that started it, to begin with."""

_NO_REQUEST = "<task-notification>"
"""Beginning of a prompt that the client writes itself, when a task in the background has ended."""

_FIELDS = (
    "agent_id agent_transcript_path agent_type background_tasks compact_summary context_tokens cwd duration_ms "
    "effort error estimated_cache_write_usd hook_event_name is_interrupt last_assistant_message model "
    "permission_mode prompt prompt_cache_likely_expired prompt_id reason seconds_since_last_response "
    "session_crons session_id source stop_hook_active tool_calls tool_input tool_name tool_response "
    "tool_use_id transcript_path trigger"
)
"""Fields of the payloads of 2.1.330."""


class ClaudeCodeSession(HostSession):
    """Follow one session of Claude Code.

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

    HOST = "claude-code"
    FIELDS = frozenset(_FIELDS.split())

    def __init__(self, fleet: Fleet, session: str) -> None:
        super().__init__(fleet, session)
        self._agents: dict[str, Agent] = {}
        """Id of a subagent, empty for the main agent -> the agent."""
        self.handlers = {
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

    def make_agent(self, name: str, **options: Any) -> Monitor:
        """Return the monitor of a new agent, which measures after each step as it is known from the transcript."""
        config = msgspec.structs.replace(self.fleet.config, tick="manual")
        return super().make_agent(name, config=config, **options)

    def close(self) -> None:
        """Record what waits for transcripts."""
        for agent in self._agents.values():
            agent.close()

    def _agent(self, payload: Payload) -> Agent:
        """Return the agent that an event is about."""
        agent_id = text_of(payload, "agent_id")
        if agent_id not in self._agents:
            path = Path(text_of(payload, "transcript_path"))
            transcript = path if path.suffix == ".jsonl" and path.is_absolute() else None
            if not agent_id:
                monitor = self.monitor
            else:
                if transcript is not None:
                    transcript = path.with_suffix("") / "subagents" / f"agent-{Path(agent_id).name}.jsonl"
                name = f"{self.HOST}/{text_of(payload, 'agent_type') or 'agent'}-{agent_id[:12]}"
                monitor = self.make_agent(name, parent=self.HOST)
                self.fleet.add_edge(name, self.HOST, TRUST_IN_SUBAGENTS)
            self._agents[agent_id] = Agent(monitor, transcript)
        return self._agents[agent_id]

    def _on_start(self, payload: Payload) -> Answer | None:
        if text_of(payload, "source") in ("startup", "clear"):
            self._agent(payload).begin()
        facts = self.monitor.state.facts
        if text_of(payload, "source") != "compact" or not facts.goal:
            return None
        told = f"Before the context was compacted, the user asked: {excerpt(facts.goal, 600)}"
        if facts.request and facts.request != facts.goal:
            told += f"\nThe user's newest request was: {excerpt(facts.request, 600)}"
        return context("SessionStart", told)

    def _on_prompt(self, payload: Payload) -> None:
        prompt = text_of(payload, "prompt")
        self._agent(payload).prompt(prompt, text_of(payload, "prompt_id"), counts=not prompt.startswith(_NO_REQUEST))

    def _on_call(self, payload: Payload) -> Answer | None:
        agent, tool, arguments = self._agent(payload), text_of(payload, "tool_name"), payload.get("tool_input")
        id = text_of(payload, "tool_use_id")
        agent.prepare(id)
        decision = agent.monitor.check(tool, arguments)
        if decision or not self.steers:
            agent.call(id, tool, arguments)
            return None
        agent.refuse(id, tool, arguments)
        return _denied(decision)

    def _on_result(self, payload: Payload) -> None:
        response = payload.get("tool_response")
        self._record_result(payload, result_of(response), error=False)
        if isinstance(response, Mapping) and isinstance(response.get("agentId"), str):
            # It was started before the client told by which prompt.
            subagent = self._agent({**payload, "agent_id": response["agentId"], "agent_type": _kind_of(payload)})
            if not subagent.monitor.state.facts.goal and text_of(response, "prompt"):
                subagent.prompt(text_of(response, "prompt"), text_of(payload, "prompt_id"))

    def _on_failure(self, payload: Payload) -> None:
        self._record_result(payload, text_of(payload, "error"), error=True)

    def _on_denial(self, payload: Payload) -> None:
        reason = text_of(payload, "reason") or "refused"
        self._record_result(payload, f"The call was not permitted: {reason}", error=True)

    def _record_result(self, payload: Payload, text: Any, *, error: bool) -> None:
        duration = payload.get("duration_ms")
        self._agent(payload).result(
            text_of(payload, "tool_use_id"),
            text_of(payload, "tool_name"),
            payload.get("tool_input"),
            text,
            error=error,
            duration_s=duration / 1e3 if isinstance(duration, int | float) and duration >= 0 else None,
        )

    def _on_batch(self, payload: Payload) -> Answer | None:
        agent, calls = self._agent(payload), payload.get("tool_calls")
        asked = [each for each in calls if isinstance(each, Mapping)] if isinstance(calls, list) else []
        agent.end_step({text_of(each, "tool_use_id"): each.get("tool_response") for each in asked})
        text = agent.news.next()
        return context("PostToolBatch", text) if text else None

    def _on_subagent(self, payload: Payload) -> None:
        self._agent(payload).begin()

    def _on_stop(self, payload: Payload) -> None:
        if "agent_type" in payload and not text_of(payload, "agent_type"):
            return  # the end of a compaction
        self._agent(payload).end_turn(text_of(payload, "last_assistant_message"))

    def _on_stop_failure(self, payload: Payload) -> None:
        said = text_of(payload, "last_assistant_message") or text_of(payload, "error")
        self.monitor.fault("model", said or "unknown")

    def _on_compaction(self, payload: Payload) -> None:
        self.monitor.compaction(text_of(payload, "compact_summary"))

    def _on_end(self, payload: Payload) -> None:
        self._agent(payload)  # so that its transcript is read, whatever hooks have told
        for agent in self._agents.values():
            agent.end_turn()
        self.ended = True
        self.fleet.flush()


def _kind_of(payload: Payload) -> str:
    asked = payload.get("tool_input")
    return text_of(asked, "subagent_type") if isinstance(asked, Mapping) else ""


def _denied(decision: Decision) -> Answer:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": refusal(decision),
        }
    }
