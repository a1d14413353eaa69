"""Words and forms of clauses that restrict, in seven languages."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex, one_of
from coherence.detect.tables import expressions, names_by_word, table, words_by_name

_TABLE = table("restrictions")
_WORDS = words_by_name(_TABLE["words"])
_FORMS = expressions(_TABLE["forms"])

CLAUSE_END = _FORMS["clause_end"]
WORD = lazy_regex(r"(?:(?<!\S)\.)?[\w@/~*+-][\w@./~*'+-]*")
CONTRACTED = _FORMS["contracted"]
CONDITION = _FORMS["condition"]
MINE = _FORMS["mine"]
PHRASES = {
    phrase: word for word, phrases in _TABLE["phrases"].items() for phrase in phrases.replace("\n", "").split("|")
}
"""Phrases that are read as one word."""
PHRASE = lazy_regex(rf"\b(?:{one_of(PHRASES)})\b", re.IGNORECASE)
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
ONLY_IN = _FORMS["only_in"]
POLITE = _FORMS["polite"]
RELATIVE = _FORMS["relative"]
LISTED = _FORMS["listed"]
THERE = _FORMS["there"]
THEIRS = _FORMS["theirs"]
FOR_GOOD = _FORMS["for_good"]
EXISTING = _FORMS["existing"]
BE = _WORDS["be"]
OTHER_MODAL = _WORDS["other_modal"]
GERMAN_NOT = _FORMS["german_not"]
ROMANCE_NOT = _WORDS["romance_not"]
QUANTIFIED = _WORDS["quantified"]
STAYS = _FORMS["stays"]
CLOSED = _FORMS["closed"]
DONE_BY = _FORMS["done_by"]
OUT = _FORMS["out"]
AT = lazy_regex(r"\s(?:in|on|of|from|with|and|und|et|y)\s")
ALL = _FORMS["all"]
EXCEPT = _FORMS["except"]
MYSELF = _FORMS["myself"]
LOOK = _FORMS["look"]
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
NEGATIVE = _FORMS["negative"]
