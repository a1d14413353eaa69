"""Restricting clauses of a text, reduced to acts, objects, an allowed set or a bound. Words of seven languages.

Precision before recall: what only describes ("users do not delete their accounts"), what has a condition ("unless",
"if") and what cannot be linked to an object is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.readings import excerpt
from coherence.detect import restriction_words as says
from coherence.detect.acts import acts_of
from coherence.detect.allowances import BOUND, SAYS_NO, allowances, bounds
from coherence.detect.languages import language
from coherence.detect.negations import ALONE, closed, main_acts, negated, parts_of, words_of
from coherence.detect.objects import IMPLIED, objects_of, telling_of
from coherence.detect.prohibition import Prohibition
from coherence.detect.properties import forms_of
from coherence.detect.text_analysis import TextAnalysis, tokens

_CASE = lazy_regex(r"\W*(?:if|when|wenn|falls|si|cuando|se|quando|如果)\b", re.IGNORECASE)
"""Beginnings of sentences that hold in one case alone."""

_KEPT_TO_ONESELF = lazy_regex(
    r"\b(?:i|we) (?:do not|don't|would rather not|will not|won't) (?:(?:want|wish|like) to )?(?:share|give|tell|say"
    r"|disclose|reveal|provide)\b",
    re.IGNORECASE,
)

MAX_CHARS = 20_000
MAX_CLAUSES = 12
MAX_SAID = 240
"""Characters of a sentence that are read."""
QUOTED = 160


KEPT = ("change", "remove", "add", "cancel", "close", "restart", "open", "book", "other", "publish")
"""Acts that do something to what is to stay as it is."""


def may_forbid(text: str) -> bool:
    """Tell whether a text may forbid something at all."""
    low = text.casefold()
    return any(map(low.__contains__, says.CUES)) or (" by " in low and says.DONE_BY.search(low) is not None)


def prohibitions(
    text: str | TextAnalysis, seq: int = 0, goal: str = "", *, lasting: bool = False
) -> Iterator[Prohibition]:
    """Yield what a request forbids; ``goal`` is what "those two" and "nothing else" are resolved against."""
    analysis = text if isinstance(text, TextAnalysis) else TextAnalysis(text)
    if not may_forbid(analysis.raw):
        return
    apart = tuple(name.casefold() for name in says.ONLY_IN.findall(analysis.raw[:MAX_CHARS])[:4])
    before, read = "", set[tuple[str, str]]()
    for statement in analysis.part(MAX_CHARS, "\n").statements:
        context, before = before, statement[:MAX_SAID]
        if (before, context) in read:  # said again, it forbids no more
            continue
        read.add((before, context))
        said = says.POLITE.sub("", statement[:MAX_SAID].replace("’", "'"))
        if (
            # "Could you please not touch the tests?" is a request: POLITE has taken something out of it.
            (statement.endswith(("?", "？")) and len(said) == len(statement[:MAX_SAID]))
            or not may_forbid(statement)
            or _KEPT_TO_ONESELF.search(statement)
        ):
            continue
        sentence = excerpt(statement, QUOTED)
        for found in _of_statement(said, goal or analysis.raw[:MAX_CHARS], lasting, context):
            if apart and found.objects and not found.of:
                found = msgspec.structs.replace(found, only=apart)
            yield msgspec.structs.replace(found, sentence=sentence, seq=seq, lasting=lasting)


def _of_statement(said: str, goal: str, lasting: bool, before: str) -> Iterator[Prohibition]:
    tongue = language(said)
    said = says.CONTRACTED.sub(_spelled, said)
    said = says.MYSELF.sub(lambda found: f"do not {found['verb']}" if found["verb"] else f"avoid {found['left']}", said)
    yield from allowances(said, goal)
    # The number of a policy is of things that no argument may name: it binds where money or a length is meant.
    bound = [each for each in bounds(said) if each.unit != "count" or not lasting]
    yield from bound
    yield from _chinese(said)
    once = not lasting and says.MINE.search(said) is not None
    said = says.PHRASE.sub(lambda found: says.PHRASES[found[0].casefold()], said)
    said = says.RELATIVE.sub(lambda found: f"{found[1]} {found[2]}{(found[3] or '').replace(',', '')}", said)
    said = says.LISTED.sub(" or", said)
    clauses = [part.strip() for part in islice(says.CLAUSE_END.split(said), MAX_CLAUSES) if part and part.strip()]
    but = says.EXCEPT.search(said)
    if but is not None and not SAYS_NO.search(said[: but.start("what")]):
        what = says.CLAUSE_END.split(but["what"])[0]
        objects = objects_of(words_of(says.AT.split(what)[0]), ()) or objects_of(words_of(what), ())
        main = main_acts(said[: but.end()])
        if objects and (main != ("any",) or says.ALL.search(said[: but.end()]) is not None):
            yield Prohibition(main, objects, "")
    if says.LOOK.search(said) is not None:
        yield Prohibition(("change", "remove", "add", "restart", "publish"), (), "")
    earlier = says.PHRASE.sub(lambda found: says.PHRASES[found[0].casefold()], before)
    conditional = _CASE.match(said) is not None
    for at, clause in enumerate(clauses):
        near = clause if at == 0 else f"{clauses[at - 1]}, {clause}" if _starts_condition(clauses[at - 1]) else clause
        if at + 1 < len(clauses) and _starts_condition(clauses[at + 1]):
            near = f"{near}, {clauses[at + 1]}"
        if not once and (conditional or says.CONDITION.search(near) is not None):
            continue
        if bound and BOUND.search(clause):
            clause = clause.partition(" and ")[2]
        made = list(_of_clause(clause, clauses[at - 1] if at else "", tongue))
        for each in _resolved(made, clause, (earlier, *clauses[:at])):
            yield msgspec.structs.replace(each, once=once)


def _resolved(made: list[Prohibition], clause: str, before: Sequence[str]) -> Iterator[Prohibition]:
    """Yield prohibitions with "it", "there" and "its entries" replaced by what the nearest clause before is about."""
    there = says.THERE.search(clause) is not None
    theirs = says.THEIRS.search(clause) is not None
    for each in made:
        it = each.objects == ("",)
        if not (it or (there and not each.objects) or (theirs and each.objects and not telling_of(each.objects))):
            yield each
            continue
        for earlier in before[:-3:-1]:
            words = [word for word in words_of(earlier) if not word.endswith("'s")]
            words = list(takewhile(lambda word: word.casefold() not in says.TELLING, words)) if theirs else words
            words = [word for word in words if word[0].isupper() or not acts_of(word)]
            words = [word for word in words if word.casefold() not in says.TELLING | says.MENTAL | says.QUANTIFIED]
            objects = tuple(token for token in objects_of(words, each.acts) if token not in says.VAGUE)[:3]
            objects = objects[-1:] if there else objects  # the noun itself: "the live database"
            if objects:
                forms = forms_of(words) if "have" in each.acts else ()
                yield msgspec.structs.replace(each, objects=objects, forms=forms)
                break
        else:
            if not it:
                yield each


def _spelled(found: re.Match[str]) -> str:
    if found["aux"]:
        return f"{found['aux']} not"
    if found["whole"]:
        return "do not" if found["whole"].casefold() == "dont" else "can not"
    return "ne " if found["ne"] else ""


def _starts_condition(clause: str) -> bool:
    found = says.CONDITION.search(clause)
    return found is not None and found.start() < 6


def _of_clause(clause: str, before: str, tongue: str) -> Iterator[Prohibition]:
    for found in islice(says.OUT.finditer(clause), 2):
        what = found["what"] or found["out"] or found["unseen"] or found["hush"] or found["secret"] or found["silent"]
        out_of = found["out"] is not None
        objects = objects_of(words_of(what), ())
        forms = forms_of(words_of(what))
        if objects or forms:
            yield Prohibition(("any", "have") if out_of else ("have",), objects, "", forms=forms)
            return
    for found in islice(says.STAYS.finditer(clause), 2):
        acts: tuple[str, ...] = KEPT
        if found["all"] or found["need"] or " surviv" in clause or "be kept" in clause:
            acts = ("remove",)
        made = False
        for part in parts_of(
            words_of(found["kept"] or found["stays"] or found["all"] or found["let"] or found["need"])
        ):
            if objects := objects_of(part, ()):
                made = True
                yield Prohibition(acts, objects, "", of="known" if says.EXISTING.search(clause) else "")
        if made:
            return
    if (shut := says.CLOSED.match(clause)) is not None and shut["what"].casefold() not in says.SUBJECTS:
        yield from closed(words_of(shut["what"]))
        return
    yield from negated(words_of(clause), before, tongue)


def _chinese(said: str) -> Iterator[Prohibition]:
    for found in islice(says.CHINESE.finditer(said), 3):
        about = found["before"] + found["what"]
        things = {word: name for word, name in says.CHINESE_THINGS.items() if word in about}
        names = re.findall(r"[A-Za-z0-9_./@-]{2,40}", about)
        objects, latin = tuple(sorted(tokens(" ".join(things.values())))), tuple(sorted(tokens(" ".join(names))))
        behind = any(word in found["what"] for word in (*things, *names))
        thing = found["what" if behind else "before"].partition("、")[0]
        for word in (found["act"], *says.CHINESE_MORE.findall(about)):
            act = says.CHINESE_ACTS[word]
            acts = (act, "have") if act in ("use", "add") else (act,)
            implied = IMPLIED.get(act, frozenset())
            named = tuple(token for token in (*objects, *latin) if token not in implied)
            if named or (act in ALONE and not about.strip("了吧何任")):
                yield Prohibition(acts, named, "", thing)


def asked(text: TextAnalysis) -> set[str]:
    """Return the acts that a request asks for."""
    found: set[str] = set()
    for statement in text.statements:
        if says.NEGATIVE.search(statement) is None:
            found.update(*(acts_of(word) for word in words_of(statement)[:60]))
    return found
