"""One session of Gemini CLI: what its hooks and its transcript say becomes the life of an agent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from coherence.fleet.fleet import Fleet
from coherence.integrations.briefing import Briefing
from coherence.integrations.gemini.results import error_of, result_of
from coherence.integrations.gemini.transcript import Entry, Transcript, texts_in
from coherence.integrations.host_session import Answer, HostSession, Payload, context, count_of, denied_alone, text_of

_ADDED = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
"""Part of a prompt that hooks have added."""


class GeminiSession(HostSession):
    """Follow one session of Gemini CLI.

    Its subagents name themselves in no payload: their calls count as the session's.

    Examples
    --------
    >>> with Fleet(embedder=False) as fleet:
    ...     session = GeminiSession(fleet, "s1")
    ...     _ = session.handle({"hook_event_name": "BeforeAgent", "prompt": "List the files."})
    ...     command = {"command": "rm -rf /"}
    ...     asked = {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": command}
    ...     answer = session.handle(asked)
    >>> answer["decision"]
    'deny'
    """

    HOST = "gemini"

    def __init__(self, fleet: Fleet, session: str) -> None:
        super().__init__(fleet, session)
        self._briefing = Briefing(self.monitor)
        self._waiting: dict[str, str] = {}
        """Text of a hook as the transcript will show it -> the text."""
        self._transcript: Transcript | None = None
        self._newest = ""
        """Time of the newest event."""
        self._spoke = False
        """True if the transcript has told the model's words since the newest prompt."""
        self._asked: dict[str, list[str]] = {}
        """Call since the newest prompt -> ids of those equal to it that have no result yet."""
        self.handlers = {
            "SessionStart": self._on_start,
            "BeforeAgent": self._on_prompt,
            "BeforeTool": self._on_call,
            "AfterTool": self._on_result,
            "AfterAgent": self._on_answer,
            "SessionEnd": self._on_end,
        }

    def _catch_up(self, payload: Payload) -> None:
        """Record what the transcript says up to an event."""
        path, now = Path(text_of(payload, "transcript_path")), text_of(payload, "timestamp")
        self._newest = max(self._newest, now)
        if self._transcript is None and path.suffix == ".jsonl" and path.is_absolute():
            self._transcript = Transcript(path, since=now)
        record = {
            "text": self._on_words,
            "usage": self._on_usage,
            "call": self._on_ended_call,
            "context": self._on_shown,
            "compaction": self._on_compaction,
        }
        for entry in self._transcript.read(now) if self._transcript else ():
            record[entry.kind](entry)

    def _on_words(self, entry: Entry) -> None:
        self._spoke = True
        self.monitor.message("assistant", entry.value)

    def _on_usage(self, entry: Entry) -> None:
        tokens = entry.tokens or {}
        read, *written = (count_of(tokens, name) for name in ("input", "output", "thoughts"))
        known = [count for count in written if count is not None]
        self.monitor.usage(tokens_in=read, tokens_out=sum(known) if known else None, model=entry.value or None)

    def _on_ended_call(self, entry: Entry) -> None:
        """Record a call that no hook has told the end of: the user has said no to it, or there is no such tool."""
        found = entry.call or {}
        tool, arguments = text_of(found, "name"), found.get("args")
        open_calls = self._asked.get(_key(tool, arguments))
        if found.get("status") not in ("error", "cancelled") or open_calls == []:
            return
        id = open_calls.pop(0) if open_calls else self.monitor.tool_call(tool, arguments)
        said = "\n".join(texts_in(found.get("result")))
        self.monitor.tool_result(said or "The call was not made.", error=True, call=id, tool=tool or None)

    def _on_shown(self, entry: Entry) -> None:
        if entry.value in self._waiting:
            self._briefing.seen(self._waiting.pop(entry.value))

    def _on_compaction(self, entry: Entry) -> None:
        self._briefing.compacted(entry.value)

    def _on_start(self, payload: Payload) -> None:
        self._catch_up(payload)

    def _on_prompt(self, payload: Payload) -> None:
        self._catch_up(payload)
        self._asked.clear()
        self._spoke = False
        self.monitor.message("user", _ADDED.sub("", text_of(payload, "prompt")))

    def _on_call(self, payload: Payload) -> Answer | None:
        self._catch_up(payload)
        tool, arguments = text_of(payload, "tool_name"), payload.get("tool_input")
        open_calls = self._asked.setdefault(_key(tool, arguments), [])
        decision = self.monitor.check(tool, arguments)
        if decision or not self.steers:
            open_calls.append(self.monitor.tool_call(tool, arguments))
            return None
        return denied_alone(decision, self.monitor)

    def _on_result(self, payload: Payload) -> Answer | None:
        self._catch_up(payload)
        tool, response = text_of(payload, "tool_name"), payload.get("tool_response")
        open_calls = self._asked.setdefault(_key(tool, payload.get("tool_input")), [])
        result = result_of(tool, response)
        id = open_calls.pop(0) if open_calls else None
        self.monitor.tool_result(result.text, error=result.error, call=id, tool=tool or None)
        text = self._briefing.next()
        if not text:
            return None
        self._waiting[_shown(text)] = text
        if fault := error_of(response):
            # The client shows the model the error alone, and drops what a hook adds to it.
            return {"decision": "block", "reason": f"{fault}\n\n<hook_context>{_shown(text)}</hook_context>"}
        return context("AfterTool", text)

    def _on_answer(self, payload: Payload) -> None:
        self._catch_up(payload)
        if not self._spoke:
            self.monitor.message("assistant", text_of(payload, "prompt_response"))
        self.monitor.decide()

    def _on_end(self, payload: Payload) -> None:
        self._catch_up(payload)
        # The client does not wait for this hook: the session may have been resumed since.
        self.ended = text_of(payload, "timestamp") == self._newest
        self.fleet.flush()


def _key(tool: str, arguments: Any) -> str:
    return json.dumps([tool, arguments], sort_keys=True)


def _shown(text: str) -> str:
    """Return a text as the client puts it into the context."""
    return text.replace("<", "&lt;").replace(">", "&gt;")
