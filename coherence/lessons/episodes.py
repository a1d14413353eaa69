"""An error and its fate as plain data: the call that failed, the changes since, and the lesson."""

from __future__ import annotations

import msgspec


class Made(msgspec.Struct):
    """A call, reduced to what an error may need of it."""

    id: str
    tool: str
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
    """Whether a shell line also fails to say that nothing was found."""
    hidden: bool = False
    """Whether a shell line can succeed although its command failed."""


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
    """How often it came."""
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
