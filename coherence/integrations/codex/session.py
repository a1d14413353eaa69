"""One session of Codex CLI: what its hooks and its rollouts say becomes the life of agents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coherence.fleet.fleet import Fleet
from coherence.integrations.added_lines import AddedLines
from coherence.integrations.codex.rollout import Entry, Kind, entries_of
from coherence.integrations.host_session import (
    Answer,
    HostSession,
    News,
    Payload,
    context,
    denied,
    has_past,
    requests_again,
    text_of,
)
from coherence.monitor.monitor import Monitor

_RUNS_ON = "Process running with session ID"
"""Words in the output of a command that goes on in the background: a hook tells its end."""

_NOT_MADE = ("unsupported call: ", "write_stdin failed")
"""Beginnings of the outputs of calls that no hook tells of and that were not carried out."""

_BEGINNINGS = ("SessionStart", "SubagentStart", "UserPromptSubmit")
"""Events that come before anything of a turn has happened."""

_BAD = ("failed", "declined")
"""Outcomes of calls that count as failed."""


class _Agent:
    """One agent of a session: its monitor, its rollout, and what it was told."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.news = News(monitor)
        self._rollout: AddedLines | None = None
        self._waiting: list[Entry] = []
        """Entries of the rollout that are later than the newest event."""
        self._begun = False
        """True once it is known where the agent's own turns begin."""
        self._model = ""
        self._hooked: dict[str, str] = {}
        """Id of a call that a hook has told -> its tool, which the rollout may have another name for."""
        self._asked: dict[str, Entry] = {}
        """Id of a call without an output yet -> the call, as the rollout has it."""
        self._ended: set[str] = set()
        """Ids of calls whose result is recorded, or that were refused."""
        self._outcomes: dict[str, str] = {}
        """Id of a call -> how it ended."""
        self._open: set[str] = set()
        """Ids of calls of this step that have no result yet."""
        self._answered = False
        """True once a call of this step has its result."""
        self._last_said = ""
        self.compacted = False
        """True once the rollout has told of the compaction that goes on."""

    def follow(self, payload: Payload) -> None:
        """Take from a payload what it says of each event, and read on in the rollout."""
        self._model = text_of(payload, "model") or self._model
        path, turn = Path(text_of(payload, "transcript_path")), text_of(payload, "turn_id")
        if self._rollout is None and path.suffix == ".jsonl" and path.is_absolute():
            # In the middle of a turn, another daemon has recorded what was written before.
            begins = text_of(payload, "hook_event_name") in _BEGINNINGS and text_of(payload, "source") != "compact"
            self._begun = not begins and has_past(self.monitor)
            self._rollout = AddedLines(path, at_end=self._begun)
        for line in self._rollout.read() if self._rollout is not None else ():
            self._waiting += entries_of(line)
        if turn and not self._begun:
            # A rollout begins with earlier turns, also with those of the session that it goes on from.
            at = self._find("turn", turn)
            self._waiting = self._waiting[at:] if at >= 0 else []
            self._begun = True

    def _find(self, kind: Kind, id: str = "") -> int:
        """Return the place of the first entry of a kind, -1 if there is none."""
        return next((at for at, each in enumerate(self._waiting) if each.kind == kind and id in ("", each.id)), -1)

    def catch_up(self, kind: Kind, id: str = "") -> None:
        """Record what the rollout says up to an entry; nothing if it has none such."""
        self._record(self._find(kind, id) + 1)

    def catch_up_turn(self, turn: str) -> None:
        """Record what the rollout says up to the end of a turn, or all where none is named."""
        own = self._find("turn", turn) if turn else len(self._waiting)
        later = (at for at, each in enumerate(self._waiting) if at > own and each.kind == "turn")
        self._record(next(later, len(self._waiting)))

    def _record(self, end: int) -> None:
        record: dict[Kind, Callable[[Entry], object]] = {
            "turn": lambda _: None,
            "text": self._on_words,
            "usage": self._on_usage,
            "call": self._on_asked,
            "outcome": self._on_outcome,
            "output": self._on_output,
            "context": self._on_shown,
            "compaction": self._on_compaction,
            "fault": self._on_fault,
        }
        found, self._waiting = self._waiting[:end], self._waiting[end:]
        summaries = [entry.value for entry in found if entry.kind == "compaction"]
        for entry in found:
            if entry.kind != "text" or entry.value not in summaries:  # which the model has written for itself
                record[entry.kind](entry)

    def _on_words(self, entry: Entry) -> None:
        self._last_said = entry.value
        self.monitor.message("assistant", entry.value, model=self._model or None, response_id=entry.id or None)

    def _on_usage(self, entry: Entry) -> None:
        self.monitor.usage(tokens_in=entry.tokens_in, tokens_out=entry.tokens_out, model=self._model or None)

    def _on_asked(self, entry: Entry) -> None:
        self._asked[entry.id] = entry

    def _on_outcome(self, entry: Entry) -> None:
        self._outcomes[entry.id] = entry.value

    def _on_output(self, entry: Entry) -> None:
        """Record the result of a call that no hook has told the end of."""
        asked = self._asked.pop(entry.id, None)
        if asked is None or entry.id in self._ended:
            return
        if entry.id not in self._hooked:
            failed = entry.value.startswith(_NOT_MADE) or self._outcomes.get(entry.id) in _BAD
            self.monitor.tool_call(asked.value, asked.arguments, call=entry.id)
        elif _RUNS_ON in entry.value:
            return
        else:
            # A tool that fails ends without a hook, and with nothing that was carried out.
            failed = self._outcomes.get(entry.id) != "completed"
        self._end(entry.id, self._hooked.get(entry.id, asked.value), entry.value, failed=failed)

    def _on_shown(self, entry: Entry) -> None:
        self.news.seen(entry.value)

    def _on_compaction(self, entry: Entry) -> None:
        self.compacted = True
        self.monitor.compaction(entry.value)

    def _on_fault(self, entry: Entry) -> None:
        self.monitor.fault("model", entry.value)

    def call(self, tool: str, arguments: Any, id: str) -> None:
        """Record that a tool is called."""
        if self._answered:
            self._open.clear()
            self._answered = False
        if id not in self._ended:  # else the rollout has told it before a hook that came late
            self._open.add(id)
            self._hooked[id] = tool
            self.monitor.tool_call(tool, arguments, call=id or None)

    def refuse(self, id: str) -> None:
        """Pass over what the rollout will say of a call that was refused."""
        if id:
            self._ended.add(id)

    def result(self, tool: str, response: Any, id: str) -> bool:
        """Record the result of a call; return whether the step is over."""
        if id not in self._ended:
            self._end(id, tool, response, failed=self._outcomes.get(id) in _BAD)
        return not self._open

    def _end(self, id: str, tool: str, response: Any, *, failed: bool) -> None:
        if id:
            self._ended.add(id)
        self._open.discard(id)
        self._answered = True
        self._outcomes.pop(id, None)
        self.monitor.tool_result(response, error=failed, call=id or None, tool=tool or None)

    def say(self, text: str) -> None:
        """Record the agent's last words, unless the rollout has told them."""
        if text and text.strip() != self._last_said.strip():
            self.monitor.message("assistant", text, model=self._model or None)
        self._last_said = ""


class CodexSession(HostSession):
    """Follow one session of Codex CLI.

    Examples
    --------
    >>> with Fleet(embedder=False) as fleet:
    ...     session = CodexSession(fleet, "s1")
    ...     _ = session.handle({"hook_event_name": "UserPromptSubmit", "prompt": "List the files."})
    ...     asked = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
    ...     answer = session.handle(asked)
    >>> answer["hookSpecificOutput"]["permissionDecision"]
    'deny'
    """

    HOST = "codex"

    def __init__(self, fleet: Fleet, session: str) -> None:
        super().__init__(fleet, session)
        self._agents: dict[str, _Agent] = {}
        """Id of a subagent, empty for the main agent -> the agent."""
        self.handlers = {
            "SessionStart": self._on_start,
            "UserPromptSubmit": self._on_prompt,
            "PreToolUse": self._on_call,
            "PostToolUse": self._on_result,
            "SubagentStart": self._on_subagent,
            "SubagentStop": self._on_stop,
            "PostCompact": self._on_compaction,
            "Stop": self._on_stop,
            "SessionEnd": self._on_end,
        }

    def _agent(self, payload: Payload) -> _Agent:
        """Return the agent that an event is about."""
        agent_id = text_of(payload, "agent_id")
        if agent_id not in self._agents:
            self._agents[agent_id] = _Agent(self.monitor_of(payload))
        self._agents[agent_id].follow(payload)
        return self._agents[agent_id]

    def _on_start(self, payload: Payload) -> Answer | None:
        agent = self._agent(payload)
        if text_of(payload, "source") != "compact":
            return None
        agent.catch_up("compaction")
        told = requests_again(agent.monitor)
        return context("SessionStart", told) if told else None

    def _on_prompt(self, payload: Payload) -> None:
        agent = self._agent(payload)
        agent.catch_up("turn", text_of(payload, "turn_id"))
        agent.monitor.message("user", text_of(payload, "prompt"))

    def _on_call(self, payload: Payload) -> Answer | None:
        agent, tool, arguments = self._agent(payload), text_of(payload, "tool_name"), payload.get("tool_input")
        id = text_of(payload, "tool_use_id")
        agent.catch_up("call", id)
        decision = agent.monitor.check(tool, arguments)
        if decision or not self.steers:
            agent.call(tool, arguments, id)
            return None
        agent.refuse(id)
        return denied(decision, agent.monitor)

    def _on_result(self, payload: Payload) -> Answer | None:
        agent = self._agent(payload)
        tool, id = text_of(payload, "tool_name"), text_of(payload, "tool_use_id")
        agent.catch_up("outcome", id)
        if not agent.result(tool, payload.get("tool_response"), id):
            return None
        text = agent.news.now()
        return context("PostToolUse", text) if text else None

    def _on_subagent(self, payload: Payload) -> None:
        self._agent(payload)

    def _on_stop(self, payload: Payload) -> None:
        # The rollout that the end of a subagent names is that of the agent which started it.
        own = text_of(payload, "agent_transcript_path")
        agent = self._agent({**payload, "transcript_path": own} if own else payload)
        agent.catch_up_turn(text_of(payload, "turn_id"))
        agent.say(text_of(payload, "last_assistant_message"))
        agent.monitor.decide()

    def _on_compaction(self, payload: Payload) -> None:
        agent = self._agent(payload)
        agent.catch_up("compaction")
        if not agent.compacted:
            agent.monitor.compaction()
        agent.compacted = False

    def _on_end(self, payload: Payload) -> None:
        self._agent(payload)
        for agent in self._agents.values():
            agent.catch_up_turn("")
        self.ended = True
        self.fleet.flush()
