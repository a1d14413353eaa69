"""How much a word of an error message tells: "not" and "error" stand in all of them, "broadcast" in few.

The counts are of the families of errors in ``tests/lessons/errors`` (the development half), made by
``python tests/bench/lesson_recall.py --words``. A word that is not listed stands in one or two of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from coherence.lessons.normal import ErrorShape

FAMILIES = 215
"""Families that were counted."""

_BY_COUNT = {
    66: "not",
    52: "the",
    50: "error",
    30: "failed for",
    25: "cannot",
    24: "found",
    22: "with",
    19: "has this",
    17: "from",
    16: "and file you",
    15: "can",
    13: "are could find module use was",
    12: "code exceeded type",
    10: "invalid line object unexpected when",
    9: "allowed does have package requested your",
    8: "missing typeerror while",
    7: "already been function import key model only resolve run runtimeerror unable valid valueerror",
    6: (
        "access attribute but class expected index install load must name operation please read request start "
        "such try used value"
    ),
    5: (
        "application argument column context curl data directory exist input installed json limit match "
        "maximum occurred one out port process status that timeout token unsupported url version warning "
        "which"
    ),
    4: (
        "address after array attributeerror bad because check conflict connection couldn create currently "
        "detected element errno host max memory permitted reached received response retries running supported "
        "syntaxerror system than time too undefined"
    ),
    3: (
        "again another arguments attempted before build call called calling caused command configured current "
        "doesn engine environment field following get global got happen here http imported incompatible "
        "incorrect inside keyword length lock many matching method mismatch more named new non outside "
        "overflow parameter problem properties rate reading reference registry require requirements requires "
        "resource returned runtime script see set statement stream task test tried trying unknown "
        "unrecognized updated validationerror would yaml yet"
    ),
}
"""Families -> the words that stand in so many."""

COUNTS = {word: count for count, words in _BY_COUNT.items() for word in words.split()}

_STEMS_BY_COUNT = {
    123: "error",
    99: "not",
    45: "fail",
    42: "no",
    41: "found",
    35: "cannot fil",
    24: "could",
    23: "excepti",
    22: "request typ",
    20: "find",
    19: "can",
    18: "use",
    17: "cod",
    16: "invalid when",
    15: "doe miss unabl valu whil",
    14: "match modul nam operati",
    13: "creat key runtim version",
    12: "call exist object packag resolv such unexpec",
    11: "already connect directo exceed expect install lin",
    10: "acces allow argumen been import index load read requir run start try",
    9: "configu input occurr only proces server used",
    8: "current do functio messag model resourc return updat valid",
    7: (
        "but clas column context data err limit memory must non open out pleas project referen reposit runn statu "
        "support tim token too undefin unsuppo"
    ),
    6: ("applica attribu bad becaus command couldn depende errno execut fetch get host http need one os port"),
    5: (
        "addres authent availab build check client conflic curl detect doesn element exit follow got json lock "
        "maximum pars receiv see servic specifi syntax system timeout ts unknown upstrea warn"
    ),
    4: (
        "after another api app array attempt befor compil contain declar happen incompa length local locat lookup "
        "many method mismatc mor new nod overflo paramet permitt pnpm propert reach reason script session than url "
        "validat variabl"
    ),
    3: (
        "again allocat bind block cach cancel caus certifi compone correct cpu default definit deni direct downloa "
        "duplica dur enabl end engin environ exec executa explici field first global her incorre indenta initial "
        "insid issu keyword known list long mak map may namespa nil npm option output outsid panic path permiss "
        "positio pq previou problem provid provide rat re recogni recover refus registr reject releas remot remov "
        "require respons retry root scop set should signatu som sourc ssl stack stateme stream target task tcp "
        "termina test tri undecla unpack unrecog up usag using verific verify visit we would writ yaml yet"
    ),
}
"""Families -> the stems that stand in so many of their most telling lines."""

RARE = 1.0
"""Families that are assumed to use a word that is not listed."""


class Wording(NamedTuple):
    """The stems of what an error says without what it names, and what they weigh together."""

    stems: frozenset[str]
    weight: float


def wording_of(shape: ErrorShape) -> Wording:
    """Return the stems of what an error says without what it names, weighed once for many comparisons."""
    stems = frozenset(shape.words)
    return Wording(stems, math.fsum(map(_WEIGHT_OF, stems)))


def alike(one: Wording, other: Wording) -> float:
    """Return how much of what two wordings say is the same, in [0, 1]: a cosine of words weighted by rarity.

    The weight is the inverse document frequency, ``log((families + 1) / (families with the word + 0.5))``
    (Spärck Jones, 1972).

    Examples
    --------
    >>> from coherence.lessons.normal import normalise
    >>> lacking, denied = [wording_of(normalise(f"Error: {said}")) for said in ("no such module", "permission denied")]
    >>> alike(lacking, lacking), alike(lacking, denied)
    (1.0, 0.0)
    """
    both = one.stems & other.stems
    return math.fsum(map(_WEIGHT_OF, both)) / math.sqrt(one.weight * other.weight) if both else 0.0


class _Weights(dict[str, float]):
    """Stem -> weight; one that is not listed is rare."""

    def __missing__(self, word: str) -> float:
        return _RARE


_RARE = math.log((FAMILIES + 1) / (RARE + 0.5))
_WEIGHT_OF = _Weights(
    (word, math.log((FAMILIES + 1) / (count + 0.5)))
    for count, words in _STEMS_BY_COUNT.items()
    for word in words.split()
).__getitem__
