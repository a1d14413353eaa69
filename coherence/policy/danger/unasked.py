"""Destructive calls that nobody asked for: the table of dangers on calls that were made, beside what was requested."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from coherence.core.decisions import Finding
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

ASKED, UNASKED = 0.3, 1.0
"""What a destructive call counts where a request speaks of destruction, and where none does."""

FADES = 0.7
"""What is left of it at each later message or call."""

LEAST = 0.6
"""From here on a finding is active."""


class DestructiveCalls(msgspec.Struct):
    """What is remembered of them; plain data."""

    asked: bool = False
    """Whether anybody has asked for something destructive since the newest goal."""
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
        value = 0.0 if match is None else ASKED if data.asked else UNASKED
        if match is not None and value >= data.value:
            data.value, data.seq, data.what = value, observed.seq, match.what

    def _ask(self, observed: Observed) -> None:
        self.data.asked = self.data.asked or not ASKING.isdisjoint(observed.text.tokens)

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
