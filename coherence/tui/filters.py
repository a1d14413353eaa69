"""Filter of the agents: which of them are asked for, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from coherence.tui.palette import BANDS, LETTERS, SHAPES

if TYPE_CHECKING:
    from coherence.tui.lines import Line
    from coherence.views.shapes import Overview
    from coherence.views.views import Views

SORTS = ("worst", "newest", "cost", "steps", "agent")

PAGE = 200
"""Sessions that are read at once; more when the cursor comes to the last one."""


class Filter(msgspec.Struct, frozen=True):
    """Sessions that are asked for; empty = all."""

    band: str = ""
    rule: str = ""
    label: str = ""
    state: str = ""
    text: str = ""
    sort: str = "worst"
    limit: int = PAGE

    def ask(self, views: Views) -> Overview:
        """Return the sessions that fit."""
        return views.overview(
            band=self.band or None,
            rule=self.rule or None,
            label=self.label or None,
            state=self.state or None,
            text=self.text or None,
            sort=self.sort,
            limit=self.limit,
        )

    def in_words(self) -> str:
        """Return what it leaves out, in words; empty if nothing."""
        parts = [
            self.band,
            self.state,
            f"rule {self.rule}" if self.rule else "",
            f"label {self.label}" if self.label else "",
        ]
        parts.append(f"“{self.text}”" if self.text else "")
        return ", ".join(part for part in parts if part)


STATES = (
    ("n", "running", "going on now"),
    ("p", "open", "open: without an outcome"),
    ("s", "succeeded", "succeeded"),
    ("x", "failed", "failed"),
)
"""Key, state and words."""


def choices_of(rules: Sequence[str]) -> list[tuple[str, Filter, Line]]:
    """Return filters to choose from: key, filter, words."""
    found: list[tuple[str, Filter, Line]] = [("a", Filter(), (("all sessions", ""),))]
    for band in BANDS[:-1]:
        words = ((f"{SHAPES[band]} {LETTERS[band]} {band}", band), (" now", "dim"))
        found.append((band[0], Filter(band=band), words))
    found += [(key, Filter(state=state), ((words, ""),)) for key, state, words in STATES]
    found.append(("1", Filter(label="good"), (("labelled good", ""),)))
    found.append(("2", Filter(label="bad"), (("labelled bad", ""),)))
    found += [("", Filter(rule=rule), (("rule ", "dim"), (rule, ""))) for rule in rules[:40]]
    return found
