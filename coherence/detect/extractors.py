"""Which extractors there are by name, and all claims of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from coherence.core.config import GroundingConfig
from coherence.core.protocols import Extractor
from coherence.core.readings import MOST_CLAIMS, Claim
from coherence.detect import entities

BUILT_IN: Mapping[str, Extractor] = MappingProxyType(
    {
        "urls": entities.urls,
        "emails": entities.emails,
        "quotes": entities.quotes,
        "functions": entities.functions,
        "papers": entities.papers,
        "paths": entities.paths,
        "dates": entities.dates,
        "times": entities.times,
        "ids": entities.ids,
        "numbers": entities.numbers,
        "names": entities.names,
    }
)
"""The extractors of this package. Earlier ones take their stretch of a text from later ones, but for quotes."""

DEFAULT = GroundingConfig().extractors
"""Those that are used where nothing else is said."""


def extract(text: str, extractors: Sequence[Extractor]) -> list[Claim]:
    """Return the claims of a folded text, in order; where two overlap, that of the earlier extractor.

    Examples
    --------
    >>> from coherence.detect.normal_values import fold
    >>> chosen = [BUILT_IN[name] for name in DEFAULT]
    >>> [(claim.kind, *claim.forms) for claim in extract(fold("CVE-2021-44228 was found on May 1, 2024."), chosen)]
    [('id', 'id:cve-2021-44228'), ('date', 'd:2024-05-01')]
    """
    return extract_some(text, extractors)[0]


def extract_some(text: str, extractors: Sequence[Extractor]) -> tuple[list[Claim], bool]:
    """Return the claims of a folded text, and whether there are, or may be, more of them than are looked at."""
    taken = bytearray(len(text) + 1)
    kept: list[Claim] = []
    cut = False
    for find in extractors:
        found = find(text)
        cut = cut or len(found) >= MOST_CLAIMS
        for claim in found[:MOST_CLAIMS]:
            end = min(claim.start + len(claim.text), len(text))
            if taken[claim.start] or taken[max(end - 1, claim.start)]:
                continue
            if claim.kind != "quote":
                taken[claim.start : end] = b"\1" * (end - claim.start)
            kept.append(claim)
    kept.sort(key=lambda claim: claim.start)
    return kept[:MOST_CLAIMS], cut or len(kept) > MOST_CLAIMS
