"""Judgement of one answer by what was given, for the tests of values."""

from __future__ import annotations

from coherence.detect.extractors import BUILT_IN, DEFAULT
from coherence.detect.grounding import judge
from coherence.detect.sources import Given, take_source

CHOSEN = [BUILT_IN[name] for name in DEFAULT]


def flaws(source: str, answer: str) -> list[str]:
    """Return the values of an answer that no source gives; ``||`` parts sources."""
    given = Given()
    for seq, text in enumerate(source.split("||"), 1):
        take_source(given, seq, text, CHOSEN)
    return [flaw.text for flaw in judge(given, answer, CHOSEN).grave]
