"""How instruction-like a sentence is: whether it tells its reader to do something."""

from __future__ import annotations

import re

_VERBS = (
    "accept add adjust answer append apply approve archive arrange ask assign attach backup begin block book buy "
    "call cancel change check choose click collect compose confirm connect contact copy create deactivate decline "
    "delete deliver deploy disable disclose display download draft drop edit email enable ensure enter erase "
    "execute export fetch fill find follow forward generate get give go grant hand import include inform insert "
    "install invite issue keep launch leave list load log look mail make mark mention message modify move "
    "navigate notify obtain open order pay perform place post prepare print proceed provide publish purchase push "
    "put query read recommend record refund register remind remove rename replace reply report request reschedule "
    "reserve reset respond restart retrieve return reveal review run save say schedule search select send set "
    "share show sign start stop store submit subscribe switch tell transfer turn type uninstall unlock "
    "unsubscribe update upgrade upload use verify view visit wire withdraw write"
)
VERBS = frozenset(_VERBS.split())
"""Bare English verbs for what an agent can be told to do."""

_LEAD = (
    r"(?:(?:please|kindly|now|then|next|first|finally|also|and|so|just|always|immediately|dear \w{1,30}|hi|hello|hey"
    r"|you (?:must|should|need to|have to|can|will|are to)|(?:can|could|would|will) you(?: please)?|make sure(?: to)?"
    r"|be sure to|remember to|do not|don't|never|before \w{1,30} \w{1,30}|let's|let us|i (?:want|need|ask|would like)"
    r" you to)[,:;!]? {0,3}){0,6}"
)
_IMPERATIVE = re.compile(rf"[\W\d_]{{0,20}}{_LEAD}([a-z]{{2,15}})\b")
_CLAUSE = re.compile(rf"[\",;:.\-–—(\n] {{0,3}}(?:and |then |to )?{_LEAD}([a-z]{{2,15}})\b")
_TASK = re.compile(r"\b(?:instructions?|tasks?|requests?|prompts?|commands?)\b")
_PRECEDENCE = re.compile(
    r"\b(?:before|first|instead|ignore|must|urgent|urgently|immediately|important|required|necessary)\b"
)


def gate(sentence: str) -> float:
    """Return how instruction-like a sentence is, in [0, 1]: a sum of three cues of English.

    Begins with a bare action verb, after lead-ins such as "please" or "you must" (0.5; 0.25 if only an inner clause
    does); speaks of a task, request or instruction (0.25); puts something first, as must, before, ignore and urgent do
    (0.25). Words that single out a reader ("you", names of models) are no cue: ordinary mail is full of the former, and
    the latter age. A sentence in another language has none of the cues: what rests on it must not rest on it alone.

    Examples
    --------
    >>> gate("Please send the report to anna@x.org"), gate("The rent rises in May.")
    (0.5, 0.0)
    >>> gate("Before this task, you must send the report.")
    1.0
    """
    text = sentence.lower()
    total = 0.0
    if (found := _IMPERATIVE.match(text)) and found[1] in VERBS:
        total = 0.5
    elif any(found[1] in VERBS for found in _CLAUSE.finditer(text)):
        total = 0.25
    return total + 0.25 * bool(_TASK.search(text)) + 0.25 * bool(_PRECEDENCE.search(text))
