"""The classic event-driven regulator: tell it what happens, ask it what to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from hashlib import blake2b
from threading import RLock
from typing import Any, Literal, TypeAlias

import msgspec

import coherence.compat.events as told
from coherence.compat.confidence import text_confidence
from coherence.compat.decisions import Decision
from coherence.compat.judge import CONFIG, TurnLoop, judge, pattern_for
from coherence.compat.saved import Saved, Turn, from_text, merged, new_saved, to_text
from coherence.core.callback import wall_clock
from coherence.core.calls import PluginCall
from coherence.core.config import disabled
from coherence.core.events import (
    Correction,
    Event,
    Feedback,
    Goal,
    Message,
    Outcome,
    Ticked,
    ToolCall,
    ToolResult,
    Usage,
)
from coherence.core.protocols import Embedder, Rule
from coherence.core.redact import prepare
from coherence.core.strangers import WAIT_S
from coherence.core.validation import MAX_NAME, check_count, check_number, check_text, clean, shown
from coherence.monitor.pipeline import AgentPipeline
from coherence.policy.correction_prompt import inject
from coherence.policy.correction_words import is_implicit
from coherence.policy.corrections import MAX_CHARS
from coherence.policy.rules.quality import CostCapReached
from coherence.providers.minilm import default_embedder
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.reducer import MAX_TOOLS

LOG = logging.getLogger("coherence")


Embedding: TypeAlias = Embedder | EmbeddingCache | Literal[False] | None
"""Types of the argument ``embedder``."""


class Regulator:
    """Regulator of one user's agent: it hears what the agent does and decides if it goes on.

    Made by :meth:`for_user` and :meth:`from_json`. Any thread may call; memory is bounded; nothing leaves the process.
    Secrets in texts are replaced before they are kept. Copies (``copy``, ``deepcopy``, pickle) go on by themselves.

    Parameters
    ----------
    saved : Saved
        Where to go on.
    embedder : Embedder, EmbeddingCache or False, optional
        What compares texts by meaning; default: the shipped MiniLM model, about 10 ms a text at a decision. ``False``:
        by words only, in microseconds, which sees less.
    clock : callable
        Returns Unix seconds. One that raises, hangs or returns no finite number is logged, and time goes on from its
        newest reading.

    Examples
    --------
    >>> from coherence.compat import LLMEvent
    >>> regulator = Regulator.for_user("ada").with_cost_cap(1_000)
    >>> regulator.on_event(LLMEvent.turn_start("Refactor fetch_user to be async"))
    >>> regulator.on_event(LLMEvent.turn_complete("Peel the onions and simmer the soup for an hour."))
    >>> decision = regulator.decide()
    >>> decision.kind, decision.drift_tokens[:2]
    ('scope_drift_warn', ('onions', 'peel'))
    """

    def __init__(self, saved: Saved, *, embedder: Embedding = None, clock: Callable[[], float] = time.time) -> None:
        if not callable(clock):
            raise TypeError(f"clock must be callable, not {shown(clock)}")
        self._saved = saved
        self._embedder = embedder
        self._own_clock = clock
        self._clock = wall_clock(clock, WAIT_S, _log_clock)
        self._lock = RLock()
        self._off = disabled()
        self._decision: Decision | None = None
        self._loops = TurnLoop(lambda: self._saved.turn.seq)
        self._pipeline = AgentPipeline(CONFIG, _cache(embedder), measures=False)
        self._pipeline.restore(saved.snapshot)
        self._rules()
        self._handlers: dict[type, Callable[[Any], None]] = {
            told.TurnStart: self._turn_start,
            told.Token: self._token,
            told.TurnComplete: self._turn_complete,
            told.Cost: self._cost,
            told.QualityFeedback: self._quality_feedback,
            told.UserCorrection: self._user_correction,
            told.ToolCall: self._tool_call,
            told.ToolResult: self._tool_result,
        }

    @staticmethod
    def for_user(user_id: str, *, embedder: Embedding = None, clock: Callable[[], float] = time.time) -> Regulator:
        """Return a regulator without a past. Of an id of more than 500 characters the middle is left out."""
        return Regulator(new_saved(clean(check_text("user_id", user_id), MAX_NAME)), embedder=embedder, clock=clock)

    @staticmethod
    def from_json(json_str: str, *, embedder: Embedding = None, clock: Callable[[], float] = time.time) -> Regulator:
        """Return the regulator that was written by :meth:`export_json`; files of the classic one are read, too.

        Raises
        ------
        TypeError
            If it is not a str.
        ValueError
            If it is no regulator's state, or one of another version.
        """
        return Regulator(from_text(json_str), embedder=embedder, clock=clock)

    @staticmethod
    def merge(one_json: str, other_json: str) -> str:
        """Return one state of two of the same user that lived apart, for instance in two processes.

        Totals are added, what was learned is put together, the present is that of the later one; which comes first
        does not matter. Totals of a shared past count twice, its corrections once.

        Raises
        ------
        ValueError
            If one is no regulator's state, or they are of two users.
        """
        return to_text(merged(from_text(one_json), from_text(other_json)))

    def with_cost_cap(self, cap_tokens: int) -> Regulator:
        """Set the output tokens, 0 or more, from which bad work breaks the circuit; return the same regulator."""
        with self._lock:
            self._saved.cost_cap = check_count("cap_tokens", cap_tokens)
            self._saved.stale = True
            self._rules()
        return self

    def with_implicit_correction_window_secs(self, window_secs: float) -> Regulator:
        """Take a message that plainly corrects, or repeats the request, for a correction; return the same regulator.

        Parameters
        ----------
        window_secs : float
            Seconds after an answer in which such a message counts, above 0.
        """
        window_s = check_number("window_secs", window_secs, least=0.0)
        if not window_s > 0:
            raise ValueError(f"window_secs must be above 0, not {shown(window_secs)}")
        with self._lock:
            self._saved.window_s = window_s
        return self

    def on_event(self, event: told.LLMEvent) -> None:
        """Take in what happened.

        Raises
        ------
        TypeError
            If it is no event that :class:`LLMEvent` makes.
        """
        handler = self._handlers.get(type(event))
        if handler is None:
            raise TypeError(f"event must be made by LLMEvent, not {shown(event)}")
        if self._off:
            return
        with self._lock:
            try:
                handler(event)
            except Exception:  # a fault of this package must not reach the host
                LOG.exception("coherence: an event of kind %s could not be taken in", event.kind)

    def decide(self) -> Decision:
        """Return what to do now; asked twice, it returns the same."""
        with self._lock:
            if self._off:
                return Decision(kind="continue")
            try:
                self._judge()
            except Exception:  # a fault of this package must not reach the host
                LOG.exception("coherence: no decision could be made")
            return self._decision or Decision(kind="continue")

    def export_json(self) -> str:
        """Return everything as JSON: the same text for the same state, and read back unchanged."""
        with self._lock:
            self._saved.snapshot = self._pipeline.snapshot()
            return to_text(self._saved)

    def corrections_prelude(self) -> str | None:
        """Return what users corrected on requests like the present one, quoted; ``None`` if nothing."""
        with self._lock:
            self._pipeline.semantics.settle()
            return inject("", pattern_for(self._pipeline, self._pipeline.state.facts.request)).rstrip() or None

    def inject_corrections(self, user_prompt: str) -> str:
        """Return a prompt with what users corrected on requests like it before it, as quotations, or unchanged.

        The request that counts is the prompt, or the present turn's if the prompt holds it. Whatever else is found
        does not switch this off.
        """
        prompt = check_text("user_prompt", user_prompt)
        with self._lock:
            self._pipeline.semantics.settle()
            pattern = pattern_for(self._pipeline, prompt)
            request = self._pipeline.state.facts.request
            if pattern is None and request in prompt:
                pattern = pattern_for(self._pipeline, request)
            return inject(prompt, pattern)

    def confidence(self) -> float:
        """Return how sure the model was in this turn, in [0, 1]: of its tokens, else of the answer's look, else 0.5."""
        with self._lock:
            return self._saved.turn.tokens.confidence

    def logprob_coverage(self) -> float:
        """Return the share of this turn's tokens whose probability is known, in [0, 1]."""
        with self._lock:
            return self._saved.turn.tokens.coverage

    def total_tokens_out(self) -> int:
        """Return the output tokens so far, over all turns."""
        with self._lock:
            return self._pipeline.state.facts.tokens_out or 0

    def cost_cap_tokens(self) -> int:
        """Return the cap on output tokens."""
        with self._lock:
            return self._saved.cost_cap

    def tool_total_calls(self) -> int:
        """Return the tool calls of this turn."""
        with self._lock:
            return self._saved.turn.calls

    def tool_counts_by_name(self) -> dict[str, int]:
        """Return the tool calls of this turn by tool; those beyond 64 tools are counted as ``(other)``."""
        with self._lock:
            return dict(self._saved.turn.tools)

    def tool_total_duration_ms(self) -> float:
        """Return the milliseconds that the tools took in this turn."""
        with self._lock:
            return self._saved.turn.duration_ms

    def tool_failure_count(self) -> int:
        """Return the failed tool results of this turn."""
        with self._lock:
            return self._saved.turn.failures

    def implicit_corrections_count(self) -> int:
        """Return the messages that were taken for corrections so far."""
        with self._lock:
            return self._saved.implicit

    def user_id(self) -> str:
        """Return the user's id."""
        return self._saved.user_id

    def metrics_snapshot(self) -> dict[str, float]:
        """Return the eight numbers of the contract, under its own keys."""
        with self._lock:
            return {
                "noos.confidence": self.confidence(),
                "noos.logprob_coverage": self.logprob_coverage(),
                "noos.total_tokens_out": float(self.total_tokens_out()),
                "noos.cost_cap_tokens": float(self.cost_cap_tokens()),
                "noos.tool_total_calls": float(self.tool_total_calls()),
                "noos.tool_total_duration_ms": float(self.tool_total_duration_ms()),
                "noos.tool_failure_count": float(self.tool_failure_count()),
                "noos.implicit_corrections_count": float(self.implicit_corrections_count()),
            }

    def copy(self) -> Regulator:
        """Return a regulator that knows the same and goes on by itself; the embedder and the clock are shared."""
        return Regulator.from_json(self.export_json(), embedder=self._embedder, clock=self._own_clock)

    def __copy__(self) -> Regulator:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Regulator:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.export_json(), self._embedder, self._own_clock)

    def __repr__(self) -> str:
        return f"Regulator.for_user({shown(self._saved.user_id)})"

    def _rules(self) -> None:
        """Have the pipeline judge by the present cap, and loops by the turn."""
        replaced: dict[str, Rule] = {
            "cost_cap_reached": CostCapReached(cap_tokens_out=self._saved.cost_cap),
            "repeated_tool_call_loop": self._loops,
        }
        self._pipeline.rules = [replaced.get(rule.name, rule) for rule in self._pipeline.rules]

    def _judge(self) -> None:
        """Make the decision anew if anything has changed."""
        pipeline, saved = self._pipeline, self._saved
        if pipeline.changed or saved.stale:
            self._fold(Ticked("decide"))
            saved.stale = False
            self._decision = None
        if self._decision is None and pipeline.measured is not None:
            self._decision = judge(pipeline.measured.decision.findings, pipeline, saved, self._loops)

    def _fold(self, event: Event) -> int:
        """Fold an event that is prepared; return its number."""
        seq = self._pipeline.state.facts.seq + 1
        self._pipeline.fold(seq, self._clock(), event)
        return seq

    def _fold_tool(self, event: Event) -> None:
        """Fold a call or a result; the turn's answer stays what it is, since a span tells the answer first."""
        facts = self._pipeline.state.facts
        answer = facts.answer
        self._fold(event)
        facts.answer = answer

    def _turn_start(self, event: told.TurnStart) -> None:
        saved, now = self._saved, self._clock()
        message = prepare(Message("user", event.user_message), hide_secrets=CONFIG.redact)
        assert isinstance(message, Message)
        if (
            saved.window_s is not None
            and saved.completed_ts is not None
            and 0.0 <= now - saved.completed_ts <= saved.window_s
            and is_implicit(message.content, saved.answered)
        ):
            self._learn(message.content)
            saved.implicit += 1
        saved.turn = Turn()
        # A turn is a task of its own: the answer is compared with this request, not with the first one of all.
        saved.turn.seq = self._fold(Goal(message.content))
        self._fold(message)

    def _token(self, event: told.Token) -> None:
        self._saved.turn.tokens.add(event.logprob)

    def _turn_complete(self, event: told.TurnComplete) -> None:
        saved = self._saved
        tokens = saved.turn.tokens
        tokens.text_confidence = text_confidence(event.full_response)
        message = Message("assistant", event.full_response, logprobs=tokens.pop())
        self._fold(prepare(message, hide_secrets=CONFIG.redact))
        self._fold(Outcome())  # unknown, but there is one: the message is the turn's answer
        saved.answered = self._pipeline.state.facts.request[: 4 * MAX_CHARS]
        saved.completed_ts = self._clock()

    def _cost(self, event: told.Cost) -> None:
        self._fold(Usage(event.tokens_in, event.tokens_out))

    def _quality_feedback(self, event: told.QualityFeedback) -> None:
        self._fold(Feedback(2.0 * event.quality - 1.0))

    def _user_correction(self, event: told.UserCorrection) -> None:
        if not event.corrects_last:
            return
        correction = prepare(Correction(event.correction_message), hide_secrets=CONFIG.redact)
        assert isinstance(correction, Correction)
        self._learn(correction.text)

    def _learn(self, text: str) -> None:
        """File a correction under the request that was answered last: the text may come after the next request."""
        pipeline, ts = self._pipeline, self._clock()
        request = self._saved.answered or pipeline.state.facts.request
        seq = self._fold(Feedback(text=text))
        # A name that two processes which went on from one state do not share, and the same process always gives.
        session = blake2b(f"{ts!r} {request}\n{text}".encode(), digest_size=4).hexdigest()
        pipeline.corrections.add(text, request=request, seq=seq, session=session, step=pipeline.semantics.step)

    def _tool_call(self, event: told.ToolCall) -> None:
        turn, seq = self._saved.turn, self._pipeline.state.facts.seq + 1
        call = prepare(ToolCall(event.tool_name, event.arguments, str(seq)), hide_secrets=CONFIG.redact)
        assert isinstance(call, ToolCall)
        self._fold_tool(call)
        turn.calls += 1
        name = call.tool_name
        if name not in turn.tools and len(turn.tools) >= MAX_TOOLS:
            name = "(other)"
        turn.tools[name] = turn.tools.get(name, 0) + 1

    def _tool_result(self, event: told.ToolResult) -> None:
        turn = self._saved.turn
        result = ToolResult(
            event.error_summary or "",
            error=not event.success,
            tool_name=event.tool_name,
            duration_s=event.duration_ms / 1000.0,
        )
        prepared = prepare(result, hide_secrets=CONFIG.redact)
        assert isinstance(prepared, ToolResult)
        calls = self._pipeline.state.facts.open_calls
        # The contract has no call ids; without one the state would close the newest call of any tool, so "none".
        id = next((c.id for c in reversed(calls) if c.tool == prepared.tool_name and c.seq > turn.seq), "none")
        self._fold_tool(msgspec.structs.replace(prepared, call_id=id))
        turn.failures += not event.success
        turn.duration_ms = min(turn.duration_ms + event.duration_ms, 1e15)


def _cache(embedder: Embedding) -> EmbeddingCache | None:
    if embedder is False:
        return None
    return embedder if isinstance(embedder, EmbeddingCache) else EmbeddingCache(embedder or default_embedder())


def _log_clock(found: PluginCall | str) -> None:
    failure = found if isinstance(found, str) else found.failure
    LOG.warning("coherence: the regulator's clock is not relied on: %s", failure)


def _unpickled(json: str, embedder: Embedding, clock: Callable[[], float]) -> Regulator:
    return Regulator.from_json(json, embedder=embedder, clock=clock)
