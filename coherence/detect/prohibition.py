"""One thing that must not be done."""

from __future__ import annotations

import msgspec


class Prohibition(msgspec.Struct, frozen=True):
    """One thing that must not be done.

    Examples
    --------
    >>> from coherence.detect.restrictions import prohibitions
    >>> found = list(prohibitions("Make it faster. Do not touch any file below tests/, and deploy nothing."))
    >>> found[0].acts, found[0].objects, found[0].sentence
    (('change',), ('test',), 'Do not touch any file below tests/, and deploy nothing.')
    """

    acts: tuple[str, ...]
    """Families of acts; ``any`` = whatever does more than read."""
    objects: tuple[str, ...]
    """Tokens that name what it must not be done to; empty = anything."""
    sentence: str
    named: str = ""
    """The words of the thing, where the sentence puts no spaces between words."""
    seq: int = 0
    limit: float | None = None
    """Number that must not be passed."""
    unit: str = ""
    """Unit of the limit: ``money``, ``word``, ``sentence``, ``line``, or a token."""
    only: tuple[str, ...] = ()
    """Things that it may be done to, and no others."""
    of: str = ""
    """Of what sort the allowed things are: ``path``, ``person``, ``domain``, ``house``, ``language``, ``hour``."""
    forms: tuple[str, ...] = ()
    """Forms that an answer must not show."""
    once: bool = False
    """True if the next word of the user lifts it: "not before I have seen it"."""
    lasting: bool = False
    """True if it comes from the system text, and holds for every goal."""
