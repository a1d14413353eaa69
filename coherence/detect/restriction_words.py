"""Words and forms of clauses that restrict, in seven languages."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.detect.tables import expression, names_by_word, table, words_by_name

_TABLE = table("restrictions")
_WORDS = words_by_name(_TABLE["words"])


def _form(name: str) -> re.Pattern[str]:
    return lazy_regex(expression(_TABLE["forms"][name]), re.IGNORECASE)


CLAUSE_END = _form("clause_end")
WORD = lazy_regex(r"(?:(?<!\S)\.)?[\w@/~*+-][\w@./~*'+-]*")
CONTRACTED = _form("contracted")
CONDITION = _form("condition")
MINE = _form("mine")
PHRASES = {
    phrase: word for word, phrases in _TABLE["phrases"].items() for phrase in phrases.replace("\n", "").split("|")
}
"""Phrases that are read as one word."""
PHRASE = lazy_regex(rf"\b(?:{'|'.join(sorted(PHRASES, key=len, reverse=True))})\b", re.IGNORECASE)
NOT = _WORDS["not"]
CONTRAST = _WORDS["contrast"]
PREPOSITIONS = _WORDS["prepositions"]
AVOID = _WORDS["avoid"]
WITHOUT = _WORDS["without"]
MODAL = _WORDS["modal"]
OPENERS = _WORDS["openers"]
FILL = _WORDS["fill"]
LIGHT = _WORDS["light"]
PLACES = _WORDS["places"]
MENTAL = _WORDS["mental"]
TELLING = _WORDS["telling"]
SUBJECTS = _WORDS["subjects"]
ANY = _WORDS["any"]
GENERIC = _WORDS["generic"]
NEW = _WORDS["new"]
NO_MATTER = _WORDS["no_matter"]
"""Nouns that "no" describes rather than forbids."""
VAGUE = _WORDS["vague"]
ONLY_IN = _form("only_in")
POLITE = _form("polite")
RELATIVE = _form("relative")
LISTED = _form("listed")
THERE = _form("there")
THEIRS = _form("theirs")
FOR_GOOD = _form("for_good")
EXISTING = _form("existing")
BE = _WORDS["be"]
OTHER_MODAL = _WORDS["other_modal"]
GERMAN_NOT = _form("german_not")
ROMANCE_NOT = _WORDS["romance_not"]
QUANTIFIED = _WORDS["quantified"]
STAYS = _form("stays")
CLOSED = _form("closed")
OUT = _form("out")
AT = lazy_regex(r"\s(?:in|on|of|from|with|and|und|et|y)\s")
ALL = _form("all")
EXCEPT = _form("except")
MYSELF = _form("myself")
LOOK = _form("look")
CHINESE_ACTS = names_by_word(_TABLE["chinese"]["acts"])
_ACTS = "|".join(sorted(CHINESE_ACTS, key=len, reverse=True))
CHINESE = lazy_regex(
    r"(?:不要|不得|禁止|不能|不可以?|不准|不许|请勿|切勿|勿|别)(?:再|去|在|用|给|把|对|随意|擅自|直接|任何){0,3}"
    rf"(?P<before>[^。，,;；!！?？\s]{{0,8}}?)(?P<act>{_ACTS})(?P<what>[^。，,;；!！?？\s]{{0,16}})"
)
CHINESE_MORE = lazy_regex(rf"(?:、|或者?|和|及|与)({_ACTS})")
"""Further acts of the same clause."""
CHINESE_THINGS = names_by_word(_TABLE["chinese"]["things"])
CUES = tuple(cue.replace("_", " ") for cue in _TABLE["cues"].split())
"""One of these is in any sentence that forbids something."""
NEGATIVE = _form("negative")
