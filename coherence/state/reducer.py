"""The state of an agent: a fold of its events, bounded in memory, the same cost for every event."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from math import isfinite
from posixpath import basename
from typing import Any

import msgspec

from coherence.core.config import MonitorConfig
from coherence.core.events import (
    NOTE,
    Compaction,
    Correction,
    Event,
    Fault,
    Feedback,
    Goal,
    Memory,
    Message,
    Outcome,
    Spent,
    Ticked,
    ToolCall,
    ToolResult,
    Usage,
)
from coherence.core.lazy import lazy_regex
from coherence.core.readings import Counters
from coherence.core.validation import ends
from coherence.detect.assumption import AssumptionDetector
from coherence.detect.breakdown import BreakdownDetector
from coherence.detect.contradiction import ContradictionDetector
from coherence.detect.detector import DetectorTable, EventDetector, Observed
from coherence.detect.failure_cues import FAILED, failure_of
from coherence.detect.fingerprints import CallTrace, trace_call, trace_result
from coherence.detect.goal_loss import GoalLossDetector
from coherence.detect.grounding_state import GroundingDetector
from coherence.detect.hijack import HijackDetector
from coherence.detect.prohibitions import ProhibitionDetector
from coherence.detect.text_features import hedge_density, is_monotonous, shape_of
from coherence.state.data import Action, Answer, Facts, FailureKind, Item, OpenCall, Rated, Said, Spending
from coherence.state.progress import ProgressDetector

CONTEXT_CHARS = 20_000
"""Characters of one message that stay in the context, half from each end; the shipped model looks at fewer."""

MAX_OPEN = 64
"""Calls without a result that are remembered."""

MAX_TOOLS = 64
"""Tool names that are counted apart; further ones are counted together."""

MAX_MEMORIES = 1_000
RELEVANT_MEMORIES = 50
MAX_REQUESTS = 4
MAX_TOTAL = 2**62
"""Tokens that are added up at most; a snapshot holds no larger number."""

RETRY_WITHIN = 5
"""Results among which a failed identical call makes a call a retry."""


class AgentState(EventDetector[Facts]):
    """An agent's state, folded from its events. It is a state provider for the sensor.

    *Goals* are the goal and the latest further requests and corrections. *Context* is the last ``config.window``
    messages of the agent and results of its tools; a call joins the message it follows unless a tick lies between.
    *Memories* are the newest 50 of at most 1,000 remembered.

    Parameters
    ----------
    config : MonitorConfig, optional
        Window, prices, expected form.
    facts : Facts, optional
        Where to go on; default: from nothing.

    Examples
    --------
    >>> state = AgentState()
    >>> state.fold(1, 0.0, Goal("fix the login bug"))
    >>> state.fold(2, 1.0, Message("assistant", "Reading login.py."))
    >>> list(state.get_goals()), list(state.get_recent_context())
    (['fix the login bug'], ['Reading login.py.'])
    """

    name, data_type = "facts", Facts
    in_place = True

    def __init__(self, config: MonitorConfig | None = None, facts: Facts | None = None) -> None:
        super().__init__(facts)
        self.config = config or MonitorConfig()
        self.budget = self.config.budget
        """Budget of the agent, for the rules that look at it."""
        self.limited: frozenset[str] = frozenset()
        """Tools whose calls are counted for ever, because they have a limit."""
        self.hijack = HijackDetector()
        self.assumption = AssumptionDetector()
        self.grounding = GroundingDetector(self.config.grounding.extractors)
        self.claims = ContradictionDetector()
        self.forbidden = ProhibitionDetector()
        self.breakdown = BreakdownDetector(self.assumption)
        self.goal_loss = GoalLossDetector()
        self.progress = ProgressDetector(self)
        followers = (
            self.hijack,
            self.assumption,
            self.grounding,
            self.claims,
            self.forbidden,
            self,
            self.breakdown,
            self.progress,
            self.goal_loss,
        )
        self.detectors = DetectorTable(followers)
        """Everything that follows the run; those before the state see it as it was before the event."""
        self._context_texts: list[str] | None = None
        self.told = 0
        """Counts everything that was said or done: while it stands still, so do metrics that are steady."""

    def fold(self, seq: int, ts: float, event: Event) -> None:
        """Take in the next event.

        Parameters
        ----------
        seq : int
            Its number, above all before.
        ts : float
            When it happened, Unix seconds. Time that runs backwards counts as standing still.
        event : Event
            What happened.
        """
        facts = self.facts
        facts.seq = seq
        if type(event) is not Ticked and type(event) is not Usage:
            self.told += 1
        if not isfinite(ts):
            ts = facts.latest_ts
        elif facts.first_ts is None:
            facts.first_ts = facts.latest_ts = ts
        # a clock that was set back takes no time away
        elif ts > facts.latest_ts:
            facts.latest_ts = ts
        observed = Observed.of(event, seq, ts, facts.goal)
        if not _is_aside(event):
            facts.chars += len(observed.text.raw)
        self.detectors.observe(observed)
        if type(event) is not Ticked and not _is_note(event):
            facts.changed_seq = seq

    def on_goal(self, observed: Observed) -> None:
        """Take the goal in place of what was asked before."""
        event: Goal = observed.event
        self._end_turn()
        if observed.new_goal:
            self._end_task()
        self.facts.goal = self.facts.request = event.text.strip()
        self.facts.requests.clear()

    def _request(self, text: str) -> None:
        said = text.strip()
        if not self.facts.goal:
            self.facts.goal = said
        elif said and said != self.facts.goal:
            push(self.facts.requests, said, MAX_REQUESTS)

    def on_correction(self, observed: Observed) -> None:
        """Count a correction as a further request."""
        event: Correction = observed.event
        if event.id is None:
            self._request(event.text)

    def on_message(self, observed: Observed) -> None:
        """Take in what somebody says."""
        event: Message = observed.event
        seq = observed.seq
        facts = self.facts
        if event.role == "user":
            self._request(event.content)
            facts.joinable = False
            facts.turn += 1
            facts.request_seq = seq
            facts.request = _shortened(event.content.strip()) or facts.request
            self._end_turn()
            return
        if event.role == "system" and not facts.turn and not facts.context:
            return  # what the host tells the agent before it begins is no part of the conversation
        self._show(seq, event.role, event.content)
        if event.role == "assistant":
            facts.joinable = True
            facts.answer = Answer(seq, _shortened(event.content), facts.request)
            facts.unsure, facts.unsure_seq = event.logprobs, seq
            facts.messages += 1
            facts.steps += 1
            facts.step_seq = seq
            if event.content.strip():
                shape = shape_of(event.content)
                facts.shapes[shape] = facts.shapes.get(shape, 0) + 1
                text = event.content
                said = Said(seq, hedge_density(text), shape, is_monotonous(text), _digest(text))
                push(facts.said, said, RECENT)

    def on_tool_call(self, observed: Observed) -> None:
        """Remember a call until its result comes."""
        event: ToolCall = observed.event
        seq = observed.seq
        ts = observed.ts
        facts = self.facts
        self._count_call(event.tool_name)
        facts.answer = None
        raw = bytes(event.arguments)
        made = trace_call(event.tool_name, raw)
        push(facts.open_calls, OpenCall(event.call_id, seq, ts, event.tool_name, made), MAX_OPEN)
        # Arguments that are one text are shown as that text, without JSON's escapes.
        shown = msgspec.json.decode(raw) if raw[:1] == b'"' else raw.decode()
        text = f"{event.tool_name}({shown})"
        if facts.joinable and facts.context and facts.context[-1].seq == facts.step_seq:
            last = facts.context[-1]
            last.text = _shortened(f"{last.text}\n{text}")
            self._context_texts = None
        else:
            self._show(seq, "assistant", text)
            if facts.joinable:
                facts.step_seq = seq

    def on_tool_result(self, observed: Observed) -> None:
        """Join a result to its call; a flagged command that says nothing but ``exit code 1`` searched in vain."""
        event: ToolResult = observed.event
        seq = observed.seq
        ts = observed.ts
        facts = self.facts
        call = self._close_call(event.call_id)
        tool = call.tool if call is not None else event.tool_name or "unknown"
        if call is None:
            self._count_call(tool)
        made = call.made if call is not None else trace_call(tool, b"null")
        error = event.error and not (made.access == "shell" and failure_of(event.result, flagged=True) < FAILED)
        came = trace_result(event.result, error=error)
        retry = any(last.error and last.made.exact == made.exact for last in facts.actions[-RETRY_WITHIN:])
        last = facts.actions[-1] if facts.actions else None
        action = Action(
            seq,
            tool,
            made,
            came,
            error,
            retry,
            event.duration_s,
            ts=call.ts if call is not None else ts,
            turn=facts.turn,
            compacted=last is not None and last.seq < facts.compacted_seq,
            blind="" if error else blind_target(facts, tool, made, event.result),
            called=call.seq if call is not None else seq,
        )
        facts.same_streak = facts.same_streak + 1 if last is not None and is_same(last, action) else 1
        push(facts.actions, action, RECENT)
        note_files(facts, action, event.result)
        if error:
            note_failure(facts, action)
        facts.answer = None
        facts.results += 1
        facts.errors += error
        facts.error_streak = facts.error_streak + 1 if error else 0
        name = tool if tool in facts.tools or len(facts.tools) < MAX_TOOLS else "(other)"
        facts.tools[name] = facts.tools.get(name, 0) + 1
        facts.steps += 1
        facts.step_seq = seq
        facts.joinable = False
        self._show(seq, "tool", event.result)

    def _count_call(self, tool: str) -> None:
        called = self.facts.called
        self.facts.calls += 1
        # To the end: where there are too many, the tool called longest ago leaves.
        called[tool] = called.pop(tool, 0) + 1
        while len(called) > MAX_TOOLS + len(self.limited):
            del called[next(name for name in called if name not in self.limited)]

    def _close_call(self, call_id: str | None) -> OpenCall | None:
        calls = self.facts.open_calls
        # From the newest: ids may come again, and without one the newest call is meant.
        for at in range(len(calls) - 1, -1, -1):
            if call_id is None or calls[at].id == call_id:
                return calls.pop(at)
        return None

    def on_usage(self, observed: Observed) -> None:
        """Add up what a model call used."""
        event: Usage = observed.event
        seq = observed.seq
        facts = self.facts
        event = sound(event)
        if event.input_tokens is not None:
            facts.tokens_in = min((facts.tokens_in or 0) + event.input_tokens, MAX_TOTAL)
            # what was written stands in the context of the next call
            facts.context_used = event.input_tokens + (event.output_tokens or 0)
        if event.output_tokens is not None:
            facts.tokens_out = min((facts.tokens_out or 0) + event.output_tokens, MAX_TOTAL)
        cost = self.cost_of(event)
        note_spending(facts, seq, event, cost)
        if cost is None:
            facts.unpriced += 1
            facts.unpriced_model = event.model or "unknown"
        else:
            facts.priced += 1
            facts.cost_usd = (facts.cost_usd or 0.0) + cost

    def cost_of(self, event: Usage) -> float | None:
        """Return what a model call cost in US dollars: as recorded, or by the configured price; ``None`` = unknown."""
        if event.cost_usd is not None:
            return event.cost_usd
        price = self.config.prices.get(event.model or "")
        if price is None or (event.input_tokens is None and event.output_tokens is None):
            return None
        return ((event.input_tokens or 0) * price.input + (event.output_tokens or 0) * price.output) / 1e6

    def on_memory(self, observed: Observed) -> None:
        """Remember, replace or forget."""
        event: Memory = observed.event
        memories = self.facts.memories
        key = event.id
        if key is None:
            # the same text without an id is the same memory
            key = next((known for known, text in memories.items() if text == event.text), None)
        if key is None:
            self.facts.nameless += 1
            key = f"#{self.facts.nameless}"
        if event.removed or not event.text.strip():
            memories.pop(key, None)
        else:
            renew(memories, key, _shortened(event.text), MAX_MEMORIES)

    def on_compaction(self, observed: Observed) -> None:
        """Begin the context anew with its summary."""
        event: Compaction = observed.event
        seq = observed.seq
        self.facts.context.clear()
        self.facts.compacted_seq = seq
        self.facts.context_used = None
        self.facts.joinable = False
        self._context_texts = None
        self._show(seq, "assistant", event.summary)

    def on_feedback(self, observed: Observed) -> None:
        """Remember a judgement of the agent's work."""
        event: Feedback = observed.event
        seq = observed.seq
        if event.score is not None and not event.about:
            note_quality(self.facts, seq, event.score)

    def on_outcome(self, observed: Observed) -> None:
        """End the task."""
        event: Outcome = observed.event
        self.facts.outcome = event.success
        self.facts.joinable = False
        self._end_turn()
        self._end_task()

    def on_tick(self, observed: Observed) -> None:
        """End the step, unless a call is asked about, which belongs to it.

        A decision asked for ends the turn of an agent that never called a tool.
        """
        event: Ticked = observed.event
        if event.tool_name is None:
            self.facts.joinable = False
        if event.reason == "decide" and not self.facts.calls:
            self._end_turn()

    def _end_task(self) -> None:
        """Begin anew with what counts in a row; what is remembered one by one stays."""
        self.facts.error_streak = self.facts.same_streak = 0

    def _end_turn(self) -> None:
        if self.facts.answer is not None:
            self.facts.answer.final = True

    def on_fault(self, observed: Observed) -> None:
        """Count a fault."""
        self.facts.faults += 1

    def _show(self, seq: int, role: str, text: str) -> None:
        if text and not text.isspace():
            push(self.facts.context, Item(seq, role, _shortened(text)), self.config.window)
            self._context_texts = None

    def snapshot(self) -> Facts:
        """Return the facts themselves, to be encoded before the next event."""
        return self.facts

    def restore(self, data: Facts) -> None:
        """Go on with other facts."""
        super().restore(data)
        self._context_texts = None
        # whatever metrics keep was made of other facts
        self.told += 1

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.facts.renumber()
        self.told += 1

    @property
    def facts(self) -> Facts:
        """Content of the state: plain data."""
        return self.data

    @property
    def context(self) -> Sequence[Item]:
        """The context with its event numbers and roles, oldest first."""
        return self.facts.context

    @property
    def spent(self) -> Spent:
        """Resources that the agent has used up."""
        facts = self.facts
        return Spent(
            tokens=(facts.tokens_in or 0) + (facts.tokens_out or 0),
            cost_usd=(facts.cost_usd or 0.0) if facts.priced or not facts.unpriced else None,
            calls=facts.calls,
            wall_s=facts.latest_ts - facts.first_ts if facts.first_ts is not None else 0.0,
            unpriced=facts.unpriced,
            tool_calls={tool: facts.called[tool] for tool in sorted(self.limited) if tool in facts.called},
        )

    def get_goals(self) -> Sequence[str]:
        """Return the goal and the latest requests."""
        return [text for text in (self.facts.goal, *self.facts.requests) if text]

    def get_recent_context(self) -> Sequence[str]:
        """Return the latest messages and results, oldest first."""
        if self._context_texts is None:
            self._context_texts = [item.text for item in self.facts.context]
        return self._context_texts

    def get_goal_relevant_memories(self) -> Sequence[str]:
        """Return the newest memories."""
        return list(self.facts.memories.values())[-RELEVANT_MEMORIES:]

    def get_all_memories(self) -> Sequence[str]:
        """Return every memory that is kept."""
        return list(self.facts.memories.values())

    def get_counters(self) -> Counters:
        """Return the running totals."""
        facts = self.facts
        return Counters(facts.results, facts.errors, facts.tokens_in, facts.tokens_out, facts.cost_usd)


def sound(event: Usage) -> Usage:
    """Return a usage whose numbers can be counted: those that no monitor would have taken are unknown.

    A recording of somebody else may hold them, and one NaN in a sum would stay there for ever.

    Examples
    --------
    >>> usage = sound(Usage(input_tokens=-5, output_tokens=7, cost_usd=float("nan")))
    >>> usage.input_tokens, usage.output_tokens, usage.cost_usd
    (None, 7, None)
    """
    tokens_in, tokens_out = (
        count if count is not None and 0 <= count <= 2**53 else None
        for count in (event.input_tokens, event.output_tokens)
    )
    cost = event.cost_usd if event.cost_usd is not None and 0.0 <= event.cost_usd <= 1e12 else None
    return Usage(tokens_in, tokens_out, cost, event.model)


def _shortened(text: str) -> str:
    return ends(text, CONTEXT_CHARS, "\n[…]\n")


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


RECENT = 30
"""Tool results, messages and model calls that are remembered one by one."""

MAX_FAILURES = 32
MAX_FAILURE_EVENTS = 8
MAX_FILES = 200
MAX_QUALITIES = 20
MAX_FOUND = 50
"""Files of one search result that count as seen."""

EDITS = lazy_regex(r"edit|replace|patch|insert|update|modify|append", re.IGNORECASE)
"""Tools that change a file which is there already, by name."""

OVERWRITTEN = lazy_regex(r"\b(?:updated|overwr(?:itten|ote)|replaced|modified)\b", re.IGNORECASE)
"""Words of a tool that has written to an existing file."""

FOUND = lazy_regex(r"^([^\s:]{1,300}):\d+", re.MULTILINE)
"""A line of a search result that shows a file's content: ``src/a.py:12: ...``."""


def push(items: list[Any], item: Any, most: int) -> None:
    """Append to a bounded list."""
    items.append(item)
    if len(items) > most:
        del items[:-most]


def renew(items: dict[str, Any], key: str, item: Any, most: int) -> None:
    """Put an item last into a bounded table; the one that was put there longest ago leaves."""
    items.pop(key, None)
    items[key] = item
    if len(items) > most:
        del items[next(iter(items))]


def note_failure(facts: Facts, action: Action) -> None:
    """Count a failed action with others of its kind."""
    key = f"{action.tool[:64]} {action.came.masked.hex()}"
    failure = facts.failures.get(key) or FailureKind(action.tool, action.came.first_line)
    failure.count += 1
    failure.first_line = action.came.first_line
    if action.turn not in failure.turns[-1:]:
        push(failure.turns, action.turn, MAX_FAILURE_EVENTS)
    push(failure.seqs, action.seq, MAX_FAILURE_EVENTS)
    renew(facts.failures, key, failure, MAX_FAILURES)


def blind_target(facts: Facts, tool: str, made: CallTrace, result: str) -> str:
    """Return the existing file that a call writes to although it was never read, empty if there is none.

    Only what the events show counts: a tool that edits needs a file that is there; one that writes a whole file
    overwrites if the file was named in the context, or the result says so.
    """
    if made.access != "write":
        return ""
    edits = EDITS.search(tool) is not None or OVERWRITTEN.search(result[:500]) is not None
    for path in made.paths:
        if path not in facts.files and (edits or _was_named(facts, path)):
            return path
    return ""


def _was_named(facts: Facts, path: str) -> bool:
    name = basename(path)
    # "a.py" is not named by "data.py" or "a.pyc".
    pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    return bool(name) and any(item.role == "tool" and pattern.search(item.text) for item in facts.context)


def note_files(facts: Facts, action: Action, result: str) -> None:
    """Remember the files that an action read or wrote."""
    if action.error:
        return
    paths = list(action.made.paths)
    if action.made.access in ("search", "shell"):
        paths += [match[1] for match, _ in zip(FOUND.finditer(result[:20_000]), range(MAX_FOUND), strict=False)]
    for path in paths:
        renew(facts.files, path, action.seq, MAX_FILES)


def note_quality(facts: Facts, seq: int, score: float) -> None:
    """Remember a judgement in [-1, 1]."""
    quality = round((score + 1.0) / 2.0, 15)  # 0.3 came as -0.4: without rounding it would not be 0.3 again
    push(facts.qualities, Rated(seq, facts.turn, quality), MAX_QUALITIES)


def _is_aside(event: Event) -> bool:
    """Tell whether the text of an event is for the record alone, and no part of what the agent reads or writes."""
    return type(event) is Fault or _is_note(event)


def _is_note(event: Event) -> bool:
    return type(event) is Feedback and event.about == NOTE


def note_spending(facts: Facts, seq: int, usage: Usage, cost_usd: float | None) -> None:
    """Remember what a model call used up."""
    output = usage.output_tokens or 0
    push(facts.spending, Spending(seq, (usage.input_tokens or 0) + output, cost_usd, facts.chars, output), RECENT)


def is_same(one: Action, other: Action) -> bool:
    """Tell whether two actions are the same call with the same result."""
    same = (one.made.exact, one.came.exact, one.error) == (other.made.exact, other.came.exact, other.error)
    return same and not one.made.blank
