"""Which tool results an agent made use of: whether anything new in them comes back in what it says or calls later."""

from __future__ import annotations

import msgspec

from coherence.core.validation import ends
from coherence.detect.normal_values import digest
from coherence.detect.tokens import tokens, weight

MAX_CHARS = 4_000
"""Characters of a text that are looked at, half from each end."""

MAX_OUTPUTS = 32
"""Results of a task that are remembered."""

MAX_MARKS = 24
"""New tokens of a result that are remembered, names and numbers first."""

MAX_KNOWN = 2_000
"""Tokens of the goal and of the agent's own words that are remembered."""

USED = 2.0
"""Weight of the new tokens that must come back: one name, address or longer number, or two words."""


class Output(msgspec.Struct):
    """One tool result."""

    seq: int
    marks: dict[int, float] = {}
    """Digest of a new token -> its weight."""
    used: bool = False


class Outputs(msgspec.Struct):
    """The results of a task, and what the agent knew without them."""

    newest: list[Output] = []
    known: dict[int, None] = {}
    """Digests of what the goal, the user or the agent said, the newest last."""
    said_seq: int = 0
    """The newest message of the agent."""


def _know(outputs: Outputs, text: str) -> dict[int, None]:
    """Remember what was said, and return its digests."""
    said = dict.fromkeys(map(digest, sorted(tokens(ends(text, MAX_CHARS, "\n\n")))))
    known = outputs.known
    for mark in said:
        known.pop(mark, None)
    known.update(said)
    over = len(known) - MAX_KNOWN
    if over > 0:
        for mark in list(known)[: over + MAX_KNOWN // 20]:
            del known[mark]
    return said


def note_asked(outputs: Outputs, text: str) -> None:
    """Take in what the user or the host said."""
    _know(outputs, text)


def note_output(outputs: Outputs, seq: int, text: str) -> None:
    """Take in a tool result; what says nothing new is not counted."""
    kept: dict[int, float] = {}
    for token in sorted(sorted(tokens(ends(text, MAX_CHARS, "\n\n"))), key=weight, reverse=True):
        mark = digest(token)
        if mark not in outputs.known:
            kept[mark] = weight(token)
            if len(kept) == MAX_MARKS:
                break
    if sum(kept.values()) >= USED:
        outputs.newest.append(Output(seq, kept))
        del outputs.newest[:-MAX_OUTPUTS]


def note_said(outputs: Outputs, seq: int, text: str, *, answer: bool) -> None:
    """Take in a message or a call of the agent: which results come back in it.

    Parameters
    ----------
    outputs : Outputs
        Is changed.
    seq : int
        Number of the event.
    text : str
        The message, or the arguments of the call.
    answer : bool
        Whether it is a message.
    """
    said = _know(outputs, text)
    for output in outputs.newest:
        if not output.used:
            shared = sum(heavy for mark, heavy in output.marks.items() if mark in said)
            output.used = shared >= USED
    if answer and text.strip():
        outputs.said_seq = seq


def unused_share(outputs: Outputs) -> float | None:
    """Return the share of the results before the newest message that were not used; ``None`` if there are none.

    Examples
    --------
    >>> outputs = Outputs()
    >>> note_asked(outputs, "Where does Anna live?")
    >>> note_output(outputs, 2, "anna@example.org, Elm Street 12b, Bergen")
    >>> note_output(outputs, 3, "The museum opens at ten on Sundays.")
    >>> note_said(outputs, 4, "Anna lives in Elm Street, Bergen.", answer=True)
    >>> unused_share(outputs)
    0.5
    """
    before = [output for output in outputs.newest if output.seq < outputs.said_seq]
    return sum(not output.used for output in before) / len(before) if before else None
