"""Answers that pass over how the calls of a task came out: a failure reported as success, or an act without a call.

Weaker than a contradiction, since it goes by what is missing. So it is judged of an answer only, not of remarks on the
way, and nothing here asks for more than guidance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.words import may_hold, word_set
from coherence.detect.claim_words import FLAWLESS, acts_told, clauses_of, done_acts, first_words
from coherence.detect.own_work import DENSE_DONE, Made, never_done
from coherence.detect.text_analysis import is_name, tokens, weight

MAX_OUTCOMES = 16
"""Calls of a task that are remembered, the newest."""

MAX_TOKENS = 24
"""Tokens of one call, or of its result, that are remembered."""

SHORT_ANSWER = 1_500
"""Characters of an answer up to which it would tell of a failure if it meant to."""

MAX_CALL = 600
"""Characters of a call, and of its result, that are remembered."""

LEAST_WORD = 4

FEW = 5
"""Calls up to which what an answer says is about the newest of them."""

LEAST_CLAIM = 3
"""Words of a statement."""

LEAST_BARE = 5
"""Words of a statement that has no verb by which something is told to be so."""


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
    call: str = ""
    """Tool and arguments in lower case, the first :data:`MAX_CALL` characters."""
    result: str = ""
    """Result in lower case, the first :data:`MAX_CALL` characters."""
    whole: bool = True
    """False if the result is longer."""
    files: str = ""
    """Files that it reads or writes."""
    ending: str = ""
    """Ending that the words of its result tell of."""


class Passed(msgspec.Struct, frozen=True):
    """A statement that passes over how a call came out."""

    statement: str
    seq: int
    line: str
    why: str
    """``failed``, ``open``, ``tried out``, ``worked with warnings`` or ``not done``."""


_OWNS_UP = lazy_regex(
    r"\b(?:fail\w*|errors?|unable|can(?:no|')t|could(?:n't| not)|did(?:n't| not)|none|not|n[eo]ither|never|empty"
    r"|nothing"
    r"|\w+n't|unfortunately|sorry|missing|retry|pending|lacks?|broken|denied|refused|rejected|declined|timed? ?out"
    r"|unavailable"
    r"|skipped|partial\w*|bounced|undelivered|waits?|waiting|awaiting|queued?|draft\w*|approval|blocked|cut|truncated"
    r"|nichts|nada|niente|nessun\w*|nenhum\w*|came back|run out|ran out|dry run|would|nicht|kein\w*|leider|fehl\w*"
    r"|konnte\w*|abgelehnt|wartet|entwurf"
    r"|pas|rien|aucun\w*|échou\w*|erreur|malheureusement|refus\w*|attente|brouillon|falló|lamentablemente|ningun\w*"
    r"|rechaz\w*"
    r"|pendiente\w*|borrador|no (?:se|pude|está|están|fue|ha|he|hay|me|existe|es|lo|la)|non|não|recus\w*|falh\w*"
    r"|rascunho|rifiut\w*"
    r"|fallit\w*|bozza|attesa)\b"
    r"|不|未|没|无法|失败|拒|ません|ない|なかった|失敗|できず",
    re.IGNORECASE,
)
"""Words by which an answer tells that something is not as it should be."""

_MENDED = lazy_regex(
    r"\b(?:fehler|errors?|failures?|erreurs?|errores|erros|errori|fallos|falhas)\b[^.!?]{0,40}?\b(?:behoben|korrigiert"
    r"|beseitigt"
    r"|fixed|resolved|gone|corrigées?|corregid[oa]s?|corrigid[oa]s?|risolt[ie]|resuelt[oa]s?|resolvid[oa]s?)\b"
    r"|\b(?:fixed|resolved|corrected|corregí|corrigi|corrigé|risolto) (?:\w+ ){0,3}(?:errors?|failures?|erreurs?"
    r"|errores|erros|errori)\b"
    r"|(?:没有|无)(?:任何)?(?:错误|问题|异常|冲突|失败)|(?:エラー|問題|重複|重なる予定"
    r"|失敗)[はもが]?(?:ありません(?:でした)?|なし|なく)",
    re.IGNORECASE,
)
"""Words by which failures are said to be over, or never to have been."""

_LIMITS = lazy_regex(
    r"\b(?:no|without|but|however|only|except|although|though|still|yet|remain\w*|retr\w+|instead|will|shall|let me"
    r"|i'll"
    r"|going to|next|if|please|needs?|aber|nur|ohne|noch|mais|sans|encore|pero|sin|aún|todavía|mas|sem|ainda|però"
    r"|senza|ancora)\b|\?",
    re.IGNORECASE,
)
"""Words by which a statement tells that not all of it is so, or is yet to be done."""

_CLAIMS = lazy_regex(
    r"\b(?:is|are|was|were|has|have|had|been|i|we|all|both|every|yes|done|now|looks?|works?|answers?|passes|finds?|ist"
    r"|sind"
    r"|wurde\w*|hat|habe\w*|ja|oui|est|sont|a|ont|sí|está\w*|fue|son|ha|han|è|sono)\b",
    re.IGNORECASE,
)
_REFUSED = lazy_regex(
    r"[\"'](?:ok|success|succeeded|accepted)[\"']\s?:\s?false\b|\brolled back\b|\bnothing to (?:commit|do|send"
    r"|update)\b"
    r"|\b(?:already )?up[- ]to[- ]date\b|\bno changes (?:made|detected)\b|\b0 (?:rows|files|items|records)\b",
    re.IGNORECASE,
)
"""Words of a result that did nothing, or not what was asked."""
_IN_REFUSED = (
    *("false", "rolled back", "nothing to ", "to-date", "to date", "no changes "),
    *("0 rows", "0 files", "0 items", "0 records"),
)
_PLANNED = word_set("draft drafts queued scheduled planned pending dry preview")


def passed_over(
    outcomes: Sequence[Outcome], statements: Sequence[str], text: str, earlier: Sequence[str] = ()
) -> Passed | None:
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
    sound = _MENDED.sub("", FLAWLESS.sub("", text.replace("’", "'")))
    said = tokens(sound)
    failed = _open_failures(outcomes)
    open_ended = [] if failed else [each for at, each in enumerate(outcomes) if _left_open(at, outcomes)]
    if (failed or open_ended) and not _OWNS_UP.search(sound):
        found = _unacknowledged(failed or open_ended, outcomes, statements, said)
        if found is not None:
            return found
    found = _only_tried(outcomes, statements) or _warned(outcomes, statements)
    if found is not None:
        return found
    made = [Made(each.call, each.result, each.whole, each.files) for each in outcomes]
    claim = never_done(statements, made, earlier, acted=any(map(_does, outcomes)))
    if claim is None:
        return None
    newest = next((each for each in reversed(outcomes) if not _PLANNED.isdisjoint(each.told)), outcomes[-1])
    return Passed(claim, newest.seq, newest.line, "not done")


def _does(outcome: Outcome) -> bool:
    """Tell whether a call does more than to look something up."""
    return outcome.shell or (bool(outcome.acts) and not outcome.reads)


def _only_tried(outcomes: Sequence[Outcome], statements: Sequence[str]) -> Passed | None:
    """Return the statement that something was done where it was only tried out."""
    at = next((at for at, each in enumerate(outcomes) if each.ending == "tried out"), None)
    if at is None or any(each.acts and each.ending != "tried out" and not each.failed for each in outcomes[at:]):
        return None
    for statement in statements:
        if statement.endswith("?") or _UNREAL.search(statement.replace("’", "'")) is not None:
            continue
        if any(done_acts(words, begins=words is first) for first, words in _with_first(clauses_of(statement))):
            return Passed(statement, outcomes[at].seq, outcomes[at].line, "tried out")
    return None


def _warned(outcomes: Sequence[Outcome], statements: Sequence[str]) -> Passed | None:
    """Return the statement that there were no warnings where the newest program warned."""
    ran = next((each for each in reversed(outcomes) if each.shell and not each.reads), None)
    if ran is None or _WARNING.search(ran.result) is None:
        return None
    found = next((each for each in statements if _NO_WARNING.search(each) is not None and "?" not in each), None)
    return None if found is None else Passed(found, ran.seq, ran.line, "worked with warnings")


_WARNING = lazy_regex(
    r"\b(?:warning|warn|warnung|avertissement|advertencia|aviso|avviso)\b\]?[:\[ (]"
    r"|\b[1-9]\d{0,4} (?:\w+ )?warnings?\b|警告"
)
_NO_WARNING = lazy_regex(
    r"\b(?:no|without|zero|0|free of|keine|ohne|sans|aucun|sin|ninguna|sem|nenhum|senza|nessun)(?: \w+)? (?:warning"
    r"|warnung|avertissement|advertencia|aviso|avviso)\w{0,3}\b"
    r"|\bwarning[- ]free\b|(?:没有|无)(?:任何)?警告|警告(?:は|も)?(?:ありません|なし|出ません|出ていません)",
    re.IGNORECASE,
)


def _with_first(clauses: Iterable[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    first: list[str] | None = None
    for words in clauses:
        first = words if first is None else first
        yield first, words


_UNREAL = lazy_regex(
    r"\b(?:would|will|could|dry|previews?|simulat\w+|nothing|not|\w+n't|proposed|to be|if|würde\w*|trockenlauf|nichts"
    r"|nicht|serait|seraient"
    r"|rien|à blanc|sería\w*|simul\w+|nada|seria\w*|sarebbe\w*|niente)\b|将|会|试运行|ドライラン|予定",
    re.IGNORECASE,
)


def _claims(statement: str) -> bool:
    """Tell whether a statement has a verb by which something is told to be so, or begins with what was done."""
    return _CLAIMS.search(statement) is not None or bool(done_acts(first_words(statement, 8)))


def _open_failures(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the failed calls that no later one of the same tool makes up for."""
    # A search that found nothing is a step on the way where another call brought something.
    if any(each.empty for each in outcomes) and not all(each.failed for each in outcomes):
        outcomes = [each for each in outcomes if not each.empty]
    return [
        each
        for at, each in enumerate(outcomes)
        if each.failed and not any(_makes_up_for(later, each) for later in outcomes[at + 1 :])
    ]


def _makes_up_for(later: Outcome, each: Outcome) -> bool:
    """Tell whether a call does what an earlier one failed to do: the same again, or the same act by another tool."""
    if later.failed or later.ending == "failed":
        return False
    if later.tool == each.tool:
        return _alike(each, later)
    names = {token for token in each.asked if is_name(token)}
    return (
        not later.reads
        and not set(each.acts).isdisjoint(later.acts)
        and (not names or not names.isdisjoint(later.asked))
    )


def _alike(each: Outcome, later: Outcome) -> bool:
    """Tell whether two calls of one tool are about the same thing: what is named in one is named in the other."""
    own, other = set(each.asked), set(later.asked)
    return not own or each.shell or 2 * len(own & other) >= len(own)  # another command may mend one


def _unacknowledged(
    failed: Sequence[Outcome], outcomes: Sequence[Outcome], statements: Sequence[str], said: frozenset[str]
) -> Passed | None:
    newest = failed[-1]
    if any(_is_quoted(each, said) for each in failed):
        return None
    whole, all_failed = outcomes[-1] in failed, all(each in failed for each in outcomes)
    for statement in statements:
        dense = not statement.isascii() and DENSE_DONE.search(statement) is not None
        if not dense and len(statement.split()) < LEAST_CLAIM:
            continue
        brief = len(statement.split()) < LEAST_BARE
        if not dense and (brief or not all_failed) and not _claims(statement):
            continue
        if _LIMITS.search(FLAWLESS.sub("", statement.replace("’", "'"))) is not None:
            continue
        own = tokens(statement)
        named = next((each for each in failed if _shares(each, own, outcomes)), None)
        telling = all_failed or (whole and (len(outcomes) <= FEW or not acts_told(own).isdisjoint(newest.acts)))
        if telling or named is not None or not own.isdisjoint(_WHOLE):
            about = named or newest
            if about.ending == "pending" and any(map(_LIMITS.search, statements)):
                continue
            return Passed(statement, about.seq, about.line, "open" if about.ending == "pending" else "failed")
    return None


def _is_quoted(outcome: Outcome, said: frozenset[str]) -> bool:
    """Tell whether a message has a telling number or name of a result, or a good part of its words."""
    words = [each for each in outcome.told if len(each) >= LEAST_WORD and not is_name(each)]
    quoted = sum(each in said for each in words)
    if quoted and (quoted > 2 or 2 * quoted >= len(words)):
        return True
    if outcome.ending == "pending":
        return False  # its reference says nothing of how far it is
    numbers = [each for each in outcome.told if each.isdigit()]
    if outcome.ending == "partly" and numbers:  # all of them are no part
        numbers.remove(max(numbers, key=int))
    return any(each in said for each in numbers if len(each) > 1) or any(
        each in said and is_name(each) and not each.isdigit() for each in outcome.told
    )


def _left_open(at: int, outcomes: Sequence[Outcome]) -> bool:
    """Tell whether the words of a result say that its call is not through, or that an earlier one came to nothing."""
    each = outcomes[at]
    if each.ending in ("", "tried out"):
        return False
    if any(not later.ending and (later.tool == each.tool or later.acts) for later in outcomes[at + 1 :]):
        return False
    if not each.reads:
        return bool(each.acts) or each.shell or each.ending == "pending"
    if each.files:
        return True
    names = {token for token in (*each.asked, *each.told) if is_name(token)}
    return any(not names.isdisjoint(earlier.asked) for earlier in outcomes[:at] if earlier.acts and not earlier.reads)


def _shares(outcome: Outcome, said: frozenset[str], others: Sequence[Outcome] = ()) -> bool:
    """Tell whether a statement names what a call is about, and what none of the other calls is about."""
    own = set(outcome.asked).difference(*(each.asked for each in others if each is not outcome))
    return any(each in said and (len(each) >= LEAST_WORD or each[:1].isdigit()) for each in own)


_WHOLE = word_set("all everi everyth both each alle beid tous tout todo toda tutti")
"""Tokens by which something is told of all of it."""


def does_nothing(text: str) -> bool:
    """Tell whether a result says that what was asked was refused, undone or not needed."""
    if len(text) > SHORT_ANSWER:
        return False
    return may_hold(text, _IN_REFUSED) and _REFUSED.search(text) is not None


def marks_of(found: frozenset[str]) -> list[str]:
    """Return the tokens that are remembered, those that name one thing first."""
    return sorted(sorted(found), key=weight, reverse=True)[:MAX_TOKENS]
