"""A rule that tells a human's words about an error from an error's own text."""

from __future__ import annotations

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.lessons.clean import strip_prefixes
from coherence.lessons.error_words import TELLING, VAGUE
from coherence.lessons.tokens import WORD

MAX_WORDS = 80
"""Words of a text that are weighed; longer texts and such of more than three lines are no human's sentence."""


def is_prose(lines: list[str]) -> bool:
    """Return whether cleaned lines are a human's sentence or two about an error.

    The rule weighs signs: contractions, first persons, and the everyday words of people speak for a human; names of
    exceptions, codes, quoted names, places and the set phrases of tools speak against. In doubt it is an error text.

    Examples
    --------
    >>> is_prose(["the container cannot reach the database"]), is_prose(["cat: notes: No such file or directory"])
    (True, False)
    """
    text = "\n".join(lines).strip()
    if len(lines) > 3 or any(map(_is_printed, text.split("\n"))):
        return False
    text = text.replace("\n", " ")
    words = WORD.findall(text[:800].lower().replace("’", "'"))
    if not 3 <= len(words) <= MAX_WORDS or _MACHINE.search(text):
        return False
    human = sum(2 for word in words if word in _PERSONAL) + sum(1 for word in words if word in _EVERYDAY)
    small = sum(1 for word in words if word in _SMALL)
    against: float = (
        3 * len(_SET_PHRASES.findall(text[:800])) + 1.5 * len(_QUOTES.findall(text[:800])) + 2 * text.count(": ")
    )
    if not any(word in _PERSONAL for word in words):  # without one, a capital, a full stop and a new line are a tool's
        against += 0.5 * text[:1].isupper() + text.endswith(".") + 0.75 * (len(lines) - 1)
    low = text.lower()
    if len(words) > 4 and low == text and not any(word in low for word in TELLING + VAGUE):
        human += 1
    score = human + min(small, 4) * 0.5 - against + (0.5 if text[:1].islower() else 0)
    return score >= 1.5


def _is_printed(line: str) -> bool:
    """Return whether a program wrote a line: a prefix before its message tells."""
    if not line[:1].isalnum():
        return True
    stripped = strip_prefixes(line)
    return stripped.error or stripped.warning


_PERSONAL = word_set(
    "i my we our me us i'm i've we're i'd we've mine won't don't it's that's what's there's why how weird strange "
    "somehow broken complains complaining hangs hang stuck crashes crashing keeps refuses says tells gives seems "
    "looks nothing anymore everything every whenever although though suddenly apparently forgot forgotten wants "
    "trying tries"
)
_EVERYDAY = word_set(
    "isn't doesn't can't didn't wasn't aren't hasn't haven't couldn't because is are was gets get got when after "
    "before while but so even still always never just only without about machine laptop computer library package app "
    "program code installed missing wrong find finds found reach start starts run runs running work works working use "
    "using used need needs want wants different version versions put new old too much many long ever same somebody "
    "someone something else another already all"
)
_SMALL = word_set(
    "the a an is are was were be to of in on at it its this that and or but with for from has have does not no there "
    "by which who then than as into while when"
)
_MACHINE = lazy_regex(
    r"\b[A-Z]\w*(?:Error|Exception)\b|\bE[A-Z]{4,}\b|\b(?:ERR_|SIG)[A-Z]+|^\W{0,3}(?:error|fatal|warning|panic"
    r"|failed|failure|ERROR|FATAL|Error|Fatal|Warning|FAILED|Failed|CRITICAL|Traceback|Caused by|remote|hint|note)\b\W"
    r"|\berror(?:\[| [A-Z]{1,4}\d{2,})|[\w/]\.\w{1,5}:\d+|^\s*at \S+\(|\bFile \"|^[\w./-]{1,60}: "
    r"|\b0x[0-9a-fA-F]{4,}|[{}]|=>|::"
    r"|\(\w+ \w+\)$|^\[|\b[A-Z]{1,6}-?\d{3,6}\b|\w://|\w:\d{2,5}\b|\b\d+ ?ms\b|\d\.\d+\.\d+\.\d|\bline \d"
    r"|exit (?:code|status) \d|^\S+\(\d+"
)
_SET_PHRASES = lazy_regex(
    r"\b(?:No such|[Nn]ot recognized as|[Uu]nable to|[Ff]ailed to|[Cc]ould not|Cannot \w+|^found"
    r"|[Cc]ould(?: not|n't)|being used by|[Uu]pdates were|No module named|[Pp]ermission denied"
    r"|[Cc]ommand not found|[Cc]onnection refused"
    r"|[Ii]nvalid|[Uu]nexpected|[Uu]ndefined|[Uu]nresolved|does not (?:exist|match|support|implement|satisfy)"
    r"|do not match"
    r"|is not (?:recognized|defined|a |assignable|recognized|supported|allowed|valid|callable|subscriptable"
    r"|iterable)|not permitted|timed out"
    r"|must (?:be|have)|[Ee]xpected|[Aa]ccess denied|already (?:exists|in use)|[Ss]egmentation fault"
    r"|[Uu]nsupported|[Rr]equired"
    r"|[Pp]lease (?:make sure|check|see|run|use|try)|[Rr]ejected|not set to an|Is the \w+ daemon"
    r"|You have an error|has no attribute|violates|[Nn]ot found)\b"
)
_QUOTES = lazy_regex(r"/\w+\.\w+\b|\w\.\w*[a-z][A-Z]|\blocalhost\b|'[^'\s]{1,60}'|\"[^\"\n]{1,60}\"|`[^`\n]{1,60}`")
