"""One session of Claude Code: what its hooks say becomes the life of agents, and decisions become answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from coherence.core.decisions import Decision
from coherence.core.readings import excerpt
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.costs import CostFeed
from coherence.integrations.claude_code.happenings import NOTES, note_of
from coherence.integrations.claude_code.permissions import Questions, denial, refuses_all
from coherence.integrations.claude_code.prompts import is_command, unblock_reason
from coherence.integrations.claude_code.results import result_of
from coherence.integrations.claude_code.retention import measured, restated
from coherence.integrations.claude_code.subagents import Reports
from coherence.integrations.claude_code.transcript_tail import Entry, TranscriptTail
from coherence.integrations.daemon.control import ended_in_words, unblock_agents
from coherence.integrations.host_session import Answer, HostSession, News, Payload, context, has_past, text_of
from coherence.monitor.monitor import Monitor

TRUST_IN_SUBAGENTS = 0.4
"""Weight of a subagent's pressure for the one that started it, to begin with."""

REPEATED = 8
"""Newest calls among which one that is made again is looked for."""

_STOPPED = {
    True: "The user stopped this call.",
    False: "The user did not let this call run.",
    None: "The user stopped this call, or did not let it run.",
}
"""Whether a call had begun -> what is recorded as its result."""

_NO_REQUEST = "<task-notification>"
"""Beginning of a prompt that the client writes itself, when a task in the background has ended."""


class _Agent:
    """One agent of a session: its monitor, its transcript, and what it was told."""

    def __init__(self, monitor: Monitor, transcript: Path | None) -> None:
        self.monitor = monitor
        # What a session that goes on has written before was read then.
        self._tail = TranscriptTail(transcript, at_end=has_past(monitor)) if transcript is not None else None
        self._usage: Entry | None = None
        """Tokens of the message that is being written: each of its parts repeats them, the last one knows best."""
        self._ahead: list[str] = []
        """Words that a hook has told before the transcript."""
        self._last_said = ""
        self._model = ""
        """Model of the newest message."""
        self.news = News(monitor)
        self._calls: deque[bytes] = deque(maxlen=REPEATED)
        self._trouble = False
        self.questions = Questions(monitor)
        self.costs = CostFeed(monitor)

    def catch_up(self, until: Collection[str] | None = None) -> None:
        """Record what the transcript says, up to some calls."""
        for entry in self._tail.read(until) if self._tail is not None else ():
            if self._usage is not None and entry.kind != "context" and entry.message != self._usage.message:
                self._record_usage()
            if entry.kind == "usage":
                self._usage = entry
            elif entry.kind == "context":
                self.news.seen(entry.value)
            elif entry.kind in ("refusal", "interruption"):
                self._record_interruption(entry)
            elif entry.kind == "text" and entry.value in self._ahead:
                self._ahead.remove(entry.value)
            elif entry.kind == "text":
                self._last_said = entry.value
                self.monitor.message(
                    "assistant", entry.value, model=entry.model or None, response_id=entry.message or None
                )
        if until is None:
            self._record_usage()

    def _record_interruption(self, entry: Entry) -> None:
        """Record that the user stopped the agent: a call that they stopped has not failed."""
        if entry.kind == "interruption":
            self.monitor.note("the user interrupted the agent")
            return
        if entry.ran:
            self.questions.let_through(entry.value)
        elif entry.ran is False and self.questions.refused(entry.value):
            return
        if any(call.id == entry.value for call in self.monitor.state.facts.open_calls):
            self.monitor.tool_result(_STOPPED[entry.ran], call=entry.value)

    def _record_usage(self) -> None:
        found, self._usage = self._usage, None
        if found is not None and found.usage is not None:
            if self._model and found.model and found.model != self._model:
                self.monitor.note(f"the model changed from {self._model} to {found.model}")
            self._model = found.model or self._model
            tokens = found.usage.to_counters()
            self.monitor.usage(
                tokens_in=tokens.tokens_in,
                tokens_out=tokens.tokens_out,
                tokens_cached=found.usage.cache_read_input_tokens,
                cost_usd=self.costs.take(),
                model=found.model or None,
            )

    @property
    def troubled(self) -> bool:
        """True if something of this step has failed or was done before, or the newest decision was no plain yes.

        Only then a hook waits for the step to be measured: what there is to tell must be told before the next call.
        """
        return self._trouble or self.news.decision.kind != "continue"

    def note_call(self, tool: str, arguments: object) -> None:
        """Remember a call; one that was made before is trouble."""
        call = blake2b(msgspec.json.encode((tool, arguments)), digest_size=8).digest()
        self._trouble |= call in self._calls
        self._calls.append(call)

    def note_trouble(self) -> None:
        """Remember that a call of this step has failed, or a subagent of it."""
        self._trouble = True

    def end_step(self) -> str:
        """Return what the agent is to know before its next call, as far as it is measured."""
        told = self.news.now() if self.troubled else self.news.next()
        self.news.measure()
        self._trouble = False
        return told

    def say(self, text: str) -> None:
        """Record the agent's last words, unless the transcript has told them."""
        if text and text.strip() != self._last_said.strip():
            self._ahead.append(text)
            self.monitor.message("assistant", text)
        self._last_said = ""


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

    def __init__(self, fleet: Fleet, session: str) -> None:
        super().__init__(fleet, session)
        self._agents: dict[str, _Agent] = {}
        """Id of a subagent, empty for the main agent -> the agent."""
        self._schedules_unblocking = False
        """True while the client will enter in the person's place what ends a block."""
        self._reports = Reports()
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

    def _agent(self, payload: Payload) -> _Agent:
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
                monitor = self.fleet.agent(name, parent=self.HOST, session=self.session, source="hook")
                self.fleet.add_edge(name, self.HOST, TRUST_IN_SUBAGENTS)
            self._agents[agent_id] = _Agent(monitor, transcript)
        return self._agents[agent_id]

    def _on_happening(self, payload: Payload) -> None:
        if text := note_of(payload):
            self.monitor.note(text)

    def _on_start(self, payload: Payload) -> Answer | None:
        self._on_happening(payload)
        facts, source = self.monitor.state.facts, text_of(payload, "source")
        self._is_cleared = source == "clear"
        if source != "compact" or not facts.goal:
            return None
        told = f"Before the context was compacted, the user asked: {excerpt(facts.goal, 600)}"
        if facts.request and facts.request != facts.goal:
            told += f"\nThe user's newest request was: {excerpt(facts.request, 600)}"
        return context("SessionStart", told + restated(self._forbidden(), told))

    def _forbidden(self) -> list[str]:
        """Return the sentences by which the user has forbidden something that is still forbidden, oldest first."""
        standing = self.monitor.state.forbidden.data.standing
        return list(dict.fromkeys(each.sentence for each in standing))

    def _on_prompt(self, payload: Payload) -> Answer | None:
        prompt = text_of(payload, "prompt")
        agent = self._agent(payload)
        agent.catch_up()
        reason = unblock_reason(prompt)
        if reason is not None:
            return self._unblock(reason)
        if prompt.startswith(_NO_REQUEST):
            told = self._reports.take()  # a subagent in the background has ended
            return context("UserPromptSubmit", told) if told else None
        if is_command(prompt):
            return None
        if self._is_cleared and prompt.strip():
            agent.monitor.goal(prompt)
        self._is_cleared = False
        agent.monitor.message("user", prompt)
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
        agent.catch_up({text_of(payload, "tool_use_id")})
        decision = agent.monitor.check(tool, arguments, wait=agent.troubled)
        self._stand(payload, decision)
        if decision or not self.steers:
            agent.note_call(tool, arguments)
            agent.monitor.tool_call(tool, arguments, call=text_of(payload, "tool_use_id") or None)
            told = agent.news.next()
            return context("PreToolUse", told) if told else None
        return agent.questions.answer(payload, decision)

    def _stand(self, payload: Payload, decision: Decision) -> None:
        """Note whether an agent is refused every call from now on."""
        if self.steers:
            answer = denial(decision) if refuses_all(decision, self.fleet.config) else None
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
            subagent = self._agent(
                {**payload, "agent_id": response["agentId"], "agent_type": _kind_of(payload)}
            ).monitor
            if not subagent.state.facts.goal and text_of(response, "prompt"):
                subagent.goal(text_of(response, "prompt"))

    def _on_failure(self, payload: Payload) -> Answer | None:
        if payload.get("is_interrupt") is True:
            self._record_result(payload, _STOPPED[True], error=False)
            return None
        self._record_result(payload, text_of(payload, "error"), error=True)
        text = self._agent(payload).news.lesson()
        return context("PostToolUseFailure", text) if text else None

    def _on_denial(self, payload: Payload) -> None:
        reason = text_of(payload, "reason") or "refused"
        self._record_result(payload, f"The call was not permitted: {reason}", error=True, ran=False)

    def _record_result(self, payload: Payload, text: Any, *, error: bool, ran: bool = True) -> None:
        duration, agent = payload.get("duration_ms"), self._agent(payload)
        agent.catch_up({text_of(payload, "tool_use_id")})
        if error:
            agent.note_trouble()
        if ran:
            agent.questions.let_through(text_of(payload, "tool_use_id"))
        agent.monitor.tool_result(
            text,
            error=error,
            duration_s=duration / 1e3 if isinstance(duration, int | float) and duration >= 0 else None,
            call=text_of(payload, "tool_use_id") or None,
            tool=text_of(payload, "tool_name") or None,
        )

    def _on_batch(self, payload: Payload) -> Answer | None:
        agent, calls = self._agent(payload), payload.get("tool_calls")
        asked = [each for each in calls if isinstance(each, Mapping)] if isinstance(calls, list) else []
        agent.catch_up({text_of(each, "tool_use_id") for each in asked})
        text = self._reports.take() if agent.monitor is self.monitor else ""
        text = text or agent.end_step()
        self._stand(payload, agent.news.decision)
        return context("PostToolBatch", text) if text else None

    def _on_subagent(self, payload: Payload) -> None:
        self._agent(payload)

    def _on_stop(self, payload: Payload) -> None:
        if "agent_type" in payload and not text_of(payload, "agent_type"):
            return  # the end of a compaction
        if isinstance(scheduled := payload.get("session_crons"), list):
            prompts = (text_of(each, "prompt") for each in scheduled if isinstance(each, Mapping))
            self._schedules_unblocking = any(unblock_reason(prompt) is not None for prompt in prompts)
        agent = self._agent(payload)
        agent.catch_up()
        agent.say(text_of(payload, "last_assistant_message"))
        if agent.monitor is not self.monitor:
            self._reports.ended(agent.monitor.agent.partition("/")[2], agent.monitor)
        self._stand(payload, agent.monitor.decide())

    def _on_stop_failure(self, payload: Payload) -> None:
        said = text_of(payload, "last_assistant_message") or text_of(payload, "error")
        self.monitor.fault("model", said or "unknown")

    def _on_full_context(self, payload: Payload) -> None:
        self._agent(payload).catch_up()  # what was said before belongs before the compaction

    def _on_compaction(self, payload: Payload) -> None:
        summary = text_of(payload, "compact_summary")
        self.monitor.compaction(summary)
        if text := measured(self._forbidden(), summary):
            self.monitor.note(text)

    def _on_end(self, payload: Payload) -> None:
        for agent in self._agents.values():
            agent.catch_up()
            if agent.costs.waiting:
                agent.monitor.usage(cost_usd=agent.costs.take())
        self.ended = True
        self.fleet.flush()


def _kind_of(payload: Payload) -> str:
    asked = payload.get("tool_input")
    return text_of(asked, "subagent_type") if isinstance(asked, Mapping) else ""
