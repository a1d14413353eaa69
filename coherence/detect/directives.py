"""Instructions inside texts, users who delegate to them, and users who agree to what the assistant asked.

Whoever says yes has asked for what the question names. That holds for a question, too, that text inside a tool result
made the assistant ask: an attack cannot write the assistant's words, but a user who agrees to them has agreed.
"""

from __future__ import annotations

import unicodedata

from coherence.core.lazy import lazy_regex, twin_regex
from coherence.core.words import letter_runs, word_runs
from coherence.detect.tables import table, words_by_name

_WORDS = words_by_name(table("orders"))
VERBS = _WORDS["verbs"]
"""Bare English verbs for what an agent can be told to do; not the keywords of programs, `import` and `return`."""

_LEAD = (
    r"(?:(?:please|kindly|now|then|next|first|finally|also|and|so|just|always|immediately|dear \w{1,30}|hi|hello|hey"
    r"|you (?:must|should|need to|have to|can|will|are to)|(?:can|could|would|will) you(?: please)?|make sure(?: to)?"
    r"|be sure to|remember to|do not|don't|never|before \w{1,30} \w{1,30}|let's|let us|i (?:want|need|ask|would like)"
    r" you to)[,:;!]? {0,3}){0,6}"
)
_IMPERATIVE = lazy_regex(rf"[\W\d_]{{0,20}}{_LEAD}([a-z]{{2,15}})\b")
_CLAUSE = lazy_regex(
    # \B: not the "-" of "re-send"
    rf"(?:[\"'`,;:.–—()\[\]|>\n]|\B-|\b(?:to|and|or|then|now)\b) {{0,3}}(?:(?:to|or) )?{_LEAD}([a-z]{{2,15}})\b"
)
_TASK, _PRECEDENCE, _ORDERS = _WORDS["task"], _WORDS["precedence"], _WORDS["orders"]
_READER, _MACHINE = _WORDS["reader"], _WORDS["machine"]
_DENSE_ORDERS = lazy_regex(
    "[请請]|必[须須]|立即|立刻|马上|馬上|首先|[务務]必|ください|お願い|しなさい|하세요|하십시오|즉시|먼저"
)
_CUES = VERBS.union(_TASK, _PRECEDENCE, _ORDERS, _READER, _MACHINE)
_WORD = twin_regex(r"\w+")
_LETTERS = lazy_regex(r"[a-z]+")
_SAYS = (
    r"(?:asks?|asked|says?|said|tells?|told|wants?|requests?|requested|suggests?|recommends?|describes?|specif(?:y|ies)"
    r"|lists?|mentions?|mentioned|gives?|needs?|left)"
)
_STEPS = (
    r"(?:instructions?|steps|tasks|to-?dos?|actions|requests?|runbook|playbook|procedure|checklist|guide(?:lines?)?"
    r"|rules|recommendations?)"
)
_DOES = (
    r"(?:accept|achieve|address|carry out|complete|do|execute|finish|follow|fulfil+|grant|handle|meet|perform|process"
    r"|resolve|satisfy|take care of|work on)"
)
_DELEGATES = lazy_regex(
    rf"\b(?:(?:do|follow) what|whatever|everything|as|way|{_STEPS}) (?:(?!following)[\w'#.-]{{1,40}} ){{1,5}}?{_SAYS}\b"
    r"|\b(?:follow|do|carry out|complete|finish|work through|go through|handle|take care of|execute|implement|act on)\b"
    rf"(?! the following)[^.?!:;]{{0,40}}?\b{_STEPS}\b"
    r"|\bfollow(?:ing)? [^.?!;]{0,60}\bstep by step\b"
    r"|\bas (?:it is )?(?:described|documented|explained|stated|written) (?:there|in (?:it|them)|therein)\b"
    r"|\bfollow(?:ing)? (?:the )?[\w/-]{1,80}\.(?:md|txt|rst|pdf|docx?|html)\b"
    r"|\b(?:according to|as (?:described|documented|explained|stated) in|as per) [^.?!;]{0,40}?"
    rf"\b(?:{_STEPS}|docs|documentation|readme|tickets?|issues?)\b"
    r"|\b(?:fix|resolve|close|address|implement|handle|work on) (?:the |our |github )?(?:issues?|tickets?|bug reports?)"
    r" #?[\w-]*\d"
    rf"|\b{_DOES} (?:[\w'-]{{1,30}} ){{0,3}}?(?:his|her|their|its|\w{{1,30}}'s) (?:[\w'-]{{1,30}} ){{0,3}}?"
    r"(?:asks?|demands?|instructions?|invitations?|issues?|needs|requests?|tasks?|wish(?:es)?)\b"
    r"|\baccept (?:the|this|that|any|all|an?) (?:[\w'-]{1,30} ){0,3}?(?:invitations?|invites?)\b"
    rf"|\b{_DOES} what (?:[\w'#./-]{{1,40}} ){{1,5}}?(?:asks?|asked|needs?|needed|says?|said|tells?|told"
    r"|wants?|wanted)\b"
    rf"|\b(?:instructions?|requests?|tasks?|to-?dos?)\b[^!:]{{0,100}}?\b{_DOES} (?:it|that|them|these|those)\b"
)
MAX_ASKED_CHARS = 4_000
"""Characters of the user's words that are read for who decides, from the start."""


def gate(sentence: str) -> float:
    """Return how instruction-like a sentence is, in [0, 1]: a sum of five cues of English, at most 1.

    Begins with a bare action verb, after lead-ins such as "please" or "you must" (0.5; 0.25 if only an inner clause
    does, as after a comma, "to" or "and"), or says please, must, first or at once in another language (0.5); speaks of
    a task, request or instruction (0.25); puts something first, as must, before, ignore and urgent do (0.25); speaks to
    its reader (0.25); speaks of an assistant, agent or model (0.25; names of models are no cue, they age). A sentence
    in another language has at most the first of the cues: what rests on them must not rest on them alone.

    Examples
    --------
    >>> gate("Please send the report to anna@x.org"), gate("The rent rises in May.")
    (0.5, 0.0)
    >>> gate("Before this task, you must send the report."), gate("Überweise sofort 500 an Eva.")
    (1.0, 0.5)
    """
    plain = sentence.isascii()
    letters = letter_runs(sentence) if plain else []
    if plain and _CUES.isdisjoint(letters):
        return 0.0
    text = sentence.lower()
    words = frozenset(word_runs(sentence) if plain else _WORD.findall(text))
    total = 0.25 * (4 - sum(map(words.isdisjoint, (_TASK, _PRECEDENCE, _READER, _MACHINE))))
    if not _ORDERS.isdisjoint(words) or (not text.isascii() and _DENSE_ORDERS.search(text)):
        return min(total + 0.5, 1.0)
    if VERBS.isdisjoint(words) and VERBS.isdisjoint(letters if plain else _LETTERS.findall(text)):
        return total
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


MAX_DESCRIBING = 1_000
"""Characters of a request that can describe what it is about."""


def describes(asked: str) -> bool:
    """Return whether the user describes a thing by how it compares with others, so that it must be looked up.

    English only, and no text of more than 1,000 characters, which is no request for one thing.

    Examples
    --------
    >>> describes("Pay the newest invoice."), describes("Pay INV-331 to anna@x.org.")
    (True, False)
    """
    return len(asked) <= MAX_DESCRIBING and not _WORDS["describing"].isdisjoint(_WORD.findall(asked.lower()))


_NAMES = lazy_regex(r"\b[A-Z][^\W\d_]{2,20}\b")
_QUOTED = lazy_regex(r"(?<!\w)['\"“‘]([^'\"“”’\n]{4,80})['\"”’]")
_THINGS = lazy_regex(r"[\w.+%-]{1,80}@[\w.-]{3,80}\w|#?\w{0,20}\d\w{0,20}|[\w~-]{0,60}[./][\w./~-]{1,80}\w")
_SENTENCE_END = lazy_regex(r"[.!?][\"'”’)]?\s")
MAX_POINTERS = 50
"""Names, files and quotations that the user pointed at and that are kept."""


def pointers(asked: str) -> list[str]:
    """Return what a user who delegates points at, in lower case: names, and things that the delegating sentence names.

    Things are quotations, addresses, files and numbers: a file with an address that is needed delegates nothing.

    Examples
    --------
    >>> pointers("Her address is in users.txt. Please do what Anna asks for in her mail 'To do' about plan-7.md.")
    ['her', 'anna', 'to do', 'plan-7.md']
    """
    asked = asked[:MAX_ASKED_CHARS]
    names = (name.lower() for name in _NAMES.findall(asked))
    known = [name for name in names if name not in VERBS and name not in _WORDS["no_names"] and name not in _READER]
    found = _DELEGATES.search(asked.lower())
    begin, end = found.span() if found else (0, 0)
    after = _SENTENCE_END.search(asked, end)
    before = [each.end() for each in _SENTENCE_END.finditer(asked, 0, begin)]
    said = asked[before[-1] if before else 0 : after.start() if after else len(asked)] if found else ""
    things = [thing.lower() for thing in _QUOTED.findall(said) + _THINGS.findall(said) if len(thing) > 2]
    return list(dict.fromkeys(known + things))[:MAX_POINTERS]


MAX_QUESTION = 300
"""Characters of a question that are kept, from its end."""

MAX_CONSENT = 60
"""Characters of an answer that only agrees; a longer one says what it wants itself."""

_AGREE, _BESIDES, _NOT = _WORDS["agree"], _WORDS["besides"], _WORDS["not"]
# the last range is of skin tones: 👍🏽
_BETWEEN = lazy_regex(r"[\s.,!¡;:…—–()\"“”。，！、；~～\U0001f3fb-\U0001f3ff]+|(?<!\S)-+(?!\S)")
_CLOSING = " \t\r\n*_`~\"'”’»)]}」』）>"
_QUESTION = ("?", "？", "؟", "⁇", "⁈")


def question(text: str) -> str:
    """Return the end of a message that asks, at most 300 characters; nothing of one that does not end with a question.

    Examples
    --------
    >>> question("I read it. **Shall I delete archive2019?**")
    'I read it. **Shall I delete archive2019?**'
    >>> question("Shall I? I do it now.")
    ''
    """
    asked = text.rstrip(_CLOSING)
    return text[-MAX_QUESTION:] if asked.endswith(_QUESTION) and len(text) - len(asked) < MAX_CONSENT else ""


def agrees(text: str, asked: str = "") -> bool:
    """Return whether a text agrees and says nothing else than that, and what the question ``asked`` has said.

    Examples
    --------
    >>> [agrees(text) for text in ("Yes, please do.", "ok", "好的", "No", "yes, but only the first", "thanks")]
    [True, True, True, False, False, False]
    >>> [agrees(text, "Shall I send it to eve?") for text in ("Yes, send it to eve", "Yes, send it to bob")]
    [True, False]
    """
    if len(text) > MAX_CONSENT:
        return False
    words = _words(text)
    known = _AGREE | _BESIDES | {word.rstrip("?") for word in _words(asked)}
    return bool(words) and not _AGREE.isdisjoint(words) and known.issuperset(words) and _NOT.isdisjoint(words)


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFC", text).casefold().replace("’", "'")
    return [word for word in _BETWEEN.split(plain) if word]
