"""Events that a host records: each method checks its arguments and makes one event of them."""

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
from coherence.core.plain import is_a
from coherence.core.validation import check_count, check_flag, check_number, check_text, plain_text, shown, to_json
from coherence.monitor.inputs import message_text, result_text


class HostEvents(ABC):
    """Methods by which a host records the life of an agent; a bad argument never stops the host."""

    def __init__(self) -> None:
        self._calls = itertools.count(1)
        self._call_prefix = f"call-{os.urandom(3).hex()}"

    @abstractmethod
    def _record(self, make: Callable[[], Event]) -> None:
        """Record the event that ``make`` returns, or the error that it raises as a fault."""

    def goal(self, text: str) -> None:
        """Set the task of the agent from now on."""
        self._record(lambda: events.Goal(check_text("text", text, empty=False)))

    def message(
        self,
        role: events.Role,
        text: str | Sequence[Any] | None,
        *,
        model: str | None = None,
        response_id: str | None = None,
        logprobs: Sequence[float] | None = None,
    ) -> None:
        """Record a message: a user's begins a turn, an assistant's completes a step.

        Parameters
        ----------
        role : str
            Who speaks: ``user``, ``assistant``, ``system`` or ``tool``.
        text : str, sequence of content blocks, or None
            The message; it may be empty or ``None`` beside tool calls. Of content blocks (mappings or objects of an
            SDK), only the texts count.
        model, response_id : str, optional
            Names that the provider gives.
        logprobs : sequence of float, optional
            Natural logarithms of the tokens' probabilities, 0 or below; a summary is kept.
        """

        def make() -> Event:
            roles = get_args(events.Role)
            speaker: Any = role if type(role) is str else plain_text(role)
            if speaker not in roles:
                raise ValueError(f"role must be one of {', '.join(roles)}, not {shown(role)}")
            return events.Message(
                speaker,
                message_text("text", text),
                _optional_text("model", model),
                _optional_text("response_id", response_id),
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
            Usually a mapping; it is copied. What JSON cannot hold is recorded as text, NaN and infinity as null.
        call : str, optional
            The host's own id; default: a new one.
        """
        # With the process id: a forked child counts on from the same number.
        own = f"{self._call_prefix}-{os.getpid()}-{next(self._calls)}"
        call_id = own if call is None else plain_text(call) or own

        def make() -> Event:
            if call is not None:
                check_text("call", call)
            name = check_text("tool", tool, empty=False)
            return events.ToolCall(name, msgspec.Raw(to_json("arguments", arguments)), call_id)

        self._record(make)
        return call_id

    def tool_result(
        self,
        text: Any,
        *,
        error: bool = False,
        duration_s: float | None = None,
        call: str | None = None,
        tool: str | None = None,
        error_type: str | None = None,
    ) -> None:
        """Record the answer of a tool; this completes a step.

        Parameters
        ----------
        text : any
            The result or the error's text. Of content blocks, only the texts count; other data becomes JSON.
        error : bool
            ``True`` if the call failed.
        duration_s : float, optional
            Seconds it took, 0 or more.
        call : str, optional
            Id of the call; default: the last call without a result. An unknown id is no error, because another process
            may have used it: the result then counts as one of ``tool``, or of ``unknown`` without it.
        tool : str, optional
            Name of the tool, if its call was not recorded.
        error_type : str, optional
            The error's class, such as ``timeout``.
        """

        def make() -> Event:
            return events.ToolResult(
                result_text("text", text),
                check_flag("error", error),
                _optional_text("call", call),
                _optional_text("tool", tool),
                _optional_text("error_type", error_type),
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
        tokens_cached: int | None = None,
        response_id: str | None = None,
        duration_s: float | None = None,
    ) -> None:
        """Record the tokens and the cost of one model call. ``None`` = unknown, or priced by ``config.prices``.

        ``tokens_cached`` are those of ``tokens_in`` that came from a cache; ``duration_s`` is the time from the request
        to the end of the answer.
        """

        def make() -> Event:
            return events.Usage(
                None if tokens_in is None else check_count("tokens_in", tokens_in, most=10**12),
                None if tokens_out is None else check_count("tokens_out", tokens_out, most=10**12),
                None if cost_usd is None else check_number("cost_usd", cost_usd, least=0.0, most=1e12),
                _optional_text("model", model),
                None if tokens_cached is None else check_count("tokens_cached", tokens_cached, most=10**12),
                _optional_text("response_id", response_id),
                None if duration_s is None else check_number("duration_s", duration_s, least=0.0),
            )

        self._record(make)

    def feedback(self, score: float | None = None, *, text: str = "") -> None:
        """Record a judgement of the agent's work: a score in [-1, 1], 1 = good, or words."""

        def make() -> Event:
            rated = None if score is None else check_number("score", score, least=-1.0, most=1.0)
            return events.Feedback(rated, check_text("text", text))

        self._record(make)

    def correction(self, text: str) -> None:
        """Record a correction of the agent by a person; it counts as a further request."""
        self._record(lambda: events.Correction(check_text("text", text, empty=False)))

    def forget_correction(self, id: str) -> None:
        """Take back a correction or all of a pattern; the id is one of :meth:`Monitor.corrections`."""
        self._record(lambda: events.Correction("", check_text("id", id, empty=False), removed=True))

    def delivered(self, guidance: Guidance | str) -> None:
        """Record that a guidance has reached the agent; only then it counts as sent.

        Parameters
        ----------
        guidance : Guidance or str
            ``decision.guidance``, or its ``id``.
        """

        def make() -> Event:
            id = check_text("guidance", guidance.id if is_a(guidance, Guidance) else guidance, empty=False)
            return events.Message("system", "", firing=id)

        self._record(make)

    def label(self, guidance: Guidance | str, good: bool) -> None:
        """Record a judgement of a guidance: ``good=False`` = it was wrong."""

        def make() -> Event:
            id = check_text("guidance", guidance.id if is_a(guidance, Guidance) else guidance, empty=False)
            if id in (events.BLOCK, events.NOTE):
                raise ValueError("guidance must be a firing or its id; unblock() ends a block")
            return events.Feedback(1.0 if check_flag("good", good) else -1.0, about=id)

        self._record(make)

    def confirm(self, decision: Decision | int, reason: str = "") -> None:
        """Record that a person agrees with a refusal: it was no false alarm. :meth:`Monitor.unblock` is the contrary.

        Parameters
        ----------
        decision : Decision or int
            The refusal, or its ``seq``.
        reason : str
            For the record.
        """

        def make() -> Event:
            seq = check_refusal(decision)
            return events.Feedback(1.0, check_text("reason", reason), about=events.BLOCK, decision=seq)

        self._record(make)

    def note(self, text: str) -> None:
        """Record what the host tells beside the agent's life, such as another model; no reading changes by it."""
        self._record(lambda: events.Feedback(text=check_text("text", text, empty=False), about=events.NOTE))

    def tick(self) -> None:
        """Have what was recorded so far measured as :meth:`Monitor.decide` does, in its turn; never waits for that.

        With ``config.tick="manual"``, the order of records and ticks alone says what is measured.

        Examples
        --------
        >>> from coherence.monitor.monitor import Monitor
        >>> m = Monitor(goal="List the files.", embedder=False, config={"tick": "manual"})
        >>> m.message("assistant", "I look.")
        >>> m.tick()
        >>> m.message("assistant", "I have looked.")
        >>> m.flush()
        >>> len(m.history())
        1
        """
        self._record(lambda: events.Ticked("decide"))

    def memory(self, text: str, *, id: str | None = None, removed: bool = False) -> None:
        """Record something that the agent remembers; a later text of the same ``id`` replaces it."""

        def make() -> Event:
            return events.Memory(check_text("text", text), _optional_text("id", id), check_flag("removed", removed))

        self._record(make)

    def compaction(self, summary: str = "") -> None:
        """Record that the host shortened the context to a summary."""
        self._record(lambda: events.Compaction(check_text("summary", summary)))

    def fault(self, where: str, error: BaseException | str) -> None:
        """Record something that failed silently in the host."""

        def make() -> Event:
            if not is_a(error, str) and not is_a(error, BaseException):
                raise TypeError(f"error must be an exception or a str, not {shown(error)}")
            return events.make_fault(check_text("where", where, empty=False), error)

        self._record(make)


def _optional_text(field: str, value: object) -> str | None:
    """Return a text or None, or raise TypeError that names the field."""
    return None if value is None else check_text(field, value)


def check_refusal(decision: object) -> int:
    """Return the number of a refusal, which may be given itself.

    Raises
    ------
    TypeError, ValueError
        If it is none.
    """
    seq = decision
    if is_a(decision, Decision):
        if decision:
            raise ValueError(f"decision must be a refusal, not {decision.kind!r}")
        seq = decision.seq
    return check_count("decision", seq)
