"""The methods that record what happens to an agent."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, get_args

import msgspec

import coherence.core.events as events
from coherence.core.decisions import Decision, Guidance
from coherence.core.events import Event
from coherence.core.readings import one_line
from coherence.core.validation import check_count, check_flag, check_number, check_text, shown, to_json


class Recording(ABC):
    """Check what is told, make an event of it, and hand it on."""

    def __init__(self) -> None:
        self._calls = itertools.count(1)
        self._call_prefix = f"call-{os.urandom(3).hex()}"

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
            roles = get_args(events.Role)
            if not isinstance(role, str) or role not in roles:
                raise ValueError(f"role must be one of {', '.join(roles)}, not {shown(role)}")
            return events.Message(
                roles[roles.index(role)],
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
            A mapping mostly; what JSON does not know is recorded as text, NaN and infinity as null. It is copied.
        call : str, optional
            The host's own id; default: a new one.
        """
        # With the process id: a forked child counts on from the same number.
        own = f"{self._call_prefix}-{os.getpid()}-{next(self._calls)}"
        call_id = str.__str__(call) if isinstance(call, str) and call else own

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
            Which call; default: the last one without a result. One that is not known, which another process may have
            made, is no error: the result counts as one of ``tool``, else of ``unknown``.
        tool : str, optional
            The tool, where its call was not recorded.
        error_type : str, optional
            The error's class, such as ``timeout``.
        """

        def make() -> Event:
            return events.ToolResult(
                check_text("text", text),
                check_flag("error", error),
                optional_text("call", call),
                optional_text("tool", tool),
                optional_text("error_type", error_type),
                None if duration_s is None else check_number("duration_s", duration_s, least=0.0),
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
            return events.Usage(
                None if tokens_in is None else check_count("tokens_in", tokens_in, most=10**12),
                None if tokens_out is None else check_count("tokens_out", tokens_out, most=10**12),
                None if cost_usd is None else check_number("cost_usd", cost_usd, least=0.0, most=1e12),
                optional_text("model", model),
            )

        self._record(make)

    def feedback(self, score: float | None = None, *, text: str = "") -> None:
        """Record somebody's judgement: a score in [-1, 1], 1 = good, or words."""

        def make() -> Event:
            rated = None if score is None else check_number("score", score, least=-1.0, most=1.0)
            return events.Feedback(rated, check_text("text", text))

        self._record(make)

    def correction(self, text: str) -> None:
        """Record that somebody told the agent to do it differently; it counts as a further request."""
        self._record(lambda: events.Correction(check_text("text", text, empty=False)))

    def edit_correction(self, id: str, text: str) -> None:
        """Change the text of a correction; its id is that of a note of :meth:`Monitor.corrections`."""
        self._record(
            lambda: events.Correction(check_text("text", text, empty=False), check_text("id", id, empty=False))
        )

    def forget_correction(self, id: str) -> None:
        """Take back a correction or all of a pattern; the id is one that :meth:`Monitor.corrections` tells."""
        self._record(lambda: events.Correction("", check_text("id", id, empty=False), removed=True))

    def delivered(self, guidance: Guidance | str) -> None:
        """Record that a guidance has reached the agent: only then it counts as treatment.

        Parameters
        ----------
        guidance : Guidance or str
            ``decision.guidance``, or its ``id``.
        """

        def make() -> Event:
            id = guidance.id if isinstance(guidance, Guidance) else check_text("guidance", guidance, empty=False)
            return events.Message("system", "", firing=id)

        self._record(make)

    def label(self, guidance: Guidance | str, good: bool) -> None:
        """Record whether a guidance was right to come, in somebody's judgement."""

        def make() -> Event:
            id = guidance.id if isinstance(guidance, Guidance) else check_text("guidance", guidance, empty=False)
            if id == events.BLOCK:
                raise ValueError("guidance must be a firing or its id; unblock() ends a block")
            return events.Feedback(1.0 if check_flag("good", good) else -1.0, about=id)

        self._record(make)

    def unblock(self, reason: str = "", decision: Decision | int | None = None) -> None:
        """End a block: what blocks now counts as a warning until it has calmed down once.

        A budget that is used up is lifted too, for as long as it would refuse; and the newest call that was refused for
        what it is itself may run, with a warning, until there is another goal.

        Parameters
        ----------
        reason : str
            For the record.
        decision : Decision or int, optional
            The refusal that is answered, or its ``seq``, where the agent may have asked for something else since: that
            call may run, and no block ends that did not refuse it. One of the newest 64 since the newest goal; any
            other changes nothing.
        """

        def make() -> Event:
            if isinstance(decision, Decision) and decision:
                raise ValueError(f"decision must be a refusal, not {decision.kind!r}")
            seq = decision.seq if isinstance(decision, Decision) else decision
            seq = None if seq is None else check_count("decision", seq)
            return events.Feedback(text=check_text("reason", reason), about=events.BLOCK, decision=seq)

        self._record(make)

    def memory(self, text: str, *, id: str | None = None, removed: bool = False) -> None:
        """Record something that the agent remembers; a later text of the same ``id`` replaces it."""

        def make() -> Event:
            return events.Memory(check_text("text", text), optional_text("id", id), check_flag("removed", removed))

        self._record(make)

    def compaction(self, summary: str = "") -> None:
        """Record that the host shortened the context to a summary."""
        self._record(lambda: events.Compaction(check_text("summary", summary)))

    def outcome(self, success: bool | None = None, *, score: float | None = None, text: str = "") -> Decision | None:
        """Record how the task ended: whether it succeeded, or a score in [0, 1]."""

        def make() -> Event:
            return events.Outcome(
                None if success is None else check_flag("success", success),
                None if score is None else check_number("score", score, least=0.0, most=1.0),
                check_text("text", text),
            )

        self._record(make)
        return None

    def fault(self, where: str, error: BaseException | str) -> None:
        """Record something that failed silently in the host."""

        def make() -> Event:
            if not isinstance(error, str | BaseException):
                raise TypeError(f"error must be an exception or a str, not {shown(error)}")
            return make_fault(check_text("where", where, empty=False), error)

        self._record(make)


def optional_text(field: str, value: object) -> str | None:
    """Return a text or None, or raise TypeError that names the field."""
    return None if value is None else check_text(field, value)


def make_fault(where: str, error: BaseException | str) -> events.Fault:
    """Return the event of something that failed."""
    if isinstance(error, str):
        return events.Fault(where, "fault", str.__str__(error))
    try:
        message = one_line(str(error)[:500])
    except Exception:
        message = "its message cannot be shown"
    return events.Fault(where, type(error).__name__, message)
