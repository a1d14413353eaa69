"""Negated clauses, reduced to acts and objects: "do not", "nobody may", "no refunds", "without", in six languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from coherence.core.words import word_set
from coherence.detect import restriction_words as says
from coherence.detect.acts import NOUNS, acts_of
from coherence.detect.allowances import DOMAIN, OUTSIDE
from coherence.detect.objects import PERSONS, objects_of
from coherence.detect.prohibition import Prohibition
from coherence.detect.properties import forms_of
from coherence.detect.text_analysis import tokens

ALONE = word_set("publish commit install handover cancel send pay buy book restart online invite")
"""Acts that may be forbidden without a word of what they are done to."""

_CONJUNCTIONS = word_set("or nor and oder und ou et ni o y e")
_DESCRIBING = word_set("can ca could will wo")
"""Auxiliaries that forbid only behind "you": "the export can not be read" describes."""
_HUMAN = word_set("me us human agent call case over someone")
"""Words that tell a transfer to a person from one of money."""


def main_acts(clause: str) -> tuple[str, ...]:
    """Return the acts of the first verb of a clause."""
    verbs = (acts_of(word) for word in words_of(clause)[:12] if word not in NOUNS)
    found = next(filter(None, verbs), None)
    return (*sorted(found), "other") if found else ("any",)


def words_of(clause: str) -> list[str]:
    """Return the words, paths and addresses of a clause."""
    return [word.rstrip(".'") for word in says.WORD.findall(clause)]


def parts_of(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the parts of "the tests or the docs"."""
    part: list[str] = []
    for word in words:
        if word.casefold() in _CONJUNCTIONS:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def closed(words: list[str]) -> Iterator[Prohibition]:
    """Read the subject of "... is off limits": an act ("deleting rows"), or things."""
    low = [word.casefold() for word in words]
    all_that = bool(low) and low[0] in ("whatever", "anything", "everything")  # "whatever alters the cluster"
    act = next((at for at, word in enumerate(low[:4]) if acts_of(word) and (all_that or word.endswith("ing"))), None)
    if act is not None:
        about = words[act + 1 :]
        yield from _forbid(low[act], about if objects_of(about, ()) else [*about, "anything"], words)
        return
    for part in parts_of(words):
        noun = next((NOUNS[word.casefold()] for word in part if word.casefold() in NOUNS), "")
        if noun in ALONE:
            kind = [word for word in part if NOUNS.get(word.casefold()) != noun]  # "force pushes"
            yield Prohibition((noun,), objects_of(kind, (noun,)), "")
        elif (objects := objects_of(part, (noun,) if noun else ())) or forms_of(part):
            yield Prohibition(("any", "have"), objects, "", forms=forms_of(part))


def negated(words: list[str], before: str, tongue: str) -> Iterator[Prohibition]:
    """Read the negation of a clause, its verb, and what the verb is about."""
    low = [word.casefold() for word in words]
    for at, word in enumerate(low[:-1]):
        following, opens = low[at + 1], says.OPENERS.issuperset(low[:at])
        contrasts = word in says.CONTRAST and following in says.PREPOSITIONS and opens
        if contrasts and (_is_imperative(before) or tongue not in ("en", "")):
            for part in parts_of(words[at + 1 :]):  # "but not the Hilton"
                if objects := objects_of(part, ()):
                    yield Prohibition(main_acts(before), objects, "")
            return
        if word == "not" and opens and {"do", "did"}.isdisjoint(low[:at]) and not acts_of(following):
            return  # "but not white"
        if word in says.NOT and _forbids(low, at):
            yield from _after_not(words, low, at, passive=_is_passive(low[:at]))
            return
        if word in ("stop", "quit") and not following.endswith("ing"):
            return  # "stop the server"
        if word in says.AVOID and opens:
            yield from _after_not(words, low, at, passive=False)
            return
        # "without downtime, if possible" is a wish.
        if word in says.WITHOUT and {"can", "could", "possible", "able"}.isdisjoint(low):
            # "without deleting"; in other languages the infinitive follows: "sans supprimer".
            if acts_of(following) and (following.endswith("ing") or word != "without"):
                yield from _forbid(following, words[at + 2 :], words)
            elif says.TELLING.isdisjoint(low[:at]) and says.TELLING.isdisjoint(before.casefold().split()):
                yield from _nothing_of(words[at + 1 :], ("have",))
            return
        if word in ("nobody", "nothing", "none", "noone"):
            verb = _verb_behind(low, at, 8)
            modal = says.MODAL | says.BE | {"is", "are", "to"}
            if verb is not None and not modal.isdisjoint(low[at + 1 : verb]):
                if {"else", "except", "but", "besides"}.isdisjoint(low[at:]):
                    between = [each for each in words[at + 1 : verb] if each.casefold() not in modal]
                    yield from _forbid(low[verb], [*between, *words[verb + 1 :], "anything"], words)
                return
            if at and acts_of(low[at - 1]) and says.OPENERS.issuperset(low[: at - 1]):  # "deploy nothing"
                yield from _forbid(low[at - 1], ["anything", *words[at + 1 :]], words)
                return
            if opens and following in says.PREPOSITIONS and modal.isdisjoint(low):  # "nothing from Amazon"
                yield from _nothing_of(words[at + 1 :], ("any", "have"))
                return
        if word == "no" and (tongue in ("es", "it", "pt") or (tongue != "en" and _is_romance_verb(following))):
            continue
        if word in says.QUANTIFIED and "ne" not in low[:at]:
            yield from _no_noun(words, low, at, before)
            return
    if (german := says.GERMAN_NOT.search(" ".join(low))) is not None:
        yield from _german(words, low, german[0])
        return
    for at, word in enumerate(low):
        if word in says.ROMANCE_NOT:
            yield from _romance(words, low, at)
            return


def _is_imperative(clause: str) -> bool:
    low = [word.casefold() for word in words_of(clause)]
    if says.OPENERS.issuperset(low):
        return True
    return low[0] not in says.SUBJECTS | {"yes", "no", "sure"} and says.TELLING.isdisjoint(low)


def _is_passive(before: Sequence[str]) -> bool:
    """Tell whether what stands before a negation is what the act is done to: "rows must (not be deleted)"."""
    modal = says.MODAL | {"is", "are", "to", "be"}
    subject = [word for word in before if word not in modal]
    return bool(subject) and before[-1] in modal and subject[-1] not in says.SUBJECTS


def _is_romance_verb(word: str) -> bool:
    """Tell whether a word is rather a Romance verb than an English noun: "no borres"."""
    conjugated = bool(acts_of(word)) and word.endswith(("es", "as", "ís")) and word not in NOUNS
    return conjugated or word.endswith(("ques", "gues"))


def _verb_behind(low: Sequence[str], at: int, reach: int) -> int | None:
    """Return the place of the first verb of an act within some words behind a place."""
    places = range(at + 1, min(at + reach, len(low)))
    return next((each for each in places if acts_of(low[each]) and low[each] not in says.FILL), None)


def _forbids(low: Sequence[str], at: int) -> bool:
    """Tell whether a negation forbids rather than describes: "must not", "do not", "is not to"."""
    before = [word for word in low[:at] if word not in says.OPENERS or word in ("do", "did", "you", "we", "could")]
    if not before:
        return at == 0 or low[at - 1] not in ("did", "is", "are")
    last, following = before[-1], low[at + 1]
    # "I would rather you did not" forbids, "they did not" tells of the past.
    if last == "did":
        return "rather" in low[:at]
    if last in says.MODAL:
        return last not in _DESCRIBING or low[:at] == ["you", last]
    if last in ("is", "are"):
        planned = before[-2:-1] == ["we"] and following.endswith("ing")  # "we are not deploying today"
        return planned or following in ("to", "allowed", "permitted", "supposed", "authorized", "invited", "welcome")
    if last == "do":
        wished = before[-2:-1] == ["i"] and following in ("want", "need", "like", "wish")  # "I do not want you to"
        return wished or before[:-1] in ([], ["you"], ["we"])
    return last in ("you", "we")


def _after_not(words: list[str], low: list[str], at: int, *, passive: bool) -> Iterator[Prohibition]:
    verb = at + 1
    while verb < len(low) and low[verb] in says.FILL and not (low[verb] in says.LIGHT and verb + 1 >= len(low)):
        verb += 1
    if verb >= len(low):
        return
    named = low[verb] in says.ANY or low[verb] in ("a", "an", "the", "my", "our", "new") or low[verb - 1] in says.LIGHT
    if named or (low[at] in says.AVOID and not low[verb].endswith("ing")):
        yield from _nothing_of(words[verb:], ("any", "have") if low[at] in says.AVOID else ("have",))
    elif low[verb] in ("want", "need", "like", "wish"):
        inner = _verb_behind(low, verb, 6)
        if inner is not None and low[inner - 1] in ("to", "be", "you"):
            yield from _forbid(low[inner], words[inner + 1 :], words, handed="be" in low)
        else:
            yield from _nothing_of(words[verb + 1 :], ("have",))
    else:
        about = [*(words[: at - 1] if passive else []), *words[verb + 1 :]]
        yield from _forbid(low[verb], about, words, handed=passive or "be" in low[at:verb])


def _forbid(verb: str, about: list[str], words: list[str], *, handed: bool = False) -> Iterator[Prohibition]:
    """Read "touch the tests or delete a file" as two prohibitions."""
    # "force-push" is a push, of a certain kind.
    if "-" in verb and acts_of(verb.rpartition("-")[2]):
        about, verb = [verb.partition("-")[0], *about], verb.rpartition("-")[2]
    acts = _acts(verb, about, handed)
    parts = list(islice(parts_of(about), 4))
    for number, part in enumerate(parts if parts[0] or len(parts) == 1 else parts[1:], not parts[0]):
        if number and part and acts_of(part[0]) and part[0].casefold() not in NOUNS:
            acts, part = _acts(part[0], part[1:], handed), part[1:]
        low = [word.casefold() for word in part]
        if not acts:
            if verb not in says.MENTAL and (objects := objects_of(part, ())):
                yield Prohibition(("any",), objects, "")
            continue
        forms = forms_of(part) if {"use", "mention", "add", "write"} & set(acts) else ()
        forms += forms_of([verb]) if "use" in acts else ()
        if says.FOR_GOOD.search(" ".join(words)) is not None and "remove" in acts:
            objects = objects_of(says.FOR_GOOD.sub("", " ".join(part)).split(), acts)
            yield Prohibition(("remove",), objects, "", of="good")
            continue
        if "send" in acts and OUTSIDE.search(" ".join(low)) is not None:
            yield Prohibition(("send", "invite"), (), "", of="house")
            continue
        objects = objects_of(part, acts)
        anything = not says.ANY.isdisjoint(low) or not says.GENERIC.isdisjoint(low)
        if objects or forms:
            yield Prohibition(acts, objects, "", forms=forms)
        elif anything or not ALONE.isdisjoint(acts):
            of = "outsider" if "send" in acts and not PERSONS.isdisjoint(tokens(" ".join(low))) else ""
            yield Prohibition(acts, (), "", of=of)
        elif {"it", "them", "that", "this", "ihn", "sie", "es"} & set(low):
            yield Prohibition(acts, ("",), "")  # what the clause before names


def _acts(verb: str, about: Sequence[str], handed: bool) -> tuple[str, ...]:
    """Return the families of a verb, as those that a call is looked at for."""
    acts = set(acts_of(verb))
    low = {word.casefold() for word in about}
    if {"pay", "handover"} <= acts:
        acts.remove("pay" if handed or not low or not _HUMAN.isdisjoint(low) else "handover")
    if verb in ("touch", "touching", "touched"):
        acts = {"any"} if handed else {"change"}
    if acts & {"use", "mention"}:
        acts |= {"have"}
    return tuple(sorted(acts - {"read"} if len(acts) > 1 else acts))


def _nothing_of(words: Sequence[str], acts: tuple[str, ...]) -> Iterator[Prohibition]:
    """Read "no new dependencies", "without logging": an act that the noun names, or what must not be there."""
    low = [word.casefold() for word in words]
    inside = bool(low) and low[-1] in says.PLACES
    end = next((at for at in range(1, len(low)) if inside and low[at] in ("in", "into")), len(low))
    for piece in islice(parts_of(words[:end]), 4):
        nouns = (NOUNS.get(word.casefold()) or NOUNS.get(word) for word in piece[:5])
        act = next((noun for noun in nouns if noun), None)
        if act == "create" and says.NEW.isdisjoint(low):
            act = None  # "the lock file" is a thing
        objects, forms = objects_of(piece, (act,) if act else ()), forms_of(piece)
        if end < len(words) and forms:
            yield Prohibition(acts, objects, "", forms=forms)
        elif act == "change":
            yield Prohibition(("change", "remove"), objects, "")  # "no code changes" allows a new file
        elif act and act not in ("log", "remove"):
            yield Prohibition((act,), objects if act not in ALONE or len(objects) == 1 else (), "")
        elif objects or forms:
            yield Prohibition(acts, objects, "", forms=forms)


def _no_noun(words: list[str], low: list[str], at: int, before: str) -> Iterator[Prohibition]:
    """Read "no refunds", "no invoice may be deleted", "lösche keine Dateien"."""
    rest = words[at + 1 :]
    if low[at + 1] in says.NO_MATTER:
        return
    verbs = says.MODAL | says.OTHER_MODAL | {"is", "are", "ne", "gets"}
    modal = next((each for each in range(at + 2, len(low)) if low[each] in verbs), None)
    if modal is not None and says.OPENERS.issuperset(low[:at]):
        places = range(len(low) - 1, modal, -1)
        verb = next((each for each in places if acts_of(low[each]) and low[each] not in says.FILL), None)
        if verb is not None and (low[modal] not in ("is", "are") or low[modal + 1 : modal + 2] == ["to"]):
            about = [*words[at + 1 : modal], *(words[modal + 1 : verb] if low[at] != "no" else []), *words[verb + 1 :]]
            text = " ".join(about)
            domain = DOMAIN.search(text) if OUTSIDE.search(text) else None
            if domain:
                yield Prohibition(("send",), (), "", only=(domain[0].casefold(),), of="domain")
                return
            yield from _forbid(low[verb], about, words)
        return
    first = next((each for each in range(at) if low[each] not in says.OPENERS), None)
    if low[at].startswith("kein") and acts_of(low[-1]):
        yield from _forbid(low[-1], words[at + 1 : -1], words)
    elif first is None:
        said = words_of(before)
        begins = len(said) < 3 or main_acts(before) != ("any",) or not NOUNS.keys().isdisjoint(low)
        plain = begins and says.TELLING.isdisjoint(low) and {"there", "here", "yet"}.isdisjoint(low)
        if plain and len(rest) <= 5 and {"but", "still", "yet", "that"}.isdisjoint(low[:at]):
            yield from _nothing_of(rest, ("any", "have"))
    elif acts_of(low[first]) and at - first <= 3:
        yield from _forbid(low[first], [*rest, "any"], words)


def _german(words: list[str], low: list[str], negation: str) -> Iterator[Prohibition]:
    """Read "lösche die Tabelle nicht", "der Ordner darf nicht verschoben werden"."""
    first = next((at for at, word in enumerate(low) if word not in says.OPENERS), 0)
    verbs = [
        at
        for at, word in enumerate(low)
        # A capital letter begins a noun in German: "das Löschen".
        if acts_of(word) and word not in says.OTHER_MODAL and (at == first or not words[at][0].isupper())
    ]
    if not verbs or (verbs[-1] != first and verbs[-1] < len(low) - 2):
        return
    verb = verbs[-1]
    behind = ("tabelle", "spalte", "datei", "ordner", "branch", "zweig")
    about = [
        word
        for at, word in enumerate(words)
        # German nouns have capitals; a name in small letters stands behind its kind: "die Tabelle kunden".
        if at != verb and ((word[0].isupper() and at) or not word.isalpha() or low[at - 1] in behind)
    ]
    yield from _forbid(low[verb], [*about, *(["anything"] if negation == "nichts" else [])], words)


def _romance(words: list[str], low: list[str], at: int) -> Iterator[Prohibition]:
    """Read "ne supprime pas les tests", "no se puede tocar la base"."""
    before = set(low[:at]) - says.OPENERS - word_set("il on se tu vous usted lei você nous")
    verb = next((each for each in range(at + 1, min(at + 5, len(low))) if acts_of(low[each])), None)
    if verb is None:
        return
    between = low[at + 1 : verb]
    fill = says.FILL | says.OTHER_MODAL | word_set("pas que aucun faut jamais plus si può lo hay")
    modal = not says.OTHER_MODAL.isdisjoint(between)
    if fill.issuperset(between) and (modal or not before):
        yield from _forbid(low[verb], [*(words[:at] if modal else []), *words[verb + 1 :]], words)
