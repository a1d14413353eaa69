"""Progress of an agent: repeats, reversals and failures among its calls and their results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from coherence.core.events import ToolResult
from coherence.core.lazy import lazy_regex
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.failure_cues import FAILED, failure_of, finds_nothing
from coherence.detect.fingerprints import SHELLS, name_words

if TYPE_CHECKING:
    from coherence.detect.text_analysis import TextAnalysis
    from coherence.state.data import Action
    from coherence.state.reducer import AgentState

WITHIN = 12
"""Newest actions with which one is compared."""

MAX_WORDS = 48
"""Tokens of a call that are kept, as 32-bit checksums: the smallest, so that two alike calls keep the same ones."""

MAX_OPEN = 64
FADES = 0.9
"""Share of a stall that is left at each further action."""

REVERSALS_FADE = 0.8
"""Share of a reversal that is left at each further action."""

REPEATS_FADE = 0.7
"""Share of a count of identical calls that is left at each further action that is another one."""

CHANGED_AGAIN, TAKEN_BACK = 0.45, 1.0
"""Weight of a reversal for each other value that the same thing was given before, and for one that it had before."""

UNDONE = 0.65
"""Weight of a reversal for the very call that was made before, where one like it undid it in between."""

_MUTATING_WORDS = (
    "add append apply assign book cancel change close create delete deploy disable discard edit enable insert lock "
    "merge modify move open order pause pay post publish put reassign reclass remove rename replace reschedule reset "
    "resume revert save scale schedule send set shift start stop submit swap switch toggle transfer turn undo unlock "
    "update upsert write"
)
MUTATING = frozenset(_MUTATING_WORDS.split())
"""Words of a tool's name by which it changes something."""

LIKE_UNDOING = 0.6
"""Likeness of two calls of one tool from which the second may undo the first."""

TELLS = 20
"""Characters of a result from which it says something: that it is the same as another's is no chance."""

ALIKE = 0.35
"""Likeness of two calls from which the same failure of both is one failure."""

ALIKE_AGAIN = 0.7
"""Weight of a failure that is like one before: who tries to mend one thing is not yet lost, who fails in one way after
the other is."""

EMPTY_AGAIN = 0.3
"""Weight, as a failure, of a search in other words that finds nothing again."""

EMPTY, SUCCESS = 0.7, 0.3
"""Share of the failures in a row that is left after a search that finds nothing, and after a success."""

SAME_FAILURE = 0.7
"""Likeness of two error texts from which two calls failed alike."""

WAITING = 0.15
"""Share of a repeat that counts for a call that waits for something, or that looks something up without arguments."""

FAILURE_CHARS = 400
"""Characters of a failure that are compared, half from each end."""

CHANGED = 0.5
"""Weight of a call with the same result where something was changed since, and nothing came of it."""

# These are no redirections to a file: 2>, &>, =>, <>, ->, >=, >&1, > /dev/null.
_CHANGES = lazy_regex(
    r"(?<![0-9&=<-])>{1,2}(?![&>=]|\s?/dev/null)|\bsed -i|\btee\b|\bpatch\b"
    r"|\bgit (?:apply|checkout|stash|reset|commit|merge|revert|pull)\b|\b(?:mv|cp|rm|mkdir|touch|install)\b"
)
"""Shell commands that change something."""

_IN_CHANGES = (">", "sed -i", "tee", "patch", "git ", "mv", "cp", "rm", "mkdir", "touch", "install")
"""One of these is in each of them: looked for first, which costs next to nothing."""

COMMAND_CHARS = 2_000
"""Characters of a command that are looked at."""

READING = frozenset({"get", "list", "search", "find", "read", "show", "view", "fetch", "check", "query", "lookup"})
"""Words of a tool's name by which it looks something up."""

_SEARCHING = (
    "bash shell command script grep egrep fgrep find xargs head tail sort uniq name iname type include includ exclude "
    "exclud recursive recursiv print python python3 /dev/null"
)
SEARCHING = frozenset(_SEARCHING.split())
"""Tokens of a shell call that say how something is looked for, not what."""

SHORT = 3
"""Letters up to which a word of a shell call is taken for a command or an option."""

_NAMES = lazy_regex(
    r"(?:^|_)(?:ids?|name|number|no|key|email|user|account|ticket|order|booking|ref|title|sku|device|room)$",
    re.IGNORECASE,
)
"""Arguments that say which thing a call is about."""

Sketch = tuple[int, ...]


class Waiting(msgspec.Struct, frozen=True):
    """Record of a call until its result comes."""

    words: Sketch = ()
    """Of its name and arguments; empty where the arguments say nothing."""
    sought: Sketch = ()
    """Of its words those that say what it is after; without how a shell command goes about it."""
    about: int = 0
    """Checksum of the arguments that say which thing it is about; 0 = none does."""
    acts: bool = False
    """``True`` if it changes something, by the first verb of the tool's name or of its only argument."""
    adds: bool = False
    """``True`` for a command that only appends to files, which takes nothing back."""


class Tried(msgspec.Struct, frozen=True):
    """Record of an action."""

    exact: bytes
    masked: bytes
    """Of the call, see :class:`~coherence.detect.fingerprints.CallTrace`."""
    words: Sketch
    sought: Sketch
    """As in :class:`Waiting`."""
    came: bytes
    """Of the result, numbers masked."""
    counts: tuple[float, ...]
    nothing: bool
    failure: float
    told: Sketch = ()
    """Words of a failure."""
    changes: int = 0
    """Changes made so far, by this call too."""
    acts: bool = False
    """``True`` if the call does more than look something up."""
    runs: bool = False
    """``True`` if it runs a command, whose result says more than what was changed."""
    tool: int = 0
    """Checksum of the tool's name."""
    about: int = 0
    """As in :class:`Waiting`; 0 also for files and commands, which are worked on again and again."""
    result: bytes = b""
    """Digest of the whole result."""
    tells: bool = True
    """``True`` if the result says more than a word or two, such as ``ok``."""
    waited: int = 0
    """Waits of the agent before this action."""
    adds: bool = False
    """As in :class:`Waiting`."""


class ProgressFacts(msgspec.Struct):
    """Memory of what the agent tried; plain data, bounded."""

    tried: list[Tried] = []
    open: dict[int, Waiting] = {}
    """Event number of a call without a result -> what is kept of it."""
    changing: list[int] = []
    """Event numbers of open shell calls that change something."""
    changes: int = 0
    """Calls that changed something, each once."""
    waited: int = 0
    """Calls that waited for something."""
    stall: float = 0.0
    """Sum over the actions of how much each repeats one before it, faded by 0.9 an action."""
    repeats: float = 0.0
    """Number of times the newest call was made before with the very same result and no change since; fades."""
    reversals: float = 0.0
    """Degree to which the newest call gives the same thing another value again, or redoes what was undone; fades."""
    failures: float = 0.0
    """Failures in a row, flagged or not, searches that find nothing again each a little; a success leaves 0.3."""
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


def fails_alike(now: Tried, before: Tried) -> bool:
    """Return ``True`` if two actions failed with the same error."""
    return min(now.failure, before.failure) >= FAILED and likeness(now.told, before.told) > SAME_FAILURE


def repeat_of(now: Tried, before: Tried) -> float:
    """Return how much an action repeats another, in [0, 1].

    The same call with the same result is 1. Two calls that found nothing, or failed alike, repeat each other as far as
    their words do. The same result of a call that is all but the same is half a repeat.
    """
    same = now.came == before.came and now.counts == before.counts
    if now.masked == before.masked:
        return 0.0 if not same else 1.0 if now.changes == before.changes else CHANGED
    failed = (same and min(now.failure, before.failure) >= FAILED) or fails_alike(now, before)
    alike = failed or (now.nothing and before.nothing)
    if not alike and not (same and now.tells):
        return 0.0
    close = likeness(now.words, before.words)
    if alike:
        return close if close >= ALIKE else 0.15
    return 0.5 if close >= 0.9 else 0.0


@lru_cache(maxsize=512)
def is_mutating(tool: str) -> bool:
    """Tell whether a tool changes something, by the first verb of its name.

    Examples
    --------
    >>> [is_mutating(name) for name in ("updateReservation", "mcp__crm__set_price", "get_order_status", "http")]
    [True, True, False, False]
    """
    return _first_verb_changes(name_words(tool))


def _first_verb_changes(words: Iterable[str]) -> bool:
    return next((word in MUTATING for word in words if word in MUTATING or word in READING), False)


def varies(now: Tried, before: Tried) -> bool:
    """Tell whether an action is another one in a few words more or fewer, and both found nothing or failed alike.

    Case, white space, quotes, ``./`` and the options of a search are no other words.
    """
    if now.tool != before.tool or not now.sought or not before.sought:
        return False
    if not fails_alike(now, before) and not (now.nothing and before.nothing):
        return False
    one, two = set(now.sought), set(before.sought)
    return one <= two or two <= one


CLI_WORDS = 4
"""Words of a command-line argument in which a verb is looked for."""


def _tells_to_change(names: Sequence[str], arguments: object) -> bool:
    """Tell whether a tool whose name has no verb, such as ``kubectl``, has an argument whose verb changes something."""
    if not isinstance(arguments, dict) or not (MUTATING.isdisjoint(names) and READING.isdisjoint(names)):
        return False
    texts = [value for value in arguments.values() if isinstance(value, str)]
    # where there are several, none of them is a command line
    if len(texts) != 1:
        return False
    return _first_verb_changes(name_words(" ".join(texts[0][:COMMAND_CHARS].split()[:CLI_WORDS])))


def repeats_in(now: Tried, tried: Sequence[Tried], changes: int) -> int:
    """Return how often an action was there before with the same result; of one that looks something up, since a change.

    One that varies another one and comes to nothing either counts, too, unless something was changed in between.

    Parameters
    ----------
    now : Tried
        The action.
    tried : sequence of Tried
        Those before it.
    changes : int
        How often something had been changed before it.
    """
    return sum(
        before.waited == now.waited
        and (
            (before.masked == now.masked and before.result == now.result and (now.acts or before.changes == changes))
            or (before.changes == changes and varies(now, before))
        )
        for before in tried
    )


def reversal_of(now: Tried, tried: Sequence[Tried]) -> float:
    """Return how much an action changes again what was changed before, in [0, 5].

    The same thing (by the arguments that name it) given another value counts 0.45 for each other value that it was
    given, and one more if it had this very value before another. The very same call counts 0.65 for each time that a
    call like it (such as the edit that takes an edit back) came right before it, to what that one came to or, where
    both are of the same words, to what it came to before: who goes back because something failed has a reason. What
    only appends takes nothing back.
    """
    if not now.acts:
        return 0.0
    found = 0.0
    # A change that failed has changed nothing.
    if now.about and now.failure < FAILED:
        same = [one for one in tried if one.about == now.about and one.tool == now.tool and one.failure < FAILED]
        found = CHANGED_AGAIN * len({one.exact for one in same} - {now.exact})
        first = next((at for at, one in enumerate(same) if one.exact == now.exact), len(same))
        found += TAKEN_BACK * any(one.exact != now.exact for one in same[first + 1 :])
    undoing = tried[-1] if tried else now
    if undoing.acts and not undoing.adds and undoing.tool == now.tool and undoing.masked != now.masked:
        same = [one for one in tried[:-1] if one.acts and one.masked == now.masked]
        # An edit shows another text each time; of a command the result tells why it was taken back.
        inverse = undoing.words == now.words and not now.runs
        undone = sum(undoing.came == now.came or (inverse and one.came == now.came) for one in same)
        if likeness(undoing.words, now.words) >= LIKE_UNDOING:
            found = max(found, UNDONE * undone)
    return found


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
        arguments = observed.arguments
        told = observed.text.tokens if _has_content(arguments) else frozenset()
        tool = observed.event.tool_name
        names = name_words(tool)
        about = _about(arguments) if isinstance(arguments, dict) else 0
        acts = is_mutating(tool) or _tells_to_change(names, arguments)
        text = observed.text.raw[:COMMAND_CHARS]
        changes = any(sign in text for sign in _IN_CHANGES) and _CHANGES.search(text) is not None
        # nothing is left of it that changes anything but the ">>"
        adds = changes and ">>" in text and _CHANGES.search(text.replace(">>", "")) is None
        waiting[observed.seq] = Waiting(sketch(told), sketch(_sought(names, told)), about, acts, adds)
        if len(waiting) > MAX_OPEN:
            del waiting[next(iter(waiting))]
        if changes:
            self.data.changing = [*self.data.changing, observed.seq][-MAX_OPEN:]

    def on_tool_result(self, observed: Observed) -> None:
        """Compare an action with those before it."""
        event: ToolResult = observed.event
        actions = self.state.facts.actions
        # The state has counted it by now: it stands before this detector in the table.
        if actions and actions[-1].seq == observed.seq:
            self._compare(actions[-1], event.result, observed.text)

    def _compare(self, action: Action, result: str, text: TextAnalysis) -> None:
        data, made, came = self.data, action.made, action.came
        failure = failure_of(result, flagged=action.error, reads=made.access == "read")
        made_of = data.open.pop(action.called, Waiting())
        words = made_of.words
        told = sketch(text.part(FAILURE_CHARS).tokens) if failure >= FAILED else ()
        changes = made.access == "write" or action.called in data.changing
        # a command that changes something is silent when it works
        nothing = not changes and finds_nothing(result)
        now = Tried(
            made.exact,
            made.masked,
            words,
            made_of.sought,
            came.masked,
            came.counts,
            nothing,
            failure,
            told,
            changes=data.changes,
            acts=changes or (not made.access and made_of.acts),
            tool=crc32(action.tool.encode("utf-8", "surrogatepass")),
            runs=made.access == "shell",
            about=0 if made.paths or made.access == "shell" else made_of.about,
            result=came.exact,
            tells=len(result) >= TELLS,
            waited=data.waited,
            adds=made_of.adds,
        )
        # A file that is read may speak of limits without there being one.
        waits = made.waits or came.pending or (came.rate_limited and made.access != "read")
        untold = not words and now.acts  # the host left out what it changed: no two such calls are known to be the same
        slow = 0.0 if untold else WAITING if waits or not words else 1.0
        repeated = (repeat_of(now, before) * (1.0 if before.waited == now.waited else WAITING) for before in data.tried)
        best = max(repeated, default=0.0) * slow
        data.stall = data.stall * FADES + best
        known = not waits and bool(words or now.tells)
        repeats = 0.0 if untold else repeats_in(now, data.tried, data.changes) * (1.0 if known else WAITING)
        data.repeats = max(data.repeats * REPEATS_FADE, repeats)
        data.reversals = max(data.reversals * REVERSALS_FADE, reversal_of(now, data.tried))
        data.changes += changes
        data.waited += waits
        tried = data.tried
        # Kept with its own change, so that the same call right after it comes after no other one.
        data.tried = [*tried, msgspec.structs.replace(now, changes=data.changes)][-WITHIN:]
        data.changing = [seq for seq in data.changing if seq != action.called]
        if waits or action.called < data.newest:  # made at once with the one before: one attempt
            failure *= 0.3
        data.newest = action.seq
        again = nothing and not waits and any(one.nothing and likeness(one.words, words) >= ALIKE for one in tried)
        if failure >= FAILED:
            data.failures += failure * (ALIKE_AGAIN if any(fails_alike(now, one) for one in tried) else 1.0)
        else:
            data.failures = data.failures + EMPTY_AGAIN if again else data.failures * (EMPTY if nothing else SUCCESS)
        if best > 0.3 or repeats >= 1.0 or failure >= FAILED:
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


def _sought(names: Sequence[str], told: Iterable[str]) -> Iterable[str]:
    """Return what a call is after, by the words of its tool's name and its tokens."""
    plain = (token.lstrip("./") or token for token in told)
    if SHELLS.isdisjoint(names):
        return plain
    return (token for token in plain if token not in SEARCHING and (len(token) > SHORT or any(map(str.isdigit, token))))


def _about(arguments: Mapping[str, object]) -> int:
    """Return a checksum of the arguments that say which thing a call is about; 0 = none does."""
    # the end of a key says what it is, and no key is read for long
    named = sorted((key, str(value)) for key, value in arguments.items() if _NAMES.search(key[-40:]))
    return crc32(repr(named).encode("utf-8", "surrogatepass")) if named else 0
