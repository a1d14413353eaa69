"""Answers that pass over how the calls of a task came out: a failure told as success, a success as failure, no call.

Weaker than a contradiction, since it goes by what is missing. So it is judged of an answer only, not of remarks on the
way, and nothing here asks for more than guidance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.words import may_hold, word_set
from coherence.detect.text_analysis import is_name, tokens, weight

MAX_OUTCOMES = 16
"""Calls of a task that are remembered, the newest."""

MAX_TOKENS = 24
"""Tokens of one call, or of its result, that are remembered."""

SHORT_ANSWER = 1_500
"""Characters of an answer up to which it would tell of a failure if it meant to."""

LEAST_WORD = 4

LEAST_CLAIM = 3
"""Words of a statement."""


class Outcome(msgspec.Struct):
    """Outcome of a call."""

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
    """Tokens of that result that neither its arguments nor the goal have."""
    reads: bool = False
    """True for a call that only looks something up."""
    empty: bool = False
    """True where it failed only in that it found nothing."""


class Passed(msgspec.Struct, frozen=True):
    """A statement that passes over how a call came out."""

    statement: str
    seq: int
    line: str
    why: str
    """``failed``, ``worked`` or ``not done``."""


_OWNS_UP = lazy_regex(
    r"\b(?:fail\w*|errors?|unable|can(?:no|')t|could(?:n't| not)|did(?:n't| not)|no|none|not|n[eo]ither|never"
    r"|empty|without|nothing"
    r"|\w+n't|unfortunately|sorry|but|however|only|except|although|though|still|yet|missing|remain\w*|pending|retr\w+"
    r"|instead|lacks?|broken|denied|refused|rejected|timed? ?out|unavailable|skipped|partial\w*"
    r"|would|will|shall|let me|i'll|going to|next|if|please|nicht|kein\w*|leider|aber|nur|fehl\w*|konnte\w*|ohne"
    r"|pas|aucun\w*|mais|échou\w*|erreur|malheureusement|sans|pero|sin|falló|lamentablemente|ningun\w*|non|però|senza)\b"
    r"|\?",
    re.IGNORECASE,
)
"""Words by which an answer tells that something is not as it should be, or is yet to be done."""

_FLAWLESS = lazy_regex(
    r"\b(?:without|no|zero|0|not a|nothing|keine?|sans|aucune?|sin|senza)"
    r" (?:any |a |further |more |remaining |single |left )?(?:to (?:complain|fix|do)\w*"
    r"|(?:problem|error|issue|failure|warning|fault|hitch|trouble|incident|fehler|erreur|error|problema|high|critical)\w{0,3})\b",
    re.IGNORECASE,
)
_CLAIMS = lazy_regex(
    r"\b(?:is|are|was|were|has|have|had|been|i|we|all|both|every|yes|done|now|looks?|works?|answers?|passes|finds?|ist|sind"
    r"|wurde\w*|hat|habe\w*|ja|oui|est|sont|a|ont|sí|está\w*|fue|son|ha|han|è|sono)\b",
    re.IGNORECASE,
)
_FAILURE = lazy_regex(
    r"\b(?:failed|fails|bounced|turned (?:\w+ ){0,3}down|couldn't|could not|can't|cannot|unable to|not able to"
    r"|n't able to|didn't finish|did not finish|stopped (?:half|mid)\w*|aborted|declined|was denied"
    r"|didn't (?:work|go|succeed)|did not (?:work|go|succeed)"
    r"|doesn't work|refused|was rejected|(?:n?either|none)\b[^.]{0,30}\b(?:works?|worked|succeeded)|broke off"
    r"|with an error"
    r"|an error|fehlgeschlagen|konnte\w* (?:ich |wir )?nicht|échoué|n'(?:a|ai|ont|avons) pas pu|falló"
    r"|no (?:se )?pud\w+|non è riuscit\w+)\b",
    re.IGNORECASE,
)
_STATUS = lazy_regex(
    r"\b(?:status|state|result|outcome)[\"']?\s?[:=]\s?[\"']?(?:declined|failed|rejected|denied|refused|error|aborted)\b",
    re.IGNORECASE,
)
_IN_STATUS = (
    ("status", "state", "result", "outcome"),
    ("declined", "failed", "rejected", "denied", "refused", "error", "aborted"),
)
_REFUSED = lazy_regex(
    r"[\"'](?:ok|success|succeeded|accepted)[\"']\s?:\s?false\b|\brolled back\b|\bnothing to (?:commit|do|send"
    r"|update)\b"
    r"|\b(?:already )?up[- ]to[- ]date\b|\bno changes (?:made|detected)\b|\b0 (?:rows|files|items|records)\b",
    re.IGNORECASE,
)
"""What a result says that did nothing, or not what was asked."""
_IN_REFUSED = (
    *("false", "rolled back", "nothing to ", "to-date", "to date", "no changes "),
    *("0 rows", "0 files", "0 items", "0 records"),
)
_AT_ONCE = lazy_regex(
    r"\W{0,3}(?:out of stock|sold out|rejected|declined|bounced|refused|denied|unavailable|fully booked|skipped"
    r"|conflict"
    r"|not (?:found|allowed|permitted|available|possible)|limit exceeded|timeout|timed out|(?:\w{1,30} )?failed\b)",
    re.IGNORECASE,
)
"""How the result of a call begins that did nothing."""
_ABSENT = lazy_regex(
    r"\b(?:there (?:is|are) no|has no|have no|found no|no such|es gibt keine?n?|il n'y a (?:pas|aucune?)|no hay)"
    r" (?:\w{1,20} ){0,2}?(?P<noun>\w{3,30})|\bno (?P<none>\w{3,30}) (?:is|are|was|were|exists?|match\w*|came|found)\b",
    re.IGNORECASE,
)
_UNDONE = lazy_regex(
    r"\b(?:could not|couldn't|was unable to|were unable to|failed to|did not|didn't) (?P<act>\w{4,20})"
    r"|\b(?P<acting>\w{4,20}ing) (?:\w+ ){0,2}failed\b",
    re.IGNORECASE,
)
_MADE_UP_FOR = lazy_regex(
    r"\b(?:then|second|third|finally|now|eventually|worked|succeeded|went through|later|dann|ensuite)\b", 2
)
_TOTAL = lazy_regex(r"\b(?:both|n?either|twice|every|all|each|times|again|still|none|never)\b", re.IGNORECASE)
"""Words by which several tries came out alike."""
_FIRST = lazy_regex(
    r"\b(?:i|we)(?:'ve| have|'m| am)?(?: just| already| also| now)? (?P<done>sent|emailed|mailed|messaged"
    r"|texted|called|notified"
    r"|deleted|removed|paid|transferred|refunded|booked|reserved|ordered|cancelled|canceled|uploaded|published|deployed"
    r"|merged|installed|approved|submitted|posted|tested|ran|measured|verified|rebuilt|restarted)\b",
    re.IGNORECASE,
)
_NEGATED = lazy_regex(r"\b(?:no|not|none|nothing|never|without)\b|n['’]t\b", re.IGNORECASE)
_TESTS_PASS = lazy_regex(
    r"\b(?:all|the|every) (?:\w+ )?(?:tests?|checks?|suite) (?:now |all |still )?(?:pass(?:es|ed)?|succeed"
    r"|(?:is|are) green)\b",
    re.IGNORECASE,
)
_DOES = {
    "sent emailed mailed messaged texted called notified": "send email mail message sms notify call reply post "
    "text slack",
    "deleted removed": "delete remove rm drop purge clear erase trash",
    "paid transferred refunded": "pay payment transfer refund charge money transaction invoice",
    "booked reserved ordered": "book reserve order purchase buy schedule create add",
    "cancelled canceled": "cancel delete remove",
    "uploaded published deployed posted submitted": "upload put push publish deploy release post submit scp "
    "sync send create",
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
    if not failed and (_FAILURE.search(plain) or _ABSENT.search(plain) or _UNDONE.search(plain)):
        found = _denied(outcomes, statements, plain)
        if found is not None:
            return found
    if _FIRST.search(plain) or _TESTS_PASS.search(plain) or _LINTED.search(plain):
        return _never_done(outcomes, statements)
    return None


def _denied(outcomes: Sequence[Outcome], statements: Sequence[str], text: str) -> Passed | None:
    """Return the statement that tells of a failure, or of nothing found, although all went well in the end."""
    acted = [each for each in outcomes if not each.reads and not each.shell and not each.failed]
    ran = [each for each in outcomes if each.acts and each.shell and not each.failed]
    over = any(each.failed for each in outcomes)
    if over and (_MADE_UP_FOR.search(text) is not None or _TOTAL.search(text) is None):
        return None
    alone = len({each.tool for each in outcomes}) == 1
    for statement in statements:
        if statement.endswith("?"):
            continue
        plain, own = statement.replace("’", "'"), tokens(statement)
        about = next((each for each in reversed(acted) if alone or _concerns(each, own)), None)
        if about is not None and _FAILURE.search(plain) is not None and _FAILURE.search(about.line) is None:
            return Passed(statement, about.seq, about.line, "worked")
        if ran and not acted and _UNDONE.search(plain) is not None:
            about = next((each for each in reversed(ran) if _undoes(each, plain) and _concerns(each, own)), None)
            if about is not None:
                return Passed(statement, about.seq, about.line, "worked")
        absent = _ABSENT.search(plain) if not over else None
        noun = next(iter(tokens(absent["noun"] or absent["none"])), "") if absent is not None else ""
        if noun and all(each.line for each in outcomes):
            about = next((each for each in reversed(outcomes) if noun in tokens(each.tool)), None)
            if about is not None and _ABSENT.search(about.line) is None and noun not in about.told:
                return Passed(statement, about.seq, about.line, "worked")
    return None


def _undoes(outcome: Outcome, statement: str) -> bool:
    """Tell whether a statement denies that what a command did could be done."""
    found = _UNDONE.search(statement)
    told = (found["act"] or found["acting"]).lower() if found is not None else ""
    return any(told.startswith(act[:4]) for act in (*outcome.acts, *outcome.asked) if len(act) > 3)


def _open_failures(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the failed calls that no later one of the same tool makes up for."""
    if any(each.empty for each in outcomes) and not all(each.failed for each in outcomes):
        outcomes = [each for each in outcomes if not each.empty]
    return [
        each
        for at, each in enumerate(outcomes)
        if each.failed
        and not any(
            later.tool == each.tool and not later.failed and _alike(each, later) for later in outcomes[at + 1 :]
        )
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
    whole, all_failed = outcomes[-1].failed, all(each.failed for each in outcomes)
    for statement in statements:
        if len(statement.split()) < LEAST_CLAIM or (not all_failed and _CLAIMS.search(statement) is None):
            continue
        own = tokens(statement)
        named = next((each for each in failed if _shares(each, own, outcomes)), None)
        if whole or named is not None or not own.isdisjoint(_WHOLE):
            about = named or newest
            return Passed(statement, about.seq, about.line, "failed")
    return None


def _shares(outcome: Outcome, said: frozenset[str], others: Sequence[Outcome] = ()) -> bool:
    """Tell whether a statement names what a call is about, and what none of the other calls is about."""
    own = set(outcome.asked).difference(*(each.asked for each in others if each is not outcome))
    return any(each in said and (len(each) >= LEAST_WORD or each[:1].isdigit()) for each in own)


def _concerns(outcome: Outcome, said: frozenset[str]) -> bool:
    """Tell whether a statement has a token of a call or of its result."""
    return any(
        each in said and (len(each) >= LEAST_WORD or (each.isdigit() and len(each) > 1))
        for each in (*outcome.asked, *outcome.told)
    )


def _never_done(outcomes: Sequence[Outcome], statements: Sequence[str]) -> Passed | None:
    """Return the statement that tells of an act for which no call was made."""
    if any(each.shell for each in outcomes):
        return _never_checked(outcomes, statements)
    called = {word for each in outcomes for word in (*_WORD.findall(each.tool.replace("_", " ").lower()), *each.asked)}
    told = {word for each in outcomes for word in each.told}
    for statement in statements:
        if _TESTS_PASS.search(statement) is not None and _CALLED["tested"].isdisjoint(called) and "test" not in told:
            return Passed(statement, outcomes[-1].seq, outcomes[-1].line, "not done")
        found = _FIRST.search(statement.replace("’", "'"))
        if found is None or statement.endswith("?") or _NEGATED.search(statement) is not None:
            continue
        done = found["done"].lower()
        if _CALLED[done].isdisjoint(called) and tokens(done).isdisjoint(told):
            newest = next((each for each in reversed(outcomes) if not _PLANNED.isdisjoint(each.told)), outcomes[-1])
            return Passed(statement, newest.seq, newest.line, "not done")
    return None


def quotes_failure(outcomes: Sequence[Outcome], said: frozenset[str]) -> bool:
    """Tell whether a message has a telling number or name of what a failed call returned, or two of its words."""
    for outcome in outcomes:
        if outcome.failed:
            quoted = [each for each in outcome.told if each in said]
            if any(is_name(each) or (each.isdigit() and len(each) > 2) for each in quoted):
                return True
            if sum(len(each) >= LEAST_WORD for each in quoted) > 1 and said.isdisjoint(_WHOLE):
                return True
    return False


_WHOLE = word_set("all everi everyth both each alle beid tous tout todo toda tutti")
"""Tokens by which something is told of all of it."""


def _never_checked(outcomes: Sequence[Outcome], statements: Sequence[str]) -> Passed | None:
    """Return the statement that a check is passed which no command can have run."""
    ran = {word for each in outcomes for word in (*each.asked, *_WORD.findall(each.tool.lower()))}
    if not _RUNNERS.isdisjoint(ran) or any("test" in word or "lint" in word for word in ran):
        return None
    for statement in statements:
        if (_TESTS_PASS.search(statement) or _LINTED.search(statement)) and "?" not in statement:
            return Passed(statement, outcomes[-1].seq, outcomes[-1].line, "not done")
    return None


_RUNNERS = word_set(
    "python python3 node make npm npx yarn pnpm sh bash cargo go mvn gradle tox nox just docker pytest jest "
    "ruff eslint "
    "mypy flake8 uv poetry rake bundle dotnet bazel ctest ninja"
)
_LINTED = lazy_regex(r"\blint(?:er|ing|s)?\b[^.!?]{0,30}\b(?:happy|clean|passes|passed|green)\b", re.IGNORECASE)


def does_nothing(text: str) -> bool:
    """Tell whether a result says that what was asked was refused, undone or not needed."""
    if len(text) > SHORT_ANSWER:
        return False
    return (
        (may_hold(text, *_IN_STATUS) and _STATUS.search(text) is not None)
        or (may_hold(text, _IN_REFUSED) and _REFUSED.search(text) is not None)
        or _AT_ONCE.match(text) is not None
    )


def marks_of(found: frozenset[str]) -> list[str]:
    """Return the tokens that are remembered, those that name one thing first."""
    return sorted(sorted(found), key=weight, reverse=True)[:MAX_TOKENS]
