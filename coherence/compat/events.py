"""The nine kinds of events of the classic contract: frozen, comparable, picklable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from coherence.core.validation import check_count, check_flag, check_number, check_text, shown, to_json

MOST_TOKENS = 10**12
"""Tokens of one model call at most, as everywhere in this package."""


class LLMEvent(msgspec.Struct, frozen=True, tag_field="kind"):
    """Something that happened; made by one of the static methods, which check what they are given.

    All raise TypeError for a value of the wrong type (True is no number) and ValueError for one out of range; the
    message names the parameter. Any text is fine, lone surrogates and NUL included.

    Examples
    --------
    >>> LLMEvent.turn_start("Fix the login").kind
    'turn_start'
    >>> LLMEvent.cost(10, 20, 5) == LLMEvent.cost(tokens_in=10, tokens_out=20, wallclock_ms=5)
    True
    >>> LLMEvent.quality_feedback(1.5)
    Traceback (most recent call last):
    ValueError: quality must be in [0, 1], not 1.5
    """

    @property
    def kind(self) -> str:
        """The name of the static method that makes it."""
        return str(self.__struct_config__.tag)

    @staticmethod
    def turn_start(user_message: str) -> TurnStart:
        """Return: the user asked something; a turn begins."""
        return TurnStart(check_text("user_message", user_message))

    @staticmethod
    def token(token: str, logprob: float | None, index: int) -> Token:
        """Return: the model wrote a token.

        Parameters
        ----------
        token : str
            Not kept.
        logprob : float or None
            Natural logarithm of its probability, below 0. ``None``, 0, positive and not finite numbers are what
            providers send where they do not know it, and count as unavailable.
        index : int
            Its place in the answer, 0 or more.
        """
        check_text("token", token)
        if logprob is not None and (isinstance(logprob, bool) or not isinstance(logprob, int | float)):
            raise TypeError(f"logprob must be a number or None, not {shown(logprob)}")
        check_count("index", index)
        known = logprob is not None and -1e9 <= logprob < 0
        return Token(float(logprob) if logprob is not None and known else None)

    @staticmethod
    def turn_complete(full_response: str) -> TurnComplete:
        """Return: the answer is there."""
        return TurnComplete(check_text("full_response", full_response))

    @staticmethod
    def cost(tokens_in: int, tokens_out: int, wallclock_ms: float = 0, provider: str | None = None) -> Cost:
        """Return: a model call used up tokens (0 to 10**12) and milliseconds (0 or more)."""
        return Cost(
            check_count("tokens_in", tokens_in, most=MOST_TOKENS),
            check_count("tokens_out", tokens_out, most=MOST_TOKENS),
            check_number("wallclock_ms", wallclock_ms, least=0.0),
            None if provider is None else check_text("provider", provider),
        )

    @staticmethod
    def quality_feedback(quality: float, fragment_spans: Sequence[Any] | None = None) -> QualityFeedback:
        """Return: somebody judged the work, in [0, 1], 1 = good. The spans are accepted and not used."""
        if fragment_spans is not None and not isinstance(fragment_spans, list | tuple):
            raise TypeError(f"fragment_spans must be a list, not {shown(fragment_spans)}")
        return QualityFeedback(check_number("quality", quality, least=0.0, most=1.0))

    @staticmethod
    def user_correction(correction_message: str, corrects_last: bool) -> UserCorrection:
        """Return: the user said how to do it differently.

        Parameters
        ----------
        correction_message : str
            Their words; nothing is learned from empty ones.
        corrects_last : bool
            Whether it is about the newest answer. Else nothing is learned from it.
        """
        return UserCorrection(
            check_text("correction_message", correction_message), check_flag("corrects_last", corrects_last)
        )

    @staticmethod
    def tool_call(tool_name: str, args_json: str | None = None) -> ToolCall:
        """Return: the model called a tool.

        Parameters
        ----------
        tool_name : str
            The tool.
        args_json : str, optional
            Its arguments as JSON; any other text counts as one argument. Calls without are taken for equal calls.
        """
        return ToolCall(
            check_text("tool_name", tool_name), None if args_json is None else check_text("args_json", args_json)
        )

    @staticmethod
    def tool_result(
        tool_name: str, success: bool, duration_ms: float = 0, error_summary: str | None = None
    ) -> ToolResult:
        """Return: a tool answered, after so many milliseconds (0 or more), or failed with an error."""
        return ToolResult(
            check_text("tool_name", tool_name),
            check_flag("success", success),
            check_number("duration_ms", duration_ms, least=0.0),
            None if error_summary is None else check_text("error_summary", error_summary),
        )

    @staticmethod
    def from_otel_span_json(span_json: str) -> list[LLMEvent]:
        """Return the events of an OpenTelemetry GenAI span, see :func:`coherence.compat.otel.events_of_span`."""
        from coherence.compat.otel import events_of_span  # it makes events of this module

        return events_of_span(span_json)


class TurnStart(LLMEvent, frozen=True, tag="turn_start"):
    """The user asked something."""

    user_message: str


class Token(LLMEvent, frozen=True, tag="token"):
    """The model wrote a token."""

    logprob: float | None
    """``None`` = unavailable."""


class TurnComplete(LLMEvent, frozen=True, tag="turn_complete"):
    """The answer is there."""

    full_response: str


class Cost(LLMEvent, frozen=True, tag="cost"):
    """A model call used something up."""

    tokens_in: int
    tokens_out: int
    wallclock_ms: float = 0.0
    provider: str | None = None


class QualityFeedback(LLMEvent, frozen=True, tag="quality_feedback"):
    """Somebody judged the work."""

    quality: float


class UserCorrection(LLMEvent, frozen=True, tag="user_correction"):
    """The user said how to do it differently."""

    correction_message: str
    corrects_last: bool


class ToolCall(LLMEvent, frozen=True, tag="tool_call"):
    """The model called a tool."""

    tool_name: str
    args_json: str | None = None

    @property
    def arguments(self) -> msgspec.Raw:
        """The arguments as JSON; a text that is none, or nested too deep, as one text."""
        if self.args_json is None:
            return msgspec.Raw(b"null")
        try:
            return msgspec.Raw(to_json("args_json", msgspec.json.decode(self.args_json)))
        except (ValueError, RecursionError):
            return msgspec.Raw(to_json("args_json", self.args_json))


class ToolResult(LLMEvent, frozen=True, tag="tool_result"):
    """A tool answered."""

    tool_name: str
    success: bool
    duration_ms: float = 0.0
    error_summary: str | None = None
