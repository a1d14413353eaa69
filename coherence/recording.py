"""The methods that record what happens to an agent."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, get_args

import msgspec

import coherence.events as events
from coherence.events import Event
from coherence.plain import check_count, check_flag, check_number, check_text, to_json
from coherence.records import one_line


class Recording(ABC):
    """Check what is told, make an event of it, and hand it on."""

    def __init__(self) -> None:
        self._calls = itertools.count(1)
        self._call_prefix = f"call-{os.urandom(3).hex()}-"

    @abstractmethod
    def _record(self, make: Callable[[], Event]) -> None:
        """Take the event that ``make`` returns; what it raises is the caller's fault."""

    def goal(self, text: str) -> None:
        """Set what the agent is asked to do from now on."""
        self._record(lambda: events.Goal(check_text("text", text, empty=False)))

    def message(
        self,
        role: events.Role,
        text: str,
        *,
        model: str | None = None,
        response_id: str | None = None,
        logprobs: Sequence[float] | None = None,
    ) -> None:
        """Record something said: a user's message begins a turn, an assistant's completes a step.

        Parameters
        ----------
        role : {"user", "assistant", "system", "tool"}
            Who speaks.
        text : str
            What was said; may be empty.
        model, response_id : str, optional
            As the provider names them.
        logprobs : sequence of float, optional
            Natural logarithms of the tokens' probabilities, 0 or below; a summary is kept.
        """

        def make() -> Event:
            if role not in get_args(events.Role):
                raise ValueError(f"role must be one of {', '.join(get_args(events.Role))}, not {role!r}")
            return events.Message(
                role,
                check_text("text", text),
                optional_text("model", model),
                optional_text("response_id", response_id),
                None if logprobs is None else events.summarise_logprobs(logprobs),
            )

        self._record(make)

    def tool_call(self, tool: str, arguments: Any = None, *, call: str | None = None) -> str:
        """Record that the agent calls a tool; return the call's id.

        Parameters
        ----------
        tool : str
            The tool's name.
        arguments : any
            A mapping mostly; what JSON does not know is recorded as text. It is copied.
        call : str, optional
            The host's own id; default: a new one.
        """
        call_id = call if isinstance(call, str) and call else f"{self._call_prefix}{next(self._calls)}"

        def make() -> Event:
            optional_text("call", call)
            name = check_text("tool", tool, empty=False)
            return events.ToolCall(name, msgspec.Raw(to_json("arguments", arguments)), call_id)

        self._record(make)
        return call_id

    def tool_result(
        self,
        text: str,
        *,
        error: bool = False,
        duration_s: float | None = None,
        call: str | None = None,
        tool: str | None = None,
        error_type: str | None = None,
    ) -> None:
        """Record what a tool answered; this completes a step.

        Parameters
        ----------
        text : str
            The result, or the error's text.
        error : bool
            Whether the call failed.
        duration_s : float, optional
            Seconds it took, 0 or more.
        call : str, optional
            Which call; default: the last one without a result.
        tool : str, optional
            The tool, where its call was not recorded.
        error_type : str, optional
            The error's class, such as ``timeout``.
        """

        def make() -> Event:
            if duration_s is not None:
                check_number("duration_s", duration_s, least=0.0)
            return events.ToolResult(
                check_text("text", text),
                check_flag("error", error),
                optional_text("call", call),
                optional_text("tool", tool),
                optional_text("error_type", error_type),
                duration_s,
            )

        self._record(make)

    def usage(
        self,
        *,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        cost_usd: float | None = None,
        model: str | None = None,
    ) -> None:
        """Record what one model call used up. ``None`` = unknown; a cost may follow from ``config.prices``."""

        def make() -> Event:
            for field, count in (("tokens_in", tokens_in), ("tokens_out", tokens_out)):
                if count is not None:
                    check_count(field, count)
            if cost_usd is not None:
                check_number("cost_usd", cost_usd, least=0.0, most=1e12)
            return events.Usage(tokens_in, tokens_out, cost_usd, optional_text("model", model))

        self._record(make)

    def feedback(self, score: float | None = None, *, text: str = "") -> None:
        """Record somebody's judgement: a score in [-1, 1], 1 = good, or words."""

        def make() -> Event:
            if score is not None:
                check_number("score", score, least=-1.0, most=1.0)
            return events.Feedback(score, check_text("text", text))

        self._record(make)

    def correction(self, text: str) -> None:
        """Record that somebody told the agent to do it differently; it counts as a further request."""
        self._record(lambda: events.Correction(check_text("text", text, empty=False)))

    def memory(self, text: str, *, id: str | None = None, removed: bool = False) -> None:
        """Record something that the agent remembers; a later text of the same ``id`` replaces it."""

        def make() -> Event:
            return events.Memory(check_text("text", text), optional_text("id", id), check_flag("removed", removed))

        self._record(make)

    def compaction(self, summary: str = "") -> None:
        """Record that the host shortened the context to a summary."""
        self._record(lambda: events.Compaction(check_text("summary", summary)))

    def outcome(self, success: bool | None = None, *, score: float | None = None, text: str = "") -> None:
        """Record how the task ended: whether it succeeded, or a score in [0, 1]."""

        def make() -> Event:
            if success is not None:
                check_flag("success", success)
            if score is not None:
                check_number("score", score, least=0.0, most=1.0)
            return events.Outcome(success, score, check_text("text", text))

        self._record(make)

    def fault(self, where: str, error: BaseException | str) -> None:
        """Record something that failed silently in the host."""
        self._record(lambda: make_fault(check_text("where", where, empty=False), error))


def optional_text(field: str, value: object) -> str | None:
    """Return a text or None, or raise TypeError that names the field."""
    return None if value is None else check_text(field, value)


def make_fault(where: str, error: BaseException | str) -> events.Fault:
    """Return the event of something that failed."""
    if isinstance(error, str):
        return events.Fault(where, "fault", error)
    try:
        message = one_line(str(error)[:500])
    except Exception:
        message = "its message cannot be shown"
    return events.Fault(where, type(error).__name__, message)
