"""Destructive calls that nobody asked for: the table of dangers on calls that were made, beside what was requested."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from coherence.core.decisions import Finding
from coherence.core.lazy import lazy_regex
from coherence.detect.detector import EventDetector, Observed
from coherence.policy.danger.classify import classify
from coherence.policy.danger.danger import Danger
from coherence.policy.danger.table import DEFAULT

RULE = "destructive_unasked"
"""Name of the findings."""

_ASKING_STEMS = (
    "delet remov drop clean clear purg wip eras reset revert undo cancel terminat kill stop destroy forc overwrit "
    "truncat prun uninstall discard archiv close transfer reboot shut empty cut rotat revok disabl deactivat"
)
ASKING = frozenset(_ASKING_STEMS.split())
"""Stems of words by which somebody asks for something destructive."""

REQUEST_CHARS = 600
"""Characters of a request that are looked at, half from each end: a long one describes more than it asks for."""

ASKED, UNASKED = 0.3, 1.0
"""What a destructive call counts where a request speaks of destruction, and where none does."""

FADES = 0.7
"""What is left of it at each later message or call."""

MAX_MADE = 200
COMMAND_CHARS = 2_000
"""Characters of a call that are looked at for files it makes or removes."""

_WRITTEN = lazy_regex(
    r">{1,2}\s{0,3}([\w./-]{1,200})|\"(?:file_?path|path|file_?name)\"\s{0,2}:\s{0,2}\"([^\"\n]{1,200})\"",
    re.IGNORECASE,
)
_REMOVED = lazy_regex(r"\brm\s([\w./-]{1,200}(?:\s[\w./-]{1,200}){0,39})")

LEAST = 0.6
"""From here on a finding is active."""


class DestructiveCalls(msgspec.Struct):
    """What is remembered of them; plain data."""

    asked: bool = False
    """Whether anybody has asked for something destructive since the newest goal."""
    made: list[str] = []
    """Files that the agent has made, by name, the newest."""
    value: float = 0.0
    seq: int = 0
    """Number of the call; 0 = of an earlier session."""
    what: str = ""


class DangerDetector(EventDetector[DestructiveCalls]):
    """Follows which calls destroy something.

    Parameters
    ----------
    table : sequence of Danger, optional
        What is destructive. Default: the package's table.

    Examples
    --------
    >>> from coherence.core.events import Goal, ToolCall
    >>> detector = DangerDetector()
    >>> detector.observe(Observed.of(Goal("add a test for the parser"), 1))
    >>> detector.observe(Observed.of(ToolCall("Bash", b'{"command": "rm -rf src"}', "a"), 2))
    >>> detector.data.value, detector.data.what
    (1.0, 'rm -rf src deletes files')
    """

    name, data_type = "danger", DestructiveCalls

    def __init__(self, table: Sequence[Danger] | None = None) -> None:
        super().__init__()
        self.table = DEFAULT if table is None else table

    def on_goal(self, observed: Observed) -> None:
        """Take in what is asked for."""
        if observed.new_goal:
            self.data.asked, self.data.value = False, 0.0
        self._ask(observed)

    def on_message(self, observed: Observed) -> None:
        """Take in a further request, or fade with a message of the agent."""
        if observed.event.role == "assistant":
            self.data.value *= FADES
        elif observed.event.role == "user":
            self._ask(observed)

    def on_correction(self, observed: Observed) -> None:
        """Take in what the user says."""
        self._ask(observed)

    def on_tool_call(self, observed: Observed) -> None:
        """Look whether the call destroys something."""
        event, data = observed.event, self.data
        try:
            match = classify(event.tool_name, observed.arguments, self.table)
        except (TypeError, ValueError, RecursionError):  # a row of somebody else that cannot judge it
            return
        text = observed.text.raw[:COMMAND_CHARS]
        removed = _REMOVED.search(text)
        names = {name.rpartition("/")[2] for name in removed[1].split() if name[0] != "-"} if removed else set()
        if match is not None and names and names <= set(data.made):
            match = None  # it tidies up after itself
        written = [found[1] or found[2] for found in _WRITTEN.finditer(text)]
        data.made = [*data.made, *(name.rpartition("/")[2] for name in written)][-MAX_MADE:]
        value = 0.0 if match is None else ASKED if data.asked else UNASKED
        if match is not None and value >= data.value:
            data.value, data.seq, data.what = value, observed.seq, match.what

    def _ask(self, observed: Observed) -> None:
        self.data.asked = self.data.asked or not ASKING.isdisjoint(observed.text.part(REQUEST_CHARS).tokens)

    def findings(self, state: object, reading: object, appraisal: object) -> Sequence[Finding]:
        """Return what was destroyed without being asked for."""
        data = self.data
        if data.value < 0.05:
            return ()
        return (
            Finding(
                rule=RULE,
                severity="guide",
                active=data.value >= LEAST,
                score=data.value,
                threshold=LEAST,
                evidence=(data.seq,) if data.seq else (),
                why=f"{data.what}, and no request speaks of that",
                action="ask the user before going on",
            ),
        )

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.data.seq = 0
