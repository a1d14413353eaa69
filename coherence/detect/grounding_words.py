"""Flaws of a statement in words: short, and harmless where they quote."""

from __future__ import annotations

from coherence.core.readings import number_of, one_line
from coherence.detect.grounding import Flaw, Grounds

SHOWN = 60
"""Characters of a value in a sentence."""

MOST_TOLD = 3
"""Values that a sentence names."""

_QUOTES = str.maketrans(dict.fromkeys('"“”„‟«»＂`', "'"))


def told(flaw: Flaw) -> str:
    """Return what is wrong with a value, as the end of a sentence about it.

    Examples
    --------
    >>> told(Flaw("id", "2310.06825v3", "version", "2310.06825v2", 12))
    'the sources have 2310.06825v2 (event 12)'
    >>> told(Flaw("id", "4711", "absent"))
    'occurs in nothing that the agent was given'
    """
    where = f" (event {flaw.seq})" if flaw.seq > 0 else ""
    match flaw.flaw:
        case "version" | "altered":
            return f"the sources have {_plain(flaw.near)}{where}"
        case "title":
            return f"stands under the title of {_plain(flaw.near)}{where}"
        case "invented title":
            return "stands under a title that the sources do not have"
        case "unopened":
            return "is cited, but no call opened it"
        case "untitled":
            return "is cited without the title that the sources have"
        case _:
            return "occurs in nothing that the agent was given"


def sentence(grounds: Grounds) -> str:
    """Return what is wrong with a statement, in one sentence that names three values at most.

    Examples
    --------
    >>> sentence(Grounds(0.5, 2, flaws=(Flaw("number", "17", "altered", "19", 4),), looked_up=True))
    '1 of 2 values in the answer is not grounded: “17” - the sources have 19 (event 4)'
    """
    flaws = grounds.flaws
    parts = [f"“{_plain(flaw.text)}” - {told(flaw)}" for flaw in flaws[:MOST_TOLD]]
    more = f"; and {len(flaws) - MOST_TOLD} more" if len(flaws) > MOST_TOLD else ""
    verb = "is" if len(flaws) == 1 else "are"
    blind = "" if grounds.looked_up else "; nothing was looked up in this task"
    checked = number_of(grounds.checked, "value")
    return f"{len(flaws)} of {checked} in the answer {verb} not grounded: {'; '.join(parts)}{more}{blind}"


def _plain(text: str) -> str:
    line = one_line(text[: 2 * SHOWN]).strip().translate(_QUOTES)
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
