"""Requests for exactly what an enforced row finds: the act, and what it is done to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.text_analysis import TextAnalysis, tokens
from coherence.policy.danger.danger import Asking, Danger, Match
from coherence.policy.danger.paths import is_secret, normal

MAX_ORDERS = 24
ORDER_CHARS = 400
"""Characters of a sentence that are kept."""

REQUEST_CHARS = 20_000

# "do not ask" and "without waiting" forbid nothing.
NEGATED = lazy_regex(
    r"\b(?:(?:not|don't|don’t|no|without)(?! (?:ask|need|wait|worry|hesitat|bother|confirm|prompt|question"
    r"|further|delay|matter))|never|avoid"
    r"|instead of|rather than|nicht|kein\w*|ohne|keep|except|unless)\b",
    re.IGNORECASE,
)
_WORD = lazy_regex(r"[^\s,;()\"'`<>]+")
_QUOTED = lazy_regex(r"[\"'`]([^\"'`\n]{1,80})[\"'`]")
_PART = lazy_regex(r"[a-z]+|\d+")
_HOST = lazy_regex(r"(?:[\w-]{1,60}\.){1,5}[a-z]{2,12}(?::\d+)?", re.IGNORECASE)
_PERSON = lazy_regex(r"\b(?:to|an|for|with) (?!The |My |Our |A )([A-Z][\w-]{1,30})")
SHARED = word_set("main master trunk mirror")
"""Branches that others work on, and all of them: they must be named themselves."""

ENVIRONMENTS = word_set(
    "prod production live staging stage dev development test testing local qa sandbox demo preview uat"
)
_SAME = {"production": "prod", "live": "prod", "development": "dev", "testing": "test", "stage": "staging"}
_FILLERS = word_set(
    "the a an our my this that these those whole entire old all oldest newest last latest two three four few expired "
    "outdated local remote new existing current every its their your full sql mysql postgres postgresql sqlite mongo "
    "mongodb redis and or to from in on of with for then so it is are was be first please now again completely before "
    "after via using by at into as if down up out just everything whatever any each both database databases db schema "
    "table tables namespace namespaces cluster branch branches history disk drive script installer install official "
    "repository repo folder directory directories files file data contents content rows records infrastructure stack "
    "environment env bucket volume volumes partition key keys token secret password push force collection collections "
    "index cache queue named called which server machine system home root image container containers we i you need "
    "want should can could must have has will would delete deleting drop dropping wipe remove reset clean empty "
    "truncate recreate rerun reload seed clear cleanup destroy purge erase stale unused legacy obsolete temporary yes "
    "cluster's setup rust"
)


@cache
def _stems(words: str) -> frozenset[str]:
    return tokens(words)


def acts_of(table: Iterable[Danger]) -> frozenset[str]:
    """Return the words, as tokens, of which a sentence must hold one to ask for what a row of a table enforces."""
    asked = (row.asking for row in table if row.asking is not None)
    return tokens(" ".join(f"{asking.acts} {asking.named}" for asking in asked))


def orders_in(text: TextAnalysis, acts: frozenset[str]) -> list[str]:
    """Return the sentences of a request that hold one of the acts, those that forbid something left out."""
    if acts.isdisjoint(text.tokens):
        return []
    found = (
        statement[:ORDER_CHARS]
        for statement in text.part(REQUEST_CHARS, "\n").statements
        if not acts.isdisjoint(tokens(statement.replace("-", " "))) and NEGATED.search(statement) is None
    )
    return list(islice(found, MAX_ORDERS))


def is_asked(match: Match, orders: Iterable[str]) -> bool:
    """Return whether a sentence asks for exactly what a row has found.

    It must hold one of the row's acts; one of its things, or the name of what the call is done to; and no name of
    something else. A place that others rely on (``production``) must be named itself.

    Examples
    --------
    >>> drop = Asking(acts="drop delete", things="database")
    >>> match = Match(name="x", kind="data", what="x", part="DROP DATABASE shop", asking=drop, targets=("shop",))
    >>> [is_asked(match, [f"Drop the {name}."]) for name in ("shop database", "database", "blog database")]
    [True, True, False]
    """
    asking = match.asking
    if asking is None:
        return False
    return any(_asks(order, asking, match.targets, match.part) for order in orders)


def _asks(order: str, asking: Asking, targets: Sequence[str], part: str) -> bool:
    found = tokens(order.replace("-", " "))
    acts = not _stems(asking.acts).isdisjoint(found)
    if not acts and (not asking.named or _stems(asking.named).isdisjoint(found)):
        return False
    things = not _stems(asking.things).isdisjoint(found)
    if asking.addresses:
        right = _right_address(order, targets)
        return right is not False and (things or (asking.enough and right is True))
    words = [word.strip(".,:;!?") for word in _WORD.findall(order)]
    named = [target for target in targets if target and target != "?"]
    literal = bool(named) and all(any(_same(word, target) for word in words) for target in named)
    if literal:
        return things or asking.enough
    if not acts or not things or not _right_environment(order, part, targets) or not SHARED.isdisjoint(named):
        return False
    others = _names(order, words, asking)
    return not others or not named or all(any(_fits(name, target) for name in others) for target in named)


def _same(word: str, target: str) -> bool:
    word, target = word.casefold(), target.casefold()
    if word == target:
        return True
    if "/" in target or "~" in target or "/" in word:
        return bool(word) and ("/" in word or "~" in word) and normal(word) == normal(target)
    return word == target.rpartition(".")[2]  # "users" is public.users


def _fits(name: str, target: str) -> bool:
    if _same(name, target):
        return True
    if not name.isalpha():
        return False
    return set(_PART.findall(name.casefold())) <= set(_PART.findall(target.casefold()))


def _names(order: str, words: Sequence[str], asking: Asking) -> list[str]:
    """Return what a sentence names: quoted and dotted words, paths, and the words beside the row's things."""
    names = [word for word in words if any(sign in word for sign in "/_.~:") or any(map(str.isdigit, word))]
    names += _QUOTED.findall(order)
    things = _stems(asking.things)
    for at, word in enumerate(words):
        if things.isdisjoint(tokens(word)):
            continue
        for beside in (words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""):
            low = beside.casefold()
            if low and low not in _FILLERS and low not in ENVIRONMENTS and _stems(asking.acts).isdisjoint(tokens(low)):
                names.append(beside)
    return names


def _environments(text: str) -> set[str]:
    return {_SAME.get(word, word) for word in re.findall(r"[a-z]+", text.casefold()) if word in ENVIRONMENTS}


def _right_environment(order: str, part: str, targets: Sequence[str]) -> bool:
    asked, found = _environments(order), _environments(f"{part} {' '.join(targets)}")
    if "prod" in found and "prod" not in asked:
        return False
    return not asked or not found or bool(asked & found)


def _right_address(order: str, targets: Sequence[str]) -> bool | None:
    """Return whether a sentence names the address that is sent to, ``None`` if it names none."""
    asked = [word.strip(".,:;!?").casefold() for word in _WORD.findall(order)]
    places = [
        word.partition("://")[2].partition("/")[0] if "://" in word else word
        for word in asked
        if "@" in word or "://" in word or _is_host(word)
    ]
    if places:
        return any(_at(place, target) for place in places for target in targets)
    people = [name.casefold() for name in _PERSON.findall(order)]
    if people and targets:
        return any(name in target for name in people for target in targets)
    return None


def _is_host(word: str) -> bool:
    return (
        _HOST.fullmatch(word) is not None
        and not is_secret(word)
        # setup.sh and README.md look like hosts.
        and not word.endswith((".sh", ".py", ".json", ".yml", ".yaml", ".md", ".txt"))
    )


def _at(place: str, target: str) -> bool:
    place, target = place.rpartition(":")[0] or place, target.rpartition(":")[0] or target
    return place == target or target.endswith(("@" + place, "." + place)) or place.endswith("@" + target)
