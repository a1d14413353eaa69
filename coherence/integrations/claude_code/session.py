"""One session of Claude Code: what its hooks say becomes the life of agents, and decisions become answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from coherence.core.decisions import Decision
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.agent import STOPPED, Agent
from coherence.integrations.claude_code.happenings import NOTES, note_of
from coherence.integrations.claude_code.permissions import denial, refuses_all
from coherence.integrations.claude_code.prompts import is_command, unblock_reason
from coherence.integrations.claude_code.results import result_of
from coherence.integrations.claude_code.retention import measured, restated
from coherence.integrations.claude_code.subagents import Reports
from coherence.integrations.daemon.control import ended_in_words, unblock_agents
from coherence.integrations.host_session import (
    TRUST_IN_SUBAGENTS,
    Answer,
    HostSession,
    Payload,
    context,
    requests_again,
    text_of,
)
from coherence.monitor.monitor import Monitor

_NO_REQUEST = "<task-notification>"
"""Beginning of a prompt that the client writes itself, when a task in the background has ended."""


_FIELDS = (
    "agent_id agent_transcript_path agent_type background_tasks compact_summary context_tokens custom_instructions cwd "
    "duration_ms effort error estimated_cache_write_usd file_path hook_event_name is_interrupt last_assistant_message "
    "mcp_server message model notification_type permission_mode permission_suggestions prompt "
    "prompt_cache_likely_expired prompt_id reason seconds_since_last_response session_crons session_id source "
    "stop_hook_active title tool_calls tool_input tool_name tool_response tool_use_id transcript_path trigger"
)
"""Fields of the payloads of 2.1.330, and of those of MCP tools."""


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
    CARRIERS = frozenset(("SessionStart", "PostToolBatch"))
    FIELDS = frozenset(_FIELDS.split())
    LAG_S: ClassVar[float] = 0.0
    """Seconds for which a call waits for its message in the transcript; hooks that are processes come late enough."""

    def __init__(self, fleet: Fleet, session: str) -> None:
        super().__init__(fleet, session)
        self._agents: dict[str, Agent] = {}
        """Id of a subagent, empty for the main agent -> the agent."""
        self._schedules_unblocking = False
        """True while the client will enter in the person's place what ends a block."""
        self._reports = Reports()
        self._stood: dict[str, int] = {}
        """Id of a subagent, empty for the main agent -> number of its newest decision that was looked at."""
        self._is_cleared = False
        """True from when the user has cleared the conversation to their next request."""
        self.handlers = {
            "UserPromptSubmit": self._on_prompt,
            "PreToolUse": self._on_call,
            "PostToolUse": self._on_result,
            "PostToolUseFailure": self._on_failure,
            "PostToolBatch": self._on_batch,
            "PermissionDenied": self._on_denial,
            **dict.fromkeys(NOTES, self._on_happening),
            "SubagentStart": self._on_subagent,
            "SubagentStop": self._on_stop,
            "Stop": self._on_stop,
            "StopFailure": self._on_stop_failure,
            "PreCompact": self._on_full_context,
            "PostCompact": self._on_compaction,
            "SessionStart": self._on_start,
            "SessionEnd": self._on_end,
        }

    def make_agent(self, name: str, **options: Any) -> Monitor:
        """Return the monitor of a new agent, which measures after each step as it is known from the transcript."""
        config = msgspec.structs.replace(self.fleet.config, tick="manual")
        return super().make_agent(name, config=config, **options)

    def close(self) -> None:
        """Record what waits for transcripts, and note where every call is refused."""
        for agent_id, agent in self._agents.items():
            agent.close()
            result = agent.monitor.result
            if result is not None and result.decision.seq > self._stood.get(agent_id, 0):
                self._stand({"agent_id": agent_id}, result.decision)

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
            self._agents[agent_id] = Agent(monitor, transcript, lag_s=self.LAG_S)
        return self._agents[agent_id]

    def _on_happening(self, payload: Payload) -> None:
        if text := note_of(payload):
            self.monitor.note(text)

    def _on_start(self, payload: Payload) -> Answer | None:
        self._on_happening(payload)
        if text_of(payload, "source") in ("startup", "clear"):
            self._agent(payload).begin()
        self._is_cleared = text_of(payload, "source") == "clear"
        told = requests_again(self.monitor) if text_of(payload, "source") == "compact" else ""
        return context("SessionStart", told + restated(self._forbidden(), told)) if told else None

    def _forbidden(self) -> list[str]:
        """Return the sentences by which the user has forbidden something that is still forbidden, oldest first."""
        standing = self.monitor.state.forbidden.data.standing
        return list(dict.fromkeys(each.sentence for each in standing))

    def _on_prompt(self, payload: Payload) -> Answer | None:
        prompt = text_of(payload, "prompt")
        counts = not is_command(prompt) and not prompt.startswith(_NO_REQUEST)
        self._agent(payload).prompt(prompt, text_of(payload, "prompt_id"), counts=counts, anew=self._is_cleared)
        self._is_cleared &= not counts
        reason = unblock_reason(prompt)
        if reason is not None:
            return self._unblock(reason)
        if prompt.startswith(_NO_REQUEST):
            told = self._reports.take()  # a subagent in the background has ended
            return context("UserPromptSubmit", told) if told else None
        return None

    def _unblock(self, reason: str) -> Answer:
        """End what blocks the agents, as the person asks, and tell both."""
        if self._schedules_unblocking:
            return {"systemMessage": "coherence: no block was ended, since an agent may have scheduled this prompt"}
        ended = unblock_agents(self.fleet, None, reason)
        self.unblocked = True
        told = "; ".join(map(ended_in_words, ended)) or "no agent is blocked"
        return {
            "systemMessage": f"coherence: {told}",
            **context("UserPromptSubmit", f"coherence, asked by the user to end a block: {told}"),
        }

    def _on_call(self, payload: Payload) -> Answer | None:
        agent, tool, arguments = self._agent(payload), text_of(payload, "tool_name"), payload.get("tool_input")
        id = text_of(payload, "tool_use_id")
        agent.prepare(id)
        decision = agent.monitor.check(tool, arguments, wait=agent.troubled)
        self._stand(payload, decision)
        if decision.kind != "continue":
            agent.note_trouble()
        if decision or not self.steers:
            agent.note_call(tool, arguments)
            agent.call(id, tool, arguments)
            told = agent.news.next()
            return context("PreToolUse", told) if told else None
        agent.refuse(id, tool, arguments)
        return agent.questions.answer(payload, decision)

    def _stand(self, payload: Payload, decision: Decision) -> None:
        """Note whether an agent is refused every call from now on."""
        self._stood[text_of(payload, "agent_id")] = decision.seq
        if self.steers:
            monitor = self._agent(payload).monitor
            answer = denial(decision, monitor) if refuses_all(decision, self.fleet.config) else None
            self.standing[("PreToolUse", text_of(payload, "agent_id"))] = answer

    def feed(self, told: Payload) -> None:
        """Take in what the client tells its status line: cost and context of the session."""
        if "" in self._agents:
            self._agents[""].costs.feed(told)

    def figures(self) -> tuple[float, float | None]:
        """Return the cost that is not recorded yet, and the share of the context that is used."""
        costs = self._agents[""].costs if "" in self._agents else None
        return (costs.waiting, costs.context_percent) if costs is not None else (0.0, None)

    def _on_result(self, payload: Payload) -> None:
        response = payload.get("tool_response")
        self._record_result(payload, result_of(response), error=False)
        if isinstance(response, Mapping) and isinstance(response.get("agentId"), str):
            # It was started before the client told by which prompt.
            subagent = self._agent({**payload, "agent_id": response["agentId"], "agent_type": _kind_of(payload)})
            if not subagent.monitor.state.facts.goal and text_of(response, "prompt"):
                subagent.prompt(text_of(response, "prompt"), text_of(payload, "prompt_id"))

    def _on_failure(self, payload: Payload) -> None:
        if payload.get("is_interrupt") is True:
            self._record_result(payload, STOPPED, error=False)
        else:
            self._record_result(payload, text_of(payload, "error"), error=True)

    def _on_denial(self, payload: Payload) -> None:
        reason = text_of(payload, "reason") or "refused"
        self._record_result(payload, f"The call was not permitted: {reason}", error=True, ran=False)

    def _record_result(self, payload: Payload, text: Any, *, error: bool, ran: bool = True) -> None:
        duration, agent = payload.get("duration_ms"), self._agent(payload)
        if error:
            agent.note_trouble()
        agent.result(
            text_of(payload, "tool_use_id"),
            text_of(payload, "tool_name"),
            payload.get("tool_input"),
            text,
            error=error,
            duration_s=duration / 1e3 if isinstance(duration, int | float) and duration >= 0 else None,
            ran=ran,
        )

    def _on_batch(self, payload: Payload) -> Answer | None:
        agent, calls = self._agent(payload), payload.get("tool_calls")
        asked = [each for each in calls if isinstance(each, Mapping)] if isinstance(calls, list) else []
        agent.end_step({text_of(each, "tool_use_id"): each.get("tool_response") for each in asked})
        text = self._reports.take() if agent.monitor is self.monitor else ""
        text = text or agent.tell()
        self._stand(payload, agent.news.decision)
        return context("PostToolBatch", text) if text else None

    def _on_subagent(self, payload: Payload) -> None:
        self._agent(payload).begin()

    def _on_stop(self, payload: Payload) -> None:
        if "agent_type" in payload and not text_of(payload, "agent_type"):
            return  # the end of a compaction
        if isinstance(scheduled := payload.get("session_crons"), list):
            prompts = (text_of(each, "prompt") for each in scheduled if isinstance(each, Mapping))
            self._schedules_unblocking = any(unblock_reason(prompt) is not None for prompt in prompts)
        agent = self._agent(payload)
        agent.end_turn(text_of(payload, "last_assistant_message"))
        if agent.monitor is not self.monitor:
            self._reports.ended(agent.monitor.agent.partition("/")[2], agent.monitor)
        self._stand(payload, agent.monitor.decide())

    def _on_stop_failure(self, payload: Payload) -> None:
        said = text_of(payload, "last_assistant_message") or text_of(payload, "error")
        self.monitor.fault("model", said or "unknown")

    def _on_full_context(self, payload: Payload) -> None:
        self._agent(payload).catch_up(to_compaction=True)  # what was said before belongs before the compaction

    def _on_compaction(self, payload: Payload) -> None:
        summary = text_of(payload, "compact_summary")
        self.monitor.compaction(summary)
        self._agent(payload).note_trouble()  # what it has cost is told after the next step
        if text := measured(self._forbidden(), summary):
            self.monitor.note(text)

    def _on_end(self, payload: Payload) -> None:
        self._agent(payload)  # so that its transcript is read, whatever hooks have told
        for agent in self._agents.values():
            agent.catch_up()
            if agent.costs.waiting:
                agent.monitor.usage(cost_usd=agent.costs.take())
        self.ended = True
        self.fleet.flush()


def _kind_of(payload: Payload) -> str:
    asked = payload.get("tool_input")
    return text_of(asked, "subagent_type") if isinstance(asked, Mapping) else ""
