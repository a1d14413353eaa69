"""Activities that an agent says were done, and calls that may have done them: one table for both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.claim_words import CLAUSE, FLAWLESS, clause_words, is_plain, negations
from coherence.detect.tables import expression, table

_BY = (
    r"i|we|i've|we've|have|has|had|is|are|was|were|been|and|also|then|just|already|now|successfully|it's|ich|wir|habe"
    r"|haben|hat|wurden?|ist|sind|worden|und|j'ai|ai|avons|ont|été|est|sont|et|he|hemos|ha|han|fue|fueron|está|están|y"
    r"|ho|abbiamo|è|sono|stat[oaie]|foi|foram|já|eu|e|además|también|außerdem|auch|aussi|anche|também"
)
"""Words behind which somebody has done what the next verb says, or it was done."""

_ADVERB = r"(?:just|also|then|already|now|even|finally|afterwards|additionally|subsequently|since|quickly|have|had) "
_AT_FIRST = rf"^(?:(?:and|und|et|y|e) )?(?:{_ADVERB}){{0,2}}"
_ITS_OBJECT = (
    r"(?=$| (?:the|a|an|your|our|all|both|it|them|this|that|to|in|on|via|with|and|den|die|das|le|la|les|el|los|il|o|os"
    r"|\d+)(?!\S))"
)
"""Words behind a verb with which a clause begins; "Cancelled orders" is a heading."""
_ME = (
    rf"(?<!\S)(?:i|we|i've|we've) (?:{_ADVERB}){{0,3}}"
    rf"|(?<!\S)(?:i|we|i've|we've) (?:\S+ ){{1,9}}?and (?:{_ADVERB}){{0,2}}"
    r"|(?<!\S)(?:ich|wir|habe|haben) (?:\S+ ){0,8}?|(?<!\S)(?:j'ai|avons|he|hemos|ho|abbiamo) (?:\S+ ){0,2}?"
)
"""Words that lead to a verb whose subject is the agent."""

# "the reviewed code" names a thing and claims no review.
_BARE = r"(?<!the )(?<!a )(?<!an )(?<!your )(?<!our )(?<!to )(?<!be )(?<!der )(?<!die )(?<!la )(?<!le )(?<!el )"


class _Family(NamedTuple):
    """An activity of ``acts.toml``, where every field is explained."""

    verbs: re.Pattern[str]
    """Its participles, in a result."""
    done: re.Pattern[str]
    """The same with the words that make a claim of them."""
    said: re.Pattern[str]
    dense: re.Pattern[str]
    calls: re.Pattern[str]
    mine: bool


_NOTHING = "(?!)"


def _family(fields: dict[str, Any]) -> _Family:
    done, said, dense = (expression(fields.get(key, _NOTHING)) for key in ("done", "said", "dense"))
    mine = fields.get("mine", False)
    behind = _ME if mine else rf"(?<!\S)(?:{_BY}) (?:\S+ ){{0,6}}?"
    verb = rf"{_BARE}(?:{done})(?!\S)"
    after = "(?:[をはがに]|も){0,2}(?:しました|した|し|済み|完了|了|过|成功|到|给|通过)"
    before = "(?:已经?|还|我|并|又|都|现在)[^,，。]{0,8}?"
    return _Family(
        verbs=lazy_regex(rf"\b(?:{done})\b"),
        done=lazy_regex(rf"{_AT_FIRST}{verb}{_ITS_OBJECT}|(?:{behind}){verb}(?! (?:werden|sein)(?!\S))"),
        said=lazy_regex(said),
        dense=lazy_regex(rf"(?:{dense})[^,，。]{{0,6}}?{after}|{before}(?:{dense})|(?:{dense})(?:过|了)"),
        calls=lazy_regex(expression(fields["calls"])),
        mine=mine,
    )


_FAMILIES = {name: _family(fields) for name, fields in table("acts")["activities"].items()}
_VERBS = "|".join(expression(fields.get("done", _NOTHING)) for fields in table("acts")["activities"].values())
_ANY_VERB = lazy_regex(rf"(?<!\S)(?:{_VERBS})(?!\S)")
"""Any participle of a family: most clauses have none."""


def families_of(call: str) -> list[str]:
    """Return the families of activities that a call, its tool and its arguments in one text, may have done."""
    low = call.casefold()
    return [name for name, family in _FAMILIES.items() if family.calls.search(low)]


MAX_CLAUSE = 240
"""Characters of a clause that are looked at."""


def _claimed(statement: str) -> Iterator[tuple[str, str]]:
    """Yield the families that a statement plainly claims, each with what follows the claim in its clause."""
    for clause in CLAUSE.split(FLAWLESS.sub("cleanly", statement)):
        text = " ".join(word for word in clause_words((clause or "")[:MAX_CLAUSE]) if word not in ".!,")
        has_verb = _ANY_VERB.search(text) is not None
        for name, family in _FAMILIES.items():
            found = (family.done.search(text) if has_verb else None) or family.said.search(text)
            if found is None:
                continue
            before, after = text[: found.end()].split(), text[found.end() :]
            if is_plain(before) and not negations([*before, *after.split()[:2]]):
                yield name, after
    for clause in () if statement.isascii() else _DENSE_END.split(statement):
        if DENSE_DONE.search(clause) and not _DENSE_UNREAL.search(clause):
            yield from ((name, "") for name, family in _FAMILIES.items() if family.dense.search(clause))


_DENSE_END = lazy_regex("[,，、。;；:：！!\n]|て、")
DENSE_DONE = lazy_regex("已|了|过|完成|成功|通过|しました|った|済み|ています|完了")
_DENSE_UNREAL = lazy_regex(
    "未|没|不|无法|将|可以|请|是否|尚|要|ません|ない|なかった|でき|予定|ください|でしょうか|ましょう|如果|吗|失败|失敗"
)
_OBJECT = lazy_regex(
    r" (?:that )?(?:the|all|its|their|both|your|die|den|das|les|las|los|la|el|il|gli|os|as) ((?:[^\W\d_]{3,30} ?){1,2})"
)
_ANY_OBJECT = word_set(
    "result results output outputs details information data everything change changes work same whole rest outcome "
    "situation system systems numbers values list above records record request current available other others facts"
)
"""Nouns by which any result may be meant."""


class Made(NamedTuple):
    """One call and what it returned, in lower case."""

    call: str
    result: str
    whole: bool
    """False if the result is longer."""
    files: str = ""
    """Names of the files that the call reads or writes."""


def never_done(
    statements: Iterable[str], made: Sequence[Made], earlier: Sequence[str] = (), *, acted: bool = True
) -> str | None:
    """Return the statement that claims an activity which no call can have done.

    Parameters
    ----------
    statements : iterable of str
        What the agent says.
    made : sequence of Made
        The calls of the task and their results.
    earlier : sequence of str
        Families that calls before those may have done.
    acted : bool
        False where the agent only looked things up: what was done, it then says of the world.

    Examples
    --------
    >>> edited = Made("edit_file pricing.html <h1>plans</h1>", "1 replacement made", True)
    >>> never_done(["The heading is changed.", "I opened the page in the browser and it looks right."], [edited])
    'I opened the page in the browser and it looks right.'
    >>> never_done(["I haven't looked at it in the browser."], [edited]) is None
    True
    """
    if not made:
        return None
    known = set(earlier)
    for statement in statements:
        if statement.endswith(("?", "？")):
            continue
        for name, after in _claimed(statement.replace("’", "'")):
            if name in known:
                continue
            family = _FAMILIES[name]
            if any(family.calls.search(each.call) or _tells(name, each.result) for each in made):
                if name == "look" and _unseen(after, made):
                    return statement
                known.add(name)
                continue
            if family.mine or (acted and all(each.whole for each in made)):
                return statement
    return None


def _tells(name: str, result: str) -> bool:
    """Tell whether a result speaks of an activity."""
    family = _FAMILIES[name]
    if family.verbs.search(result) is not None:
        return True
    return not family.mine and name != "starts" and family.calls.search(result) is not None


def _unseen(after: str, made: Sequence[Made]) -> bool:
    """Tell whether what is said to have been looked at occurs in no call and no result."""
    found = _OBJECT.match(after)
    if found is None or not all(each.whole for each in made):
        return False
    words = [word for word in found[1].split() if len(word) > 3]
    if len(words) < 2 or not _ANY_OBJECT.isdisjoint(words):
        return False
    # Five letters: "invoices" may stand there as "invoice".
    return not any(word[:5] in f"{each.call} {each.files} {each.result}" for word in words for each in made)
