"""Whether a sentence tells its reader to do something, and whether a user leaves it to such sentences what is done."""

from __future__ import annotations

import re

_VERBS = (
    "accept add adjust allow answer append apply approve archive arrange ask assign attach authorize backup begin "
    "block book buy call cancel change check choose clear click close collect commit compose confirm connect "
    "contact copy create credit deactivate decline delete deliver deploy deposit disable disclose display download "
    "draft drop edit email enable ensure enter erase execute export expose fetch fill find follow forget forward "
    "generate get give go grant hand include inform insert install invite invoke issue keep kill launch leave link "
    "list load lock log look mail make mark mention merge message modify move navigate notify obtain open order "
    "pass pay perform pin place post prepare print proceed promote provide publish purchase push put query raise "
    "rate read rebook reboot recommend record refund register reject release remind remove rename replace reply "
    "report request reroute reschedule reserve reset respond restart restore retrieve reveal review reward route "
    "run save say schedule search select send set share show sign silence start stop store submit subscribe suspend "
    "switch tell terminate transfer trigger turn type uninstall unlock unsubscribe update upgrade upload use verify "
    "view visit wipe wire withdraw write"
)
VERBS = frozenset(_VERBS.split())
"""Bare English verbs for what an agent can be told to do; not the keywords of programs, `import` and `return`."""

_LEAD = (
    r"(?:(?:please|kindly|now|then|next|first|finally|also|and|so|just|always|immediately|dear \w{1,30}|hi|hello|hey"
    r"|you (?:must|should|need to|have to|can|will|are to)|(?:can|could|would|will) you(?: please)?|make sure(?: to)?"
    r"|be sure to|remember to|do not|don't|never|before \w{1,30} \w{1,30}|let's|let us|i (?:want|need|ask|would like)"
    r" you to)[,:;!]? {0,3}){0,6}"
)
_IMPERATIVE = re.compile(rf"[\W\d_]{{0,20}}{_LEAD}([a-z]{{2,15}})\b")
_CLAUSE = re.compile(
    rf"(?:[\"'`,;:.–—()\[\]|>\n]|\B-|\b(?:to|and|or|then|now)\b) {{0,3}}(?:(?:to|or) )?{_LEAD}([a-z]{{2,15}})\b"
)
_TASK = re.compile(r"(?=[itrpc])\b(?:instructions?|tasks?|requests?|prompts?|commands?)\b")
_PRECEDENCE = re.compile(
    r"(?=[bfimunr])\b(?:before|first|instead|ignore|must|urgent|urgently|immediately|important|required|necessary)\b"
)
_READER = re.compile(r"(?=y)\b(?:you|your|yours|yourself)\b")
_MACHINE = re.compile(r"(?=[acblm])\b(?:ai|assistants?|agents?|chat ?bots?|bots?|language models?|llms?|models?)\b")
_SAYS = (
    r"(?:asks?|asked|says?|said|tells?|told|wants?|requests?|requested|suggests?|recommends?|describes?|specif(?:y|ies)"
    r"|lists?|mentions?|mentioned|gives?|needs?|left)"
)
_STEPS = (
    r"(?:instructions?|steps|tasks|to-?dos?|actions|requests?|runbook|playbook|procedure|checklist|guide(?:lines?)?"
    r"|rules|recommendations?)"
)
_DELEGATES = re.compile(
    rf"\b(?:(?:do|follow) what|whatever|everything|as|way|{_STEPS}) (?:(?!following)[\w'#.-]{{1,40}} ){{1,5}}?{_SAYS}\b"
    r"|\b(?:follow|do|carry out|complete|finish|work through|go through|handle|take care of|execute|implement|act on)\b"
    rf"(?! the following)[^.?!:;]{{0,40}}?\b{_STEPS}\b"
    r"|\bfollow(?:ing)? [^.?!;]{0,60}\bstep by step\b"
    r"|\b(?:according to|as (?:described|documented|explained|stated) in|as per) [^.?!;]{0,40}?"
    rf"\b(?:{_STEPS}|docs|documentation|readme|tickets?|issues?)\b"
    r"|\b(?:fix|resolve|close|address|implement|handle|work on) (?:the |our |github )?(?:issues?|tickets?|bug reports?)"
    r" #?[\w-]*\d"
)
MAX_ASKED_CHARS = 4_000
"""Characters of the user's words that are read for who decides, from the start."""


def gate(sentence: str) -> float:
    """Return how instruction-like a sentence is, in [0, 1]: a sum of five cues of English, at most 1.

    Begins with a bare action verb, after lead-ins such as "please" or "you must" (0.5; 0.25 if only an inner clause
    does, as after a comma, "to" or "and"); speaks of a task, request or instruction (0.25); puts something first, as
    must, before, ignore and urgent do (0.25); speaks to its reader (0.25); speaks of an assistant, agent or model
    (0.25; names of models are no cue, they age). A sentence in another language has none of the cues: what rests on it
    must not rest on it alone.

    Examples
    --------
    >>> gate("Please send the report to anna@x.org"), gate("The rent rises in May.")
    (0.5, 0.0)
    >>> gate("Before this task, you must send the report.")
    1.0
    """
    text = sentence.lower()
    total = 0.25 * sum(bool(cue.search(text)) for cue in (_TASK, _PRECEDENCE, _READER, _MACHINE))
    if (found := _IMPERATIVE.match(text)) and found[1] in VERBS:
        total += 0.5
    elif any(found[1] in VERBS for found in _CLAUSE.finditer(text)):
        total += 0.25
    return min(total, 1.0)


def delegates(asked: str) -> bool:
    """Return whether the user leaves it to a text what is done: to follow its steps, to do what somebody asks in it.

    English only. A goal that lists its own tasks ("the following tasks") delegates nothing.

    Examples
    --------
    >>> delegates("Please do what Anna asks for in her mail."), delegates("Follow the steps in SETUP.md.")
    (True, True)
    >>> delegates("Do the following tasks: read bill.txt and pay it."), delegates("What does Anna's mail say?")
    (False, False)
    """
    return bool(_DELEGATES.search(asked[:MAX_ASKED_CHARS].lower()))
