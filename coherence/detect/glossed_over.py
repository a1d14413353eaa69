"""Answers that pass over how the calls of a task came out: a failure told as success, a success as failure, no call.

Weaker than a contradiction, since it goes by what is missing. So it is judged of an answer only, not of remarks on the
way, and nothing here asks for more than guidance.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.text_analysis import tokens, weight

MAX_OUTCOMES = 16
"""Calls of a task that are remembered, the newest."""

MAX_TOKENS = 24
"""Tokens of one call, or of its result, that are remembered."""

SHORT_ANSWER = 1_500
"""Characters of an answer up to which it would tell of a failure if it meant to."""

LEAST_WORD = 4


class Outcome(msgspec.Struct):
    """How a call came out."""

    seq: int
    tool: str
    asked: list[str]
    """Tokens of its arguments."""
    failed: bool
    acts: list[str]
    shell: bool
    line: str = ""
    """The telling line of its result."""
    told: list[str] = []
    """Tokens of that line that its arguments have not."""


class Passed(msgspec.Struct, frozen=True):
    """A statement that passes over how a call came out."""

    statement: str
    seq: int
    line: str
    why: str
    """``failed``, ``worked`` or ``not done``."""


_OWNS_UP = lazy_regex(
    r"\b(?:fail\w*|errors?|unable|can(?:no|')t|could(?:n't| not)|did(?:n't| not)|not|n[eo]ither|never|without|nothing"
    r"|\w+n't|unfortunately|sorry|but|however|only|except|although|though|still|yet|missing|remain\w*|pending|retr\w+"
    r"|instead|lacks?|broken|denied|refused|rejected|invalid|expired|locked|timed? ?out|unavailable|skipped|partial\w*"
    r"|would|will|shall|let me|i'll|going to|next|if|please|nicht|kein\w*|leider|aber|nur|fehl\w*|konnte\w*|ohne"
    r"|pas|aucun\w*|mais|échou\w*|erreur|malheureusement|sans|pero|sin|falló|lamentablemente|ningun\w*|non|però|senza)\b"
    r"|\?",
    2,
)
"""Words by which an answer tells that something is not as it should be, or is yet to be done."""

_FLAWLESS = lazy_regex(
    r"\b(?:without|no|zero|0|not a|nothing|keine?|sans|aucune?|sin|senza)"
    r" (?:any |further |more |remaining |single |left )?(?:to (?:complain|fix|do)\w*"
    r"|(?:problem|error|issue|failure|warning|fault|fehler|erreur|error|problema|high|critical)\w{0,3})\b",
    2,
)
_CLAIMS = lazy_regex(
    r"\b(?:is|are|was|were|has|have|had|been|i|we|all|both|every|yes|done|now|looks?|works?|answers?|passes|finds?|ist|sind"
    r"|wurde\w*|hat|habe\w*|ja|oui|est|sont|a|ont|sí|está\w*|fue|son|ha|han|è|sono)\b",
    2,
)
_FAILURE = lazy_regex(
    r"\b(?:failed|fails|couldn't|could not|can't|cannot|unable to|didn't (?:work|go|succeed)|did not (?:work|go|succeed)"
    r"|doesn't work|refused|was rejected|(?:n?either|none)\b[^.]{0,30}\b(?:works?|worked|succeeded)|broke off|with an error"
    r"|an error|fehlgeschlagen|konnte\w* (?:ich |wir )?nicht|échoué|n'a pas pu|falló|no (?:se )?pud\w+|non è riuscit\w+)\b",
    2,
)
_FIRST = lazy_regex(
    r"\b(?:i|we)(?:'ve| have|'m| am)?(?: just| already| also| now)? (?P<done>sent|emailed|mailed|messaged|texted|called|notified"
    r"|deleted|removed|paid|transferred|refunded|booked|reserved|ordered|cancelled|canceled|uploaded|published|deployed"
    r"|merged|installed|approved|submitted|posted|tested|ran|measured|verified|rebuilt|restarted)\b",
    2,
)
_DOES = {
    "sent emailed mailed messaged texted called notified": "send email mail message sms notify call reply post text slack",
    "deleted removed": "delete remove rm drop purge clear erase trash",
    "paid transferred refunded": "pay payment transfer refund charge money transaction invoice",
    "booked reserved ordered": "book reserve order purchase buy schedule create add",
    "cancelled canceled": "cancel delete remove",
    "uploaded published deployed posted submitted": "upload put push publish deploy release post submit scp sync send create",
    "merged": "merge git",
    "installed": "install pip npm apt add brew setup",
    "approved": "approve review accept merge update",
    "tested ran measured verified": "test run bash exec execute shell pytest measure bench check verify python eval",
    "rebuilt restarted": "build rebuild restart make reboot start deploy run",
}
_CALLED = {done: word_set(words) for names, words in _DOES.items() for done in names.split()}
_WORD = lazy_regex(r"[^\W\d_]{2,30}")
_PLANNED = word_set("draft drafts queued scheduled planned pending dry preview")


def passed_over(outcomes: Sequence[Outcome], statements: Sequence[str], text: str) -> Passed | None:
    """Return the statement of an answer that passes over how a call came out.

    Examples
    --------
    >>> done = Outcome(2, "upload", ["report.pdf"], True, ["publish"], False, "507 quota reached", ["507", "quota"])
    >>> passed_over([done], ["report.pdf is in the folder now."], "report.pdf is in the folder now.").why
    'failed'
    >>> passed_over([done], ["The quota is used up."], "The quota is used up.") is None
    True
    """
    if not outcomes or not statements or len(text) > SHORT_ANSWER:
        return None
    plain = text.replace("’", "'")
    said = tokens(text)
    failed = _open_failures(outcomes)
    if failed and not _OWNS_UP.search(_FLAWLESS.sub("", plain)):
        found = _unacknowledged(failed, outcomes, statements, said)
        if found is not None:
            return found
    if not failed and not any(each.failed for each in outcomes):
        acted = [each for each in outcomes if each.acts and not each.shell]
        for statement in statements if acted else ():
            found_failure = _FAILURE.search(statement.replace("’", "'"))
            if found_failure is not None and not statement.endswith("?"):
                about = acted[-1]
                alone = len({each.tool for each in outcomes}) == 1
                if (alone or any(_shares(each, tokens(statement)) for each in acted)) and not _FAILURE.search(about.line):
                    return Passed(statement, about.seq, about.line, "worked")
    return _never_done(outcomes, statements)


def _open_failures(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the failed calls that no later one of the same tool makes up for."""
    return [
        each
        for at, each in enumerate(outcomes)
        if each.failed and not any(later.tool == each.tool and not later.failed and _alike(each, later) for later in outcomes[at + 1 :])
    ]


def _alike(each: Outcome, later: Outcome) -> bool:
    """Tell whether two calls of one tool are about the same thing: what is named in one is named in the other."""
    own, other = set(each.asked), set(later.asked)
    return not own or each.shell or 2 * len(own & other) >= len(own)


def _unacknowledged(
    failed: Sequence[Outcome], outcomes: Sequence[Outcome], statements: Sequence[str], said: frozenset[str]
) -> Passed | None:
    newest = failed[-1]
    if any(each in said for outcome in failed for each in outcome.told if len(each) >= LEAST_WORD or each[0].isdigit()):
        return None
    whole = outcomes[-1].failed
    for statement in statements:
        if _CLAIMS.search(statement) is None:
            continue
        own = tokens(statement)
        named = next((each for each in failed if _shares(each, own, outcomes)), None)
        if whole or named is not None:
            about = named or newest
            return Passed(statement, about.seq, about.line, "failed")
    return None


def _shares(outcome: Outcome, said: frozenset[str], others: Sequence[Outcome] = ()) -> bool:
    """Tell whether a statement names what a call is about, and what none of the other calls is about."""
    own = set(outcome.asked).difference(*(each.asked for each in others if each is not outcome))
    return any(each in said and (len(each) >= LEAST_WORD or each[:1].isdigit()) for each in own)


def _never_done(outcomes: Sequence[Outcome], statements: Sequence[str]) -> Passed | None:
    """Return the statement that tells of an act for which no call was made."""
    if any(each.shell for each in outcomes):
        return None
    called = {word for each in outcomes for word in (*_WORD.findall(each.tool.replace("_", " ").lower()), *each.asked)}
    told = {word for each in outcomes for word in each.told}
    for statement in statements:
        found = _FIRST.search(statement.replace("’", "'"))
        if found is None or statement.endswith("?"):
            continue
        done = found["done"].lower()
        if _CALLED[done].isdisjoint(called) and tokens(done).isdisjoint(told):
            newest = next((each for each in reversed(outcomes) if not _PLANNED.isdisjoint(each.told)), outcomes[-1])
            return Passed(statement, newest.seq, newest.line, "not done")
    return None


def marks_of(found: frozenset[str]) -> list[str]:
    """Return the tokens that are remembered, those that name one thing first."""
    return sorted(sorted(found), key=weight, reverse=True)[:MAX_TOKENS]
