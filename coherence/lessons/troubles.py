"""Errors of an agent that wait for their fix: an error, a later success of the same intent, and what lay between.

The state here is a fold of tool calls and their results: plain data, bounded, without clocks. It decides nothing and
writes nothing; what it returns may be recorded as a lesson. The modules that read shell lines
and error texts are loaded when the first error needs them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from coherence.core.events import ToolCall, ToolResult
from coherence.core.lazy import lazy_regex
from coherence.core.validation import clean
from coherence.core.words import phrases
from coherence.detect.fingerprints import is_rate_limited

if TYPE_CHECKING:
    from coherence.lessons.normal import ErrorShape

MAX_OPEN = 8
"""Errors that wait for their fix; the oldest leave."""

MAX_CALLS = 64
"""Calls without a result that are remembered."""

MAX_AGE = 40
"""Tool results after which an error that was not solved is given up: later changes are other work."""

MAX_ERROR = 4_000
"""Characters of an error's text that are kept."""

MAX_RAW = 2_000
"""Bytes of arguments up to which a call waits as it is; a larger one is reduced at once."""


class Made(msgspec.Struct):
    """A call, reduced to what an error may need of it."""

    tool: str = ""
    intent: str = ""
    """Its purpose; empty: nothing that an error could teach."""
    doing: bytes = b""
    """Digest (8 bytes) of all that may make it succeed."""
    text: str = ""
    """The call as it can stand in a fix, at most 240 characters."""
    where: str = ""
    """The folder that a shell line changes into first."""
    steps: tuple[str, ...] = ()
    """Its changes if it succeeds; empty: none."""
    prior: tuple[str, ...] = ()
    """Of a shell line, the changes of its other commands."""
    arguments: dict[str, str] = {}
    """Of a tool that is neither a shell nor works on files, shortened."""
    kind: str = ""
    """shell, file or tool."""
    quiet: bool = False
    """True if a shell line also fails to say that nothing was found."""
    hidden: bool = False
    """True if a shell line can succeed although its command failed."""


class FixStep(msgspec.Struct):
    """One change: a command that ran, an edit that was made."""

    seq: int
    """The event that reported its success; 0 = of an earlier session."""
    text: str
    """At most 240 characters."""


class Trouble(msgspec.Struct):
    """An error that has not been solved yet."""

    tool: str
    intent: str
    """The purpose of the failed call."""
    error_text: str
    """Of its newest occurrence, at most 4,000 characters from both ends."""
    seq: int
    """The event that reported the error first; 0 = of an earlier session."""
    newest: int
    """The event that reported it last; -1 = of an earlier session. Steps after it were made since."""
    pattern: str
    """A short name of the error."""
    signature: bytes
    """Of the error's normal form."""
    slots: list[str]
    """Names that make it another error than its siblings of one signature."""
    doing: bytes
    """Digest of the call that failed last."""
    where: str = ""
    """The folder in which it was made, if the call named it."""
    count: int = 1
    """Times that it came."""
    steps: list[FixStep] = []
    """Changes since, the last five."""
    results: int = 0
    """Tool results when it came last."""
    arguments: dict[str, str] = {}
    """Of the call that failed last."""
    settled: bool = False
    """True if other changes made it give way to another error: then its fix is complete."""

    def fresh(self) -> list[FixStep]:
        """Return the kept changes that were made since the error came last."""
        return [step for step in self.steps if step.seq > self.newest]


class Solved(msgspec.Struct, frozen=True):
    """An error and what solved it."""

    pattern: str
    error_text: str
    fix_text: str
    """One line, at most 600 characters; a single shell command stands alone, as it can be used."""
    tool: str
    """The tool that had failed."""
    seqs: tuple[int, ...]
    """The events that it is taken from, ascending: error, changes, success."""


class WaitingCall(msgspec.Struct):
    """A call whose result has not come yet: most succeed, and then nothing of them is ever looked at."""

    id: str
    tool: str
    arguments: bytes = b""
    made: Made | None = None
    """A call with large arguments, reduced."""

    def reduce(self) -> Made:
        """Return the call, reduced to what an error may need of it."""
        if self.made is None:
            from coherence.lessons.fixes import made_by

            return made_by(self.tool, self.arguments)
        return self.made


class Troubles(msgspec.Struct):
    r"""The errors of an agent that wait for their fix.

    An error is solved when a call of the same intent succeeds after something was changed. Its fix is what was changed
    since the error came last, or else since it came first, and the successful call itself if it was made differently.

    Where one intent met several errors, each success solves them all. The newest gets the changes since it came; one
    that gave way to another error after some changes keeps the changes up to there.

    Examples
    --------
    >>> troubles = Troubles()
    >>> def did(seq, command, result, error=False):
    ...     arguments = msgspec.Raw(msgspec.json.encode({"command": command}))
    ...     troubles.observe_call(ToolCall("Bash", arguments, f"c{seq}"))
    ...     return troubles.observe_result(seq + 1, ToolResult(result, error=error, call_id=f"c{seq}"))
    >>> did(1, "python app.py", "ModuleNotFoundError: No module named 'yaml'", error=True)
    ()
    >>> did(3, "pip install pyyaml", "Successfully installed pyyaml-6.0")
    ()
    >>> [(lesson.fix_text, lesson.seqs) for lesson in did(5, "python app.py", "ok")]
    [('pip install pyyaml', (2, 4, 6))]
    """

    open: list[Trouble] = []
    calls: list[WaitingCall] = []
    results: int = 0
    """Tool results so far."""

    def observe_call(self, event: ToolCall) -> None:
        """Take in a call: it is remembered until its result."""
        call = WaitingCall(clean(event.call_id[:200]), clean(event.tool_name[:100]), bytes(event.arguments))
        if len(call.arguments) > MAX_RAW:
            call.made, call.arguments = call.reduce(), b""
        self.calls.append(call)
        if len(self.calls) > MAX_CALLS:
            del self.calls[:-MAX_CALLS]

    def observe_result(self, seq: int, event: ToolResult) -> tuple[Solved, ...]:
        """Take in a result and return what it has solved, the oldest error first.

        Parameters
        ----------
        seq : int
            The event's number, above all before.
        event : ToolResult
            The result; one whose call is unknown solves nothing.
        """
        call = self._close(event.call_id)
        self.results += 1
        self.open = [trouble for trouble in self.open if self.results - trouble.results <= MAX_AGE]
        if call is None or not (self.open or event.error or shows_failure(event.result)):
            return ()
        from coherence.lessons.fixes import add_steps, is_retry, solve

        made = call.reduce()
        if event.error or (made.hidden and made.intent and shows_failure(event.result)):
            self._fail(seq, made, event.result)
            return ()
        if not self.open:
            return ()
        mine = [trouble for trouble in self.open if is_retry(trouble, made)]
        if mine and made.kind == "shell" and shows_failure(event.result):  # exit status 0, yet it failed
            return ()
        self.open = [trouble for trouble in self.open if trouble not in mine]
        for trouble in self.open:
            add_steps(trouble, seq, made)
        found = [solve(trouble, seq, made) for trouble in mine]
        return tuple(lesson for lesson in found if lesson is not None)

    def end_task(self) -> None:
        """Give up what is not solved: another task begins."""
        self.open = []

    def renumber(self) -> None:
        """Forget event numbers: the state of one session begins another, and lessons name no events of the former."""
        for trouble in self.open:
            trouble.seq, trouble.newest = 0, -1
            for step in trouble.steps:
                step.seq = 0

    def _close(self, id: str | None) -> WaitingCall | None:
        for at in range(len(self.calls) - 1, -1, -1):  # the newest first: some hosts use an id again
            if id is None or self.calls[at].id == id:
                return self.calls.pop(at)
        return None

    def _fail(self, seq: int, made: Made, result: str) -> None:
        from coherence.lessons.normal import normalise

        text = _kept(result)
        # Waiting ends a rate limit: there is nothing to learn.
        if not made.intent or not says_something(text) or is_rate_limited(text):
            return
        if made.quiet and not shows_failure(text):  # grep fails when it finds nothing
            return
        shape = normalise(text)
        slots = [clean(slot.value[:200]) for slot in shape.slots if slot.kind in ("name", "path", "url")][:8]
        mine = [trouble for trouble in self.open if trouble.intent == made.intent]
        for trouble in mine:
            if (trouble.signature, trouble.slots) == (shape.signature, slots):
                _repeat(trouble, seq, made, text, self.results)
                self.open = [*(other for other in self.open if other is not trouble), trouble]
                return
            if trouble.fresh():
                trouble.settled = True
            elif not trouble.steps and trouble.doing == made.doing:  # it went by itself
                self.open = [other for other in self.open if other is not trouble]
        self.open.append(_opened(seq, made, text, shape, slots, self.results))
        if len(self.open) > MAX_OPEN:
            del self.open[:-MAX_OPEN]


def _opened(seq: int, made: Made, text: str, shape: ErrorShape, slots: list[str], results: int) -> Trouble:
    about = made.intent.partition(": ")[2].split(" ")
    # A sub-command belongs to the name, a file does not.
    named = " ".join(about[:2]) if made.kind == "shell" and "." not in about[-1] else about[0]
    return Trouble(
        tool=made.tool,
        intent=made.intent,
        error_text=text,
        seq=seq,
        newest=seq,
        pattern=clean((shape.exception or f"{named if made.kind == 'shell' else made.tool} failed")[:80]),
        signature=shape.signature,
        slots=slots,
        doing=made.doing,
        where=made.where,
        arguments=made.arguments,
        results=results,
    )


def _repeat(trouble: Trouble, seq: int, made: Made, text: str, results: int) -> None:
    trouble.count += 1
    trouble.newest = seq
    trouble.error_text = text
    trouble.doing, trouble.where = made.doing, made.where or trouble.where
    trouble.arguments = made.arguments
    trouble.results, trouble.settled = results, False


def _kept(text: str) -> str:
    if len(text) > MAX_ERROR:
        text = f"{text[:1_490]}\n[…]\n{text[-2_500:]}"
    return clean(text)


# Signs in the output of a tool.

_SIGNS = phrases(
    "Traceback (most; rror:; rror[; rror TS; xception;  failed; FAILED; FAILURE; failing; not found; ERR!; fatal:; "
    "panic: ; make: ***; No such file; denied"
)
_FAILURE = lazy_regex(
    r"^Traceback \(most recent call last\)|^(?:[\w.]{0,60}\.)?[A-Z]\w{0,60}(?:Error|Exception)(?:$|: )"
    r"|\b[1-9]\d* (?:tests? )?fail(?:ed|ing|ures?)\b"
    r"|^(?:FAILED|E  )|command not found|^(?:bash|sh|zsh|/bin/\w{2,4}): .{0,200}(?:No such file|not found|denied)"
    r"|^npm (?:ERR!|error)|^[Ee]rror(?:\[E\d+\])?: |error TS\d|^fatal: |^make: \*\*\*|BUILD FAIL|^panic: |^ERROR:? "
    r"|^\S{1,200}:\d+(?::\d+)?: (?:fatal )?error: |No module named ",
    re.MULTILINE,
)


def shows_failure(text: str) -> bool:
    """Return whether what a command printed at its ends shows that it failed, whatever its exit status was.

    Examples
    --------
    >>> shows_failure("=== 2 failed, 3 passed in 0.1s ==="), shows_failure("=== 5 passed, 0 failed ===")
    (True, False)
    """
    ends = text if len(text) <= 3_000 else f"{text[:500]}\n{text[-2500:]}"
    return any(map(ends.__contains__, _SIGNS)) and _FAILURE.search(ends) is not None


_TAGS = lazy_regex(
    r"<[^<>\n]{1,40}>|\b(?:exit|return|status|code|error|exited|with|process|command|failed)\b", re.IGNORECASE
)
_REFUSED = lazy_regex(
    r"\buser (?:doesn't want|does not want|has |was )?(?:rejected|denied|declined|cancell?ed|interrupted|to proceed)"
    r"|doesn't want to (?:proceed|take this)|interrupted by (?:the )?user|KeyboardInterrupt",
    re.IGNORECASE,
)


def says_something(text: str) -> bool:
    """Return whether an error says what went wrong, and not only that it did, or that a person stopped it."""
    start = text[:1_000]
    return any(map(str.isalpha, _TAGS.sub("", start))) and _REFUSED.search(start) is None
