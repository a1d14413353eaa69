"""Compactions: which of the things that the user forbade are left in the summary."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.readings import excerpt, one_line
from coherence.policy.correction_words import LOOKED_AT, content_words

HELD = 0.6
"""Share of a sentence's words that a text must have to hold it."""

MAX_TEXT = 50_000
"""Characters of a summary that are looked at."""

LONGEST = 40
"""Characters of a word that lies on the border of two parts."""

MAX_RESTATED = 5
MAX_SENTENCE = 200
"""Characters of a sentence that is restated."""


def is_held(sentence: str, text: str) -> bool:
    """Tell whether a text holds a sentence, in whatever order.

    Examples
    --------
    >>> is_held("Never touch the docs folder.", "The user wants the docs folder never touched.")
    True
    >>> is_held("Never touch the docs folder.", "Files were edited.")
    False
    """
    wanted = content_words(sentence)
    return not wanted or len(wanted & _words(text)) >= HELD * len(wanted)


def _words(text: str) -> set[str]:
    parts = (text[at : at + LOOKED_AT] for at in range(0, min(len(text), MAX_TEXT), LOOKED_AT - LONGEST))
    return {word for part in parts for word in content_words(part)}


def measured(sentences: Sequence[str], summary: str) -> str:
    """Return how much of what was forbidden a summary holds, empty where nothing was.

    Examples
    --------
    >>> measured(["Never touch the docs folder.", "Do not push."], "Files were edited; do not push.")
    'the summary holds 1 of 2 things that the user forbade'
    """
    if not sentences:
        return ""
    held = sum(is_held(sentence, summary) for sentence in sentences)
    return f"the summary holds {held} of {len(sentences)} things that the user forbade"


def restated(sentences: Sequence[str], told: str) -> str:
    """Return what the user forbade and a text does not tell, newest first, empty if nothing is left out."""
    left = [one_line(sentence).strip() for sentence in reversed(sentences) if sentence.strip() not in told]
    return "".join(f"\nThe user also said: {excerpt(sentence, MAX_SENTENCE)}" for sentence in left[:MAX_RESTATED])
