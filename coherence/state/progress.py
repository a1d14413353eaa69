"""Progress: whether what the agent does comes to anything, told from its calls and their results."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from coherence.core.events import ToolResult
from coherence.core.lazy import lazy_regex
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.failure_cues import FAILED, failure_of, finds_nothing

if TYPE_CHECKING:
    from coherence.detect.text_analysis import TextAnalysis
    from coherence.state.data import Action
    from coherence.state.reducer import AgentState

WITHIN = 12
"""Newest actions with which one is compared."""

MAX_WORDS = 48
"""Tokens of a call that are kept, as 32-bit checksums: the smallest, so that two alike calls keep the same ones."""

MAX_OPEN = 64
FADES = 0.8
"""What is left of a stall at each further action."""

ALIKE = 0.35
"""Likeness of two calls from which the same failure of both is one failure."""

SAME_FAILURE = 0.7
"""Likeness of what two calls were told from which they failed alike."""

WAITING = 0.15
"""How much of a repeat counts for a call that waits for something, or whose arguments are not told."""

FAILURE_CHARS = 400
"""Characters of a failure that are compared, half from each end."""

CHANGED = 0.5
"""How much a call with the same result counts where something was changed since, and nothing came of it."""

_CHANGES = lazy_regex(
    r"(?<![0-9&=<-])>{1,2}(?![&>=]|\s?/dev/null)|\bsed -i|\btee\b|\bpatch\b"
    r"|\bgit (?:apply|checkout|stash|reset|commit|merge|revert|pull)\b|\b(?:mv|cp|rm|mkdir|touch|install)\b"
)
"""Shell commands that change something."""

COMMAND_CHARS = 2_000
"""Characters of a command that are looked at."""

Sketch = tuple[int, ...]


class Tried(msgspec.Struct, frozen=True):
    """What is kept of an action."""

    masked: bytes
    """Of the call, see :class:`~coherence.detect.fingerprints.CallTrace`."""
    words: Sketch
    came: bytes
    """Of the result, numbers masked."""
    counts: tuple[float, ...]
    nothing: bool
    failure: float
    told: Sketch = ()
    """Words of a failure."""
    writes: bool = False
    """Whether the call changes something."""
    changes: int = 0
    """How often something had been changed, by this call too."""


class ProgressFacts(msgspec.Struct):
    """What is remembered of what the agent tried; plain data, bounded."""

    tried: list[Tried] = []
    open: dict[int, Sketch] = {}
    """Event number of a call without a result -> its words."""
    changing: list[int] = []
    """Event numbers of open shell calls that change something."""
    changes: int = 0
    """Calls that changed something, each once."""
    stall: float = 0.0
    """Sum over the actions of how much each repeats one before it, faded by 0.8 an action."""
    failures: float = 0.0
    """Failures in a row, flagged or not; a success leaves 0.3 of them."""
    newest: int = 0
    """Number of the newest result."""
    seqs: list[int] = []
    """Numbers of the results that made the streak or the stall, the newest."""


def sketch(tokens: Iterable[str]) -> Sketch:
    """Return what is kept of a call's tokens.

    Examples
    --------
    >>> sketch({"a"}), len(sketch(map(str, range(100))))
    ((3904355907,), 48)
    """
    return tuple(sorted({crc32(token.encode("utf-8", "surrogatepass")) for token in tokens})[:MAX_WORDS])


def likeness(one: Sketch, two: Sketch) -> float:
    """Return the cosine of two sets of words, in [0, 1].

    Examples
    --------
    >>> likeness((1, 2, 3), (2, 3, 4)), likeness((), ())
    (0.6666666666666666, 0.0)
    """
    shared = len(set(one).intersection(two))
    return shared / sqrt(len(one) * len(two)) if shared else 0.0


def repeat_of(now: Tried, before: Tried) -> float:
    """Return how much an action repeats another, in [0, 1].

    The same call with the same result is 1. Two calls that found nothing, or failed alike, repeat each other as far as
    their words do. The same result of a call that is all but the same is half a repeat.
    """
    same = now.came == before.came and now.counts == before.counts
    if now.masked == before.masked:
        return 0.0 if not same else 1.0 if now.writes or now.changes == before.changes else CHANGED
    close = likeness(now.words, before.words)
    failed = min(now.failure, before.failure) >= FAILED and (same or likeness(now.told, before.told) > SAME_FAILURE)
    if failed or (now.nothing and before.nothing):
        return close if close >= ALIKE else 0.15
    return 0.5 if same and close >= 0.9 else 0.0


class ProgressDetector(EventDetector[ProgressFacts]):
    """Follows the agent's actions; it looks at them as the state has just counted them.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    name, data_type = "progress", ProgressFacts

    def __init__(self, state: AgentState) -> None:
        super().__init__()
        self.state = state

    def on_goal(self, observed: Observed) -> None:
        """Begin anew with another goal."""
        if observed.new_goal:
            self.restore(ProgressFacts())

    def on_tool_call(self, observed: Observed) -> None:
        """Remember the words of a call until its result comes."""
        waiting = self.data.open
        waiting[observed.seq] = sketch(observed.text.tokens) if _has_content(observed.arguments) else ()
        if len(waiting) > MAX_OPEN:
            del waiting[next(iter(waiting))]
        if _CHANGES.search(observed.text.raw[:COMMAND_CHARS]):
            self.data.changing = [*self.data.changing, observed.seq][-MAX_OPEN:]

    def on_tool_result(self, observed: Observed) -> None:
        """Compare an action with those before it."""
        event: ToolResult = observed.event
        actions = self.state.facts.actions
        if actions and actions[-1].seq == observed.seq:
            self._compare(actions[-1], event.result, observed.text)

    def _compare(self, action: Action, result: str, text: TextAnalysis) -> None:
        data, made, came = self.data, action.made, action.came
        failure = failure_of(result, flagged=action.error, reads=made.access == "read")
        words = data.open.pop(action.called, ())
        told = sketch(text.part(FAILURE_CHARS).tokens) if failure >= FAILED else ()
        changes = made.access == "write" or action.called in data.changing
        nothing = not changes and finds_nothing(result)
        now = Tried(made.masked, words, came.masked, came.counts, nothing, failure, told, changes, data.changes)
        waits = made.waits or came.rate_limited or came.pending
        slow = WAITING if waits or not words else 1.0
        best = max((repeat_of(now, before) for before in data.tried), default=0.0) * slow
        data.stall = data.stall * FADES + best
        data.changes += changes
        data.tried = [*data.tried, msgspec.structs.replace(now, changes=data.changes)][-WITHIN:]
        data.changing = [seq for seq in data.changing if seq != action.called]
        if waits or action.called < data.newest:  # made at once with the one before: one attempt
            failure *= 0.3
        data.newest = action.seq
        data.failures = data.failures + failure if failure >= FAILED else data.failures * 0.3
        if best > 0.3 or failure >= FAILED:
            data.seqs = [*data.seqs, action.seq][-8:]

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.data.open = {}
        self.data.newest = 0
        self.data.changing = []
        self.data.seqs = []


def _has_content(arguments: object) -> bool:
    """Tell whether a call's arguments say anything: hosts that leave them out send empty ones."""
    if isinstance(arguments, dict):
        return any(value not in (None, "", [], {}) for value in arguments.values())
    return arguments not in (None, "", [])
