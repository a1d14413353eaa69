"""Additions of an answer that its task does not ask for: acts and things announced as extra, or that nobody named.

Precision before recall. What a task leaves open (a fault to find, something to build, work to make robust) may be done
by any means, so that only what is announced as extra counts; a change that is asked for as it stands (to rename, to
convert, to cancel) brings nothing of its own, and neither does a task that says "nothing else".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple
from unicodedata import normalize

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.core.words import word_set
from coherence.detect.acts import acts_of as families_of
from coherence.detect.asked import (
    Kind,
    is_brief,
    is_closed,
    is_counted,
    is_delegated,
    is_message,
    is_one_act,
    is_question,
    kind_of,
    may_be_mended,
    rewords,
    wants_text,
)
from coherence.detect.authored import FILLER, GIVING, INFORMING, LINKS, WORLDLY, acts_of, things_of, tokens_of
from coherence.detect.claim_words import DONE, is_negation
from coherence.detect.code_features import (
    COMMENT,
    WATCHING,
    code_features,
    code_of,
    features_in,
    in_code,
    named,
    other_code,
)
from coherence.detect.languages import FUNCTION_WORDS, differ, language
from coherence.detect.ngrams import bag, bag_once, shares
from coherence.detect.read_once import read_once
from coherence.detect.tables import announcing, expressions, table, words_by_name
from coherence.detect.text_analysis import statements
from coherence.detect.violations import forbidden

MAX_CHARS = 8_000
"""Characters of a task or an answer that are read; of a longer one, half from its beginning and half from its end."""

TOLD_CHARS = 1_500
"""Characters of a task above which a feature must be announced: a long one has it somewhere in other words."""

MAX_ADDITIONS = 6

ITEM_CHARS = 120
"""Characters of a line in a list of extras that may be one of them."""

BRISK_CHARS = 900
"""Characters of an answer above which it tells of steps on its way."""

BRIEF_WORDS = 5
"""Words of a further sentence that are more than a task wants that asks for a word or a number."""

_TABLE = table("additions")
_WORDS, _FORMS = words_by_name(_TABLE["words"]), expressions(_TABLE["forms"])
_STRONG = announcing(_TABLE["strong"])
"""Words by which an answer says that something goes beyond the task."""

_WEAK = announcing(_TABLE["weak"])
"""Words by which an answer says that there is more, which may belong to the task."""

_DENSE_NOT = lazy_regex("没有|未|不要|并没|无需|ません|なし")
_DENSE_ACT = lazy_regex(
    r"(?:新增|添加|增加|加入|接入|引入|[\u4e00-\u9fff]{1,3}了)(?:一[个份些条张]|三[个份条])?(?P<thing>[^，。、；！？\s,;!?]{2,20})"
    r"|把(?P<taken>[^，。、；！？\s,;!?]{2,12})[^，。、；！？\s,;!?]{0,6}了"
    r"|(?P<before>[^，。、；！？\s,;!?]{2,20})(?:を|도 |를 |을 )"
)
_QUOTED = lazy_regex(r'"[^"\n]{0,400}"|“[^”\n]{0,400}”|„[^“”"\n]{0,400}[“”"]|«[^»\n]{0,400}»')
_I = lazy_regex(r"\b(?:I|I['’]\w+|me|you|we|us)\b")
_PLAIN = lazy_regex(r"\w+")
_HEADING = _FORMS["heading"]
"""A line that announces a list of extras."""

_CLAUSE_END = _FORMS["clause_end"]

ADDING = (
    DONE["add"]
    | DONE["use"]
    | word_set(
        "wrapped emits emitted emit wraps put built new plus now also comes supports extended equipped "
        "instrumented set "
        "introduces gained gains gave given count counts eingebaut zusätzlich außerdem ajouté aussi añadí "
        "añadido también además jetzt neu désormais ahora"
    )
)
"""Words of a sentence that says that something came in."""

KEPT = _WORDS["kept"]
"""Words of a clause that tells of what was there before, is gone, or is the reader's to do."""

FOLLOWS = _WORDS["follows"]
"""Things that a change makes necessary, that hold what the task asks for, or that say too little to tell."""

IRREGULAR_STEMS = {
    "sent": "send",
    "paid": "pay",
    "bought": "buy",
    "wrote": "writ",
    "written": "writ",
    "built": "build",
}

THERE = word_set("there there's hay há c'è")

GAINING = _WORDS["gaining"]
"""Words that tell of something new where they stand with "now" or "also"."""

NOW = word_set("now jetzt nun désormais maintenant ahora agora ora adesso nu teraz теперь")
PRONOUNS = _WORDS["pronouns"]
BECOME = word_set("instead gone became becomes")
POLITE = _WORDS["polite"]
MADE = _WORDS["made"]
"""Words of a heading that says that its items were done."""

BECAUSE = word_set("since because as weil da car puisque porque ya")
MORE = word_set("other further additional more another extra weitere andere autres otras otros outras altre altri")
DOING = (DONE["add"] | DONE["change"] | DONE["remove"] | WORLDLY | word_set("set put turned switched")) - INFORMING
"""Acts that a question does not ask for."""

NEW = word_set("new neue neuer neues neuen nouveau nouvelle nuevo nueva novo nova nuovo nuova nieuwe")
ARTICLES = word_set("a an and plus ein eine einen einem un une uma um una een")

NEEDED = word_set("need needs needed require requires required necessary missing otherwise must had accordingly")
"""Words that say why a change could not do without."""


def additions(task: str, answer: str) -> tuple[str, ...]:
    """Return what an answer adds that its task does not ask for, in the answer's words, at most six.

    Found are acts announced as extra ("I took the liberty of ..., also booked ..."), and where the task asks for a
    change as it stands, or for nothing else, whatever else the author did; and features that such an answer says or
    shows to be new (logging, a timeout, an optional parameter). Code is compared with the task's own; where the task
    shows none, two such features are needed, since one may have been there. Offers, advice and what the answer denies
    do not count, nor do tests and whatever else a change makes necessary.

    Examples
    --------
    >>> task = "Refactor fetch_user to be async"
    >>> additions(task, "It is async now. I added tracing, a timeout and a request counter.")
    ('tracing', 'timeout', 'counter')
    >>> additions(task, "It is async now. You may want to add a timeout.")
    ()
    >>> additions("Why does the job hang?", "I added a timeout.")
    ()
    >>> additions("Cancel my table for Friday.", "Cancelled. I also booked you a room at the Harbour Hotel.")
    ('room',)
    """
    text = ends(normalize("NFC", answer), MAX_CHARS, "\n")
    asked = ends(normalize("NFC", task), MAX_CHARS, "\n")
    kind = kind_of(asked)
    found: dict[str, None] = {}
    for thing in chain(_told(asked, text, kind), _shown(asked, text, kind)):
        found[thing] = None
        if len(found) == MAX_ADDITIONS:
            break
    return tuple(found)


def forbidden_features(task: str, answer: str) -> tuple[str, ...]:
    """Return the features that a task forbids to add and an answer says or shows to be new, in the task's words.

    Examples
    --------
    >>> forbidden_features("Make it async. Do not add logging.", "It is async, with extra logs.")
    ('logging',)
    >>> forbidden_features("Make it async. Do not add logging.", "It is async. No logs were added.")
    ()
    """
    items = {
        name: text
        for text, each in forbidden(task).items()
        if not {"add", "have", "use"}.isdisjoint(each.acts)
        for name in features_in(text)
    }
    if not items:
        return ()
    code, prose = code_of(ends(answer, MAX_CHARS, "\n"))
    shown = in_code(code) - in_code(task) if code else set()
    said = {
        name
        for line in [*statements(prose), *(match[1] for match in COMMENT.finditer(code))]
        if "?" not in line
        for clause in _CLAUSE_END.split(line)
        for name, match in named(clause)
        if name in items and _comes_in(clause, tokens_of(clause), match)
    }
    return tuple(dict.fromkeys(text for name, text in items.items() if name in shown | said))


def _told(task: str, text: str, kind: Kind) -> Iterator[str]:
    """Yield what an answer says it has done beyond the task."""
    same, spoken = not differ(task, text), language(text)
    closed = is_closed(task)
    brief_answer = len(text) <= BRISK_CHARS
    brisk = same and brief_answer
    plain = brisk and is_one_act(task)
    # Who asks "What time is it?", or for something to be made, wants no act in the world: "I set your watch."
    asks = (
        brisk
        and not may_be_mended(task)
        and (is_question(task) or (kind == "make" and not wants_text(task) and not is_delegated(task)))
    )
    counted = is_counted(task) and wants_text(task)
    others = rewords(task)
    brief = same and is_brief(task)
    short = len(_PLAIN.findall(text.split("\n", 1)[0].split(". ", 1)[0])) < 8
    listed = ""
    for number, line in enumerate(statements(_QUOTED.sub(" ", code_of(text)[1]))):
        # "Shall I also add a timeout?" has added nothing.
        if "?" in line or "\uff1f" in line:
            continue
        # Items below "Further changes:" need not say themselves that they are extra.
        strong = bool(listed) or _STRONG.search(line) is not None
        heading = brief_answer and _HEADING.match(line) is not None and (others or _tells_of_work(line))
        weak = strong or heading or _WEAK.search(line) is not None
        if counted and number and line.endswith((":", "\uff1a")):
            yield from _strange(task, [*things_of(tokens_of(line), -1)][:1])
        acted = weak or plain or asks
        if not (acted or brief or (kind == "change" and len(task) <= TOLD_CHARS)):
            continue
        evidence = Evidence(strong or heading, weak, strong or closed, plain, asks and not kind, spoken)
        found: list[str] = []
        excused = _is_excused(tokens_of(line)) and not strong
        for first, clause in enumerate(_CLAUSE_END.split(line)):
            tokens = tokens_of(clause)
            come = [
                match[0].casefold()
                for name, match in named(clause)
                if (listed or _comes_in(clause, tokens, match))
                and _counts(name, kind, strong, weak)
                and name not in features_in(task)
            ]
            if come or excused or (not strong and not NEEDED.isdisjoint(tokens)):
                found += come
                continue
            if acted and not (others and {"we", "our", "we've"} & {*tokens}):
                found += _objects(task, tokens, evidence, not first)
            if weak and evidence.anything and not clause.isascii():
                found += _dense(task, clause)
        # An item is often a bare noun: "- dark mode".
        if not found and (listed == "open" or heading) and len(line) <= ITEM_CHARS:
            found += _strange(task, [*things_of(tokens_of(line), -1)][:1])
        if number and brief and not found and short and len(_words(line)) > BRIEF_WORDS:
            words = [token for token in tokens_of(line) if len(token) > 3 and token not in FILLER]
            strange = [word for word in words if not _is_asked(task, [word])]
            found += strange[:1] if len(strange) > 2 else []
        yield from found
        if heading:
            listed = "told" if found else "open"


def _promises(task: str, text: str) -> Iterator[str]:
    """Yield what a message tells besides what it is to tell, sentence by sentence."""
    for quoted in _QUOTED.findall(text):
        for said in _CLAUSE_END.split(quoted):
            tokens = [token for token in tokens_of(said) if token.isalpha() and token not in FILLER]
            words = [token for token in tokens if token not in FUNCTION_WORDS["en"]]
            if len(words) > 2 and POLITE.isdisjoint(tokens) and not _is_asked(task, words):
                yield " ".join(words[-2:])


def _tells_of_work(heading: str) -> bool:
    """Tell whether a heading says that its items were done: "other changes", not "other concerns"."""
    words = _PLAIN.findall(heading.lower())
    return not heading.isascii() or (not MADE.isdisjoint(words) and words[0] not in PRONOUNS)


def _is_excused(tokens: Sequence[str]) -> bool:
    """Tell whether a sentence says that a change could not do without: "since the modules need one"."""
    because = [at for at, token in enumerate(tokens) if token in BECAUSE]
    return bool(because) and not NEEDED.isdisjoint(tokens[because[0] :])


class Evidence(NamedTuple):
    """Announcement of what a sentence tells."""

    strong: bool
    """As something beyond the task."""
    weak: bool
    """At least as something more."""
    anything: bool
    """True if any act counts, not only one upon the world."""
    plain: bool
    """True if what is not announced counts as well."""
    asks: bool
    """True if the task is a question."""
    spoken: str
    """The two letters of the answer's language."""


def _counts(name: str, kind: Kind, strong: bool, weak: bool) -> bool:
    """Tell whether a feature that is announced as extra is one: what is mended or made may need it."""
    return strong or kind == "change" or (weak and (not kind or (kind == "mend" and name in WATCHING)))


def _objects(task: str, tokens: Sequence[str], evidence: Evidence, first: bool) -> Iterator[str]:
    """Yield what the acts of a clause were done to and the task does not speak of."""
    for act in islice(
        acts_of(
            tokens,
            evidence.strong,
            evidence.spoken,
            evidence.weak or (evidence.plain and _I.search(task) is None),
            first,
        ),
        MAX_ADDITIONS,
    ):
        if act.verb in INFORMING and not (evidence.weak and act.verb in GIVING):
            continue
        if not evidence.anything and act.verb not in WORLDLY and not (evidence.asks and act.verb in DOING):
            continue
        if any(act.verb in DONE[name] and name in _acts_of_task(task) for name in ("change", "remove")):
            continue  # more of what was asked for
        is_asked = _is_asked_act(task, act.verb)
        if is_asked and not evidence.weak:
            continue
        other = families_of(act.verb).isdisjoint(_acts_of_task(task))  # "book" asks for what was "reserved"
        if evidence.weak and not is_asked and other and act.verb in WORLDLY:
            yield from (" ".join(words[-2:]) for words in act.things if FOLLOWS.isdisjoint(words))
        else:
            yield from _strange(task, act.things)
    if evidence.anything or (evidence.weak and not THERE.isdisjoint(tokens)):
        yield from _arrived(task, tokens, evidence)
    if evidence.plain:
        yield from _changed(task, tokens)


def _arrived(task: str, tokens: Sequence[str], evidence: Evidence) -> Iterator[str]:
    """Yield what a clause says there is now: "it also accepts a flag", "there's a new page"."""
    comes = evidence.weak or not NOW.isdisjoint(tokens)
    seen = 0
    for at, token in enumerate(tokens[:-1]):
        if is_negation(token) or seen == MAX_ADDITIONS:
            return
        new = at and token in NEW and tokens[at - 1] in ARTICLES
        if new or (token in ("plus",) and tokens[at + 1] in ARTICLES) or (comes and _gains(tokens, at)):
            seen += 1
            things = [*things_of(tokens, at + (tokens[at + 1] in ("with", "is", "are")))]
            yield from _strange(task, [things[0][:2]] if new and things else things)


def _gains(tokens: Sequence[str], at: int) -> bool:
    token = tokens[at]
    if token in THERE:
        return True
    has = token in ("has", "have")
    if not has and token not in GAINING:
        return False
    before = [each for each in tokens[max(0, at - 2) : at] if each not in NOW and each != "also"]
    # "The table also has a trigger" tells of a change, "They also have rooms" of somebody.
    if has:
        return bool(before) and before[-1] not in PRONOUNS
    return not before or (before[-1] not in MORE and before[-1] not in ARTICLES)


def _changed(task: str, tokens: Sequence[str]) -> Iterator[str]:
    """Yield what a clause says is otherwise now, where nothing of it is what the task speaks of."""
    tokens = tokens[tokens.index(":") + 1 :] if ":" in tokens[:6] else tokens
    start = tokens.index("from") if "from" in tokens else 0
    went = start > 0 and "to" in tokens[start:] and ":" not in tokens[start + 1] and tokens[start + 1] not in FILLER
    moved = not NOW.isdisjoint(tokens[1:]) or went or not BECOME.isdisjoint(tokens[:4])
    # "instead" counts as a negation elsewhere; here it says that something took another's place.
    if not moved or len(tokens) < 4 or any(map(is_negation, set(tokens) - BECOME)):
        return
    words = [
        token for token in tokens if len(token) > 2 and token not in FILLER and token not in NOW and token not in LINKS
    ]
    if len(words) > 1 and tokens[0] not in PRONOUNS and not _is_asked(task, words):
        yield from _strange(task, [tuple(words[:2])])


def _is_asked_act(task: str, verb: str) -> bool:
    """Tell whether a task asks for an act, in whatever form of the verb."""
    # Four letters, so that "renewed" is asked for by "Renew" and by "the renewal".
    stem = IRREGULAR_STEMS.get(verb, verb[:-2] if verb.endswith("ed") else verb)[:4]
    return any(word.startswith(stem) for word in _words(task))


def _strange(task: str, things: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the things that a task does not speak of, and that do not follow from it."""
    for words in things:
        # "#4" is a thing, a bare 4 is none.
        lettered = any(word[0] == "#" or any(map(str.isalpha, word)) for word in words)
        if lettered and FOLLOWS.isdisjoint(words) and not _is_asked(task, words):
            yield " ".join(words[-2:])


@read_once
def _words(task: str) -> frozenset[str]:
    return frozenset(_PLAIN.findall(task.lower()))


@read_once
def _acts_of_task(task: str) -> frozenset[str]:
    return frozenset().union(*map(families_of, _words(task)))


@lru_cache(maxsize=1024)
def _has(task: str, word: str) -> bool:
    """Tell whether most letters of a word are in a task, or the very number."""
    # Different numbers may have most of their digits in common: 1250 and 1520.
    if any(map(str.isdigit, word)):
        return word in task
    return shares(bag_once(task), bag(word))[1] >= 0.5


def _is_asked(task: str, words: Iterable[str]) -> bool:
    """Tell whether a task speaks of a thing: most letters of one of its words are there, or the very number."""
    return any(_has(task, word) for word in words)


def _dense(task: str, clause: str) -> Iterator[str]:
    """Yield what was done in a language without spaces."""
    if _DENSE_NOT.search(clause):
        return
    for match in _DENSE_ACT.finditer(clause):
        thing = match["thing"] or match["taken"] or match["before"]
        if thing and shares(bag_once(task), bag(thing))[1] < 0.5:
            yield thing


def _comes_in(clause: str, tokens: Sequence[str], match: re.Match[str]) -> bool:
    """Tell whether a clause says that what is matched there is new: behind such a word, or before "were added"."""
    before, after = tokens_of(clause[: match.start()]), tokens_of(clause[match.end() :])
    if not KEPT.isdisjoint(tokens) or _unreal(before) or (not clause.isascii() and _DENSE_NOT.search(clause)):
        return False
    # "Here it is with a timeout."
    if not ADDING.isdisjoint(before) or "with" in before[-8:] or not DONE["add"].isdisjoint(after):
        return True
    return any(word in clause for word in ("添加", "加了", "增加", "加上", "加入", "追加"))


def _unreal(tokens: Sequence[str]) -> bool:
    return any(map(is_negation, tokens)) or not {"can", "you", "offer", "happy", "recommend", "suggest"}.isdisjoint(
        tokens
    )


def _shown(task: str, text: str, kind: Kind) -> Iterator[str]:
    """Yield the features that come with an answer to a task that asks for a change as it stands."""
    code = code_of(text)[0]
    if is_one_act(task):
        yield from other_code(task, code, text)
    if is_message(task):
        yield from _promises(task, text)
    if kind != "change" and not is_one_act(task):
        return
    for line in [match[1] for match in COMMENT.finditer(code)]:
        for clause in _CLAUSE_END.split(line):
            for name, match in named(clause):
                if _comes_in(clause, tokens_of(clause), match) and name not in features_in(task):
                    yield match[0].casefold()
    if code:
        yield from code_features(task, code)
