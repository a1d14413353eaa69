"""One agent that a host asks models and runs tools for: its monitor, its conversation, and what it is to be told."""

from __future__ import annotations

import asyncio
from typing import Any

from coherence.core.errors import CoherenceBlocked
from coherence.integrations.conversation import Answer, Conversation, Json, Refused, Result, Turn, Wire
from coherence.integrations.host_session import News, explained, refusal
from coherence.monitor.monitor import Monitor
from coherence.policy.budgets import is_budget

MAX_REFUSED = 1_000
"""Refused calls that are remembered; the oldest are forgotten."""


class Watch:
    """Record what an agent asks and does; refuse requests and calls; tell the agent what its decisions have for it.

    A host calls :meth:`asked`, then :meth:`ask`, sends the request, and calls :meth:`answered`. One that also runs the
    tools calls :meth:`refusal` before each call and :meth:`result` after it. Of all that, only :meth:`ask` raises.

    Parameters
    ----------
    monitor : Monitor
        Told of all that happens.
    guide : bool
        Adds to a request what the decision has for the agent.
    has_budget : bool, optional
        Have each request wait for a decision, as a budget needs it; default: if the monitor has a budget.
    found_by : str
        How a user gets the monitor, for messages.

    Examples
    --------
    >>> from coherence.integrations.openai_wire import ChatWire
    >>> chat = ChatWire()
    >>> with Monitor(goal="List the files.", embedder=False) as m:
    ...     watch = Watch(m)
    ...     turn = watch.asked(chat, {"messages": [{"role": "user", "content": "List the files."}]})
    ...     call = {"id": "1", "function": {"name": "bash", "arguments": '{"command": "rm -rf /"}'}}
    ...     watch.answered(chat.answer({"choices": [{"message": {"content": "I do.", "tool_calls": [call]}}]}), turn)
    ...     print(watch.refusal("1", "bash", {"command": "rm -rf /"}).partition(":")[0])
    coherence refused this call
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        guide: bool = False,
        has_budget: bool | None = None,
        found_by: str = "coherence.monitor_of(client)",
    ) -> None:
        self.monitor = monitor
        self.conversation = Conversation(monitor)
        self._news = News(monitor) if guide else None
        self._has_budget = monitor.state.budget is not None if has_budget is None else has_budget
        self._found_by = found_by
        self._untold = ""
        self._refused: dict[str, Refused] = {}
        self._known: dict[str, None] = {}
        self._early: dict[str, None] = {}

    @property
    def asks(self) -> bool:
        """Return True if a request waits for a decision."""
        return self._news is not None or self._has_budget

    @property
    def guides(self) -> bool:
        """Return True if the agent is told what its decisions have for it."""
        return self._news is not None

    def ask(self) -> str:
        """Return what the agent is to be told with its next request; raise CoherenceBlocked for a used-up budget."""
        if not self.asks:
            return ""
        if self._news is None:
            decision = self.monitor.decide()
        else:
            self._untold = self._news.now() or self._untold
            decision = self._news.decision
        if any(finding.acts == "block" and is_budget(finding.rule) for finding in decision.findings):
            raise self.blocked([Refused("", decision)])
        return self._untold

    async def aask(self) -> str:
        """Do what :meth:`ask` does in an event loop."""
        return await asyncio.to_thread(self.ask) if self.asks else ""

    def arrived(self, text: str) -> None:
        """Record that the agent was told a text."""
        if self._news is not None and text:
            self._news.seen(text)
            if self._untold == text:
                self._untold = ""

    def blocked(self, refused: list[Refused], what: str | None = None) -> CoherenceBlocked:
        """Return the exception for calls that must not run, or for a request that must not be sent.

        ``what`` says what has come of it; default: that nothing of the answer may run, or that nothing was sent.
        """
        decision = refused[0].decision
        tools = tuple(each.tool for each in refused if each.tool)
        told = " ".join(
            f"{each.tool}: {each.decision.message}" if each.tool else each.decision.message for each in refused
        )
        what = what or ("Do not run the calls of this answer" if tools else "The request was not sent")
        known = explained(decision, self.monitor) if self.monitor.store is not None else ""
        return CoherenceBlocked(f"{told} {what}. m is {self._found_by}{known}.", decision, tools)

    def asked(self, wire: Wire, body: Json) -> Turn:
        """Record what is new in a request."""
        try:
            return self.conversation.take(wire, body)
        except Exception as error:  # the host goes on
            self.monitor.fault("wrap", error)
            return Turn("")

    def answered(self, answer: Answer, turn: Turn) -> None:
        """Record an answer, and remember which of its calls must not run; waits for a measurement if it has calls.

        A call that was judged before, as a tool may run while an answer is still streamed, is not recorded again.
        """
        try:
            fresh = tuple(call for call in answer.calls if not self._was_early(call.id))
            answer = answer._replace(calls=fresh)
            refused = {each.call: each for each in self.conversation.answered(answer, turn)}
            for call in answer.calls:
                if call.id is not None:
                    self._keep(call.id, refused.get(call.id))
        except Exception as error:
            self.monitor.fault("wrap", error)

    async def aanswered(self, answer: Answer, turn: Turn) -> None:
        """Do what :meth:`answered` does in an event loop."""
        if answer.calls:
            await asyncio.to_thread(self.answered, answer, turn)
        else:
            self.answered(answer, turn)

    def judge(self, call: str | None, tool: str, arguments: Any) -> Refused | None:
        """Return the refusal of a call that must not run; ``None`` if it may.

        A call that no answer has told is checked and recorded now.
        """
        try:
            if call is not None and call in self._known:
                return self._refused.get(call)
            decision = self.monitor.check(tool, arguments)
            refused = None if decision else Refused(tool, decision, call)
            if refused is None:
                self.conversation.called(tool, arguments, call)
            if call is not None:
                self._keep(call, refused)
                self._early[call] = None
            return refused
        except Exception as error:
            self.monitor.fault("wrap", error)
            return None

    def runs(self, call: str, tool: str, arguments: Any) -> None:
        """Record a call that starts to run; one that was refused too, as not every host can hold each tool back."""
        try:
            if self._refused.pop(call, None) is not None:
                self.conversation.ran(tool, arguments, call)
        except Exception as error:
            self.monitor.fault("wrap", error)

    def abandoned(self) -> None:
        """Record that nobody waited for the answer to a request."""
        try:
            self.conversation.abandoned(Answer(""))
        except Exception as error:
            self.monitor.fault("wrap", error)

    def failed(self, error: BaseException) -> None:
        """Record that no answer came, or that a part of this package failed."""
        self.monitor.fault("model", f"{type(error).__name__}: {error}")

    def refusal(self, call: str | None, tool: str, arguments: Any) -> str:
        """Return why a call must not run, in words for the agent; empty if it may. As :meth:`judge`."""
        refused = self.judge(call, tool, arguments)
        return "" if refused is None else refusal(refused.decision, self.monitor)

    async def arefusal(self, call: str | None, tool: str, arguments: Any) -> str:
        """Do what :meth:`refusal` does in an event loop."""
        if call is not None and call in self._known:
            return self.refusal(call, tool, arguments)
        return await asyncio.to_thread(self.refusal, call, tool, arguments)

    def result(
        self,
        call: str | None,
        text: str,
        *,
        error: bool | None = None,
        tool: str | None = None,
        duration_s: float | None = None,
        error_type: str | None = None,
    ) -> None:
        """Record a call's result, once; without ``error``, the text tells if the call has failed."""
        try:
            self.conversation.came(Result(call, text, error, tool), duration_s=duration_s, error_type=error_type)
        except Exception as fault:
            self.monitor.fault("wrap", fault)

    def _keep(self, call: str, refused: Refused | None) -> None:
        """Remember a call that was judged; one that must not run has no result."""
        self._known[call] = None
        if refused is not None:
            self._refused[call] = refused
            self.conversation.refused(call)
        for kept in (self._known, self._refused, self._early):
            while len(kept) > MAX_REFUSED:
                del kept[next(iter(kept))]

    def _was_early(self, call: str | None) -> bool:
        if call is None or call not in self._early:
            return False
        del self._early[call]
        return True
