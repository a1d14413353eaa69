"""One session of Claude Code: what its hooks say becomes the life of agents, and decisions become answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from coherence.core.decisions import Decision, Guidance
from coherence.core.readings import excerpt
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.results import result_of
from coherence.integrations.claude_code.transcript_tail import Entry, TranscriptTail
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


class _Agent:
    """One agent of a session: its monitor, its transcript, and what it was told."""

    def __init__(self, monitor: Monitor, transcript: Path | None) -> None:
        self.monitor = monitor
        # What a session that goes on has written before was read then.
        self._tail = TranscriptTail(transcript, at_end=bool(monitor.events(1))) if transcript is not None else None
        self._usage: Entry | None = None
        """Tokens of the message that is being written: each of its parts repeats them, the last one knows best."""
        self._ahead: list[str] = []
        """Words that a hook has told before the transcript."""
        self._last_said = ""
        self._last_told = ""
        """Newest text for the agent: it is not told the same twice in a row."""
        self._undelivered: dict[str, Guidance] = {}

    def catch_up(self, until: Collection[str] | None = None) -> None:
        """Record what the transcript says, up to some calls."""
        for entry in self._tail.read(until) if self._tail is not None else ():
            if self._usage is not None and entry.kind != "context" and entry.message != self._usage.message:
                self._record_usage()
            if entry.kind == "usage":
                self._usage = entry
            elif entry.kind == "context" and (guidance := self._undelivered.pop(entry.value, None)) is not None:
                self.monitor.delivered(guidance)
            elif entry.kind == "text" and entry.value in self._ahead:
                self._ahead.remove(entry.value)
            elif entry.kind == "text":
                self._last_said = entry.value
                self.monitor.message(
                    "assistant", entry.value, model=entry.model or None, response_id=entry.message or None
                )
        if until is None:
            self._record_usage()

    def _record_usage(self) -> None:
        found, self._usage = self._usage, None
        if found is not None and found.usage is not None:
            tokens = found.usage.to_counters()
            self.monitor.usage(tokens_in=tokens.tokens_in, tokens_out=tokens.tokens_out, model=found.model or None)

    def say(self, text: str) -> None:
        """Record the agent's last words, unless the transcript has told them."""
        if text and text.strip() != self._last_said.strip():
            self._ahead.append(text)
            self.monitor.message("assistant", text)
        self._last_said = ""

    def news(self) -> str:
        """Return what the agent is to know before its next step, empty if it knows."""
        decision = self.monitor.decide()
        text = decision.message if decision.kind in ("warn", "block") else ""
        if decision.guidance:
            text = decision.guidance.text
        text = excerpt(text, MAX_CONTEXT)
        if not text or text == self._last_told:
            return ""
        self._last_told = text
        if decision.guidance:
            self._undelivered[text] = decision.guidance
        return text


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
        self._steers = True
        self.ended = False
        """True once the client has said that the session is over."""
        self._monitor = fleet.agent(AGENT, session=session, source="hook")
        self._agents: dict[str, _Agent] = {}
        """Id of a subagent, empty for the main agent -> the agent."""
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
        self._steers = steers
        handler = self._handlers.get(_text(payload, "hook_event_name"))
        answer = handler(payload) if handler is not None else None
        return answer if answer is not None and steers else {}

    def _agent(self, payload: Payload) -> _Agent:
        """Return the agent that an event is about."""
        agent_id = _text(payload, "agent_id")
        if agent_id not in self._agents:
            path = Path(_text(payload, "transcript_path"))
            transcript = path if path.suffix == ".jsonl" and path.is_absolute() else None
            if not agent_id:
                monitor = self._monitor
            else:
                if transcript is not None:
                    transcript = path.with_suffix("") / "subagents" / f"agent-{Path(agent_id).name}.jsonl"
                name = f"{AGENT}/{_text(payload, 'agent_type') or 'agent'}-{agent_id[:12]}"
                monitor = self.fleet.agent(name, parent=AGENT, session=self.session, source="hook")
                self.fleet.add_edge(name, AGENT, TRUST_IN_SUBAGENTS)
            self._agents[agent_id] = _Agent(monitor, transcript)
        return self._agents[agent_id]

    def _on_start(self, payload: Payload) -> Answer | None:
        facts = self._monitor.state.facts
        if _text(payload, "source") != "compact" or not facts.goal:
            return None
        told = f"Before the context was compacted, the user asked: {excerpt(facts.goal, 600)}"
        if facts.request and facts.request != facts.goal:
            told += f"\nThe user's newest request was: {excerpt(facts.request, 600)}"
        return _context("SessionStart", told)

    def _on_prompt(self, payload: Payload) -> None:
        prompt = _text(payload, "prompt")
        agent = self._agent(payload)
        agent.catch_up()
        if not prompt.startswith(_NO_REQUEST):
            agent.monitor.message("user", prompt)

    def _on_call(self, payload: Payload) -> Answer | None:
        agent, tool, arguments = self._agent(payload), _text(payload, "tool_name"), payload.get("tool_input")
        agent.catch_up({_text(payload, "tool_use_id")})
        decision = agent.monitor.check(tool, arguments)
        if decision or not self._steers:
            agent.monitor.tool_call(tool, arguments, call=_text(payload, "tool_use_id") or None)
            return None
        return _denied(decision)

    def _on_result(self, payload: Payload) -> None:
        response = payload.get("tool_response")
        self._record_result(payload, result_of(response), error=False)
        if isinstance(response, Mapping) and isinstance(response.get("agentId"), str):
            # It was started before the client told by which prompt.
            subagent = self._agent(
                {**payload, "agent_id": response["agentId"], "agent_type": _kind_of(payload)}
            ).monitor
            if not subagent.state.facts.goal and _text(response, "prompt"):
                subagent.goal(_text(response, "prompt"))

    def _on_failure(self, payload: Payload) -> None:
        self._record_result(payload, _text(payload, "error"), error=True)

    def _on_denial(self, payload: Payload) -> None:
        reason = _text(payload, "reason") or "refused"
        self._record_result(payload, f"The call was not permitted: {reason}", error=True)

    def _record_result(self, payload: Payload, text: Any, *, error: bool) -> None:
        duration, agent = payload.get("duration_ms"), self._agent(payload)
        agent.catch_up({_text(payload, "tool_use_id")})
        agent.monitor.tool_result(
            text,
            error=error,
            duration_s=duration / 1e3 if isinstance(duration, int | float) and duration >= 0 else None,
            call=_text(payload, "tool_use_id") or None,
            tool=_text(payload, "tool_name") or None,
        )

    def _on_batch(self, payload: Payload) -> Answer | None:
        agent, calls = self._agent(payload), payload.get("tool_calls")
        asked = [each for each in calls if isinstance(each, Mapping)] if isinstance(calls, list) else []
        agent.catch_up({_text(each, "tool_use_id") for each in asked})
        text = agent.news()
        return _context("PostToolBatch", text) if text else None

    def _on_subagent(self, payload: Payload) -> None:
        self._agent(payload)

    def _on_stop(self, payload: Payload) -> None:
        if "agent_type" in payload and not _text(payload, "agent_type"):
            return  # the end of a compaction
        agent = self._agent(payload)
        agent.catch_up()
        agent.say(_text(payload, "last_assistant_message"))
        agent.monitor.decide()

    def _on_stop_failure(self, payload: Payload) -> None:
        said = _text(payload, "last_assistant_message") or _text(payload, "error")
        self._monitor.fault("model", said or "unknown")

    def _on_compaction(self, payload: Payload) -> None:
        self._monitor.compaction(_text(payload, "compact_summary"))

    def _on_end(self, payload: Payload) -> None:
        for agent in self._agents.values():
            agent.catch_up()
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
    reason = decision.message.replace("m.unblock() lets it through", "the user can let it through: coherence unblock")
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": excerpt(f"coherence refused this call: {reason}", MAX_CONTEXT),
        }
    }
