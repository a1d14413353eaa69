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
        if word.casefold() in ("or", "nor", "and", "oder", "und", "ou", "et", "ni", "o", "y", "e"):
            yield part
            part = []
        else:
            part.append(word)
    yield part


def closed(words: list[str]) -> Iterator[Prohibition]:
    """Read the subject of "... is off limits": an act ("deleting rows"), a noun of one ("refunds"), or a thing."""
    low = [word.casefold() for word in words]
    at = next(
        (at for at, word in enumerate(low[:3]) if acts_of(word) and (word.endswith("ing") or words[at].isupper())), None
    )
    if at is None and low[:1] and low[0] in ("whatever", "anything", "everything") and len(low) > 1:
        at = next((at for at in range(1, min(4, len(low))) if acts_of(low[at])), None)
    if at is not None:
        yield from _forbid(
            low[at], [*words[at + 1 :], *([] if objects_of(words[at + 1 :], ()) else ["anything"])], words
        )
        return
    for part in parts_of(words):
        act = next((NOUNS[word.casefold()] for word in part if word.casefold() in NOUNS), None)
        if act in ALONE:
            part = [word for word in part if NOUNS.get(word.casefold()) != act]
        objects, forms = objects_of(part, (act,) if act else ()), forms_of(part)
        if act in ALONE:
            yield Prohibition((act,), objects, "", forms=forms)
        elif objects or forms:
            yield Prohibition(("any", "have"), objects, "", forms=forms)


def negated(words: list[str], before: str, tongue: str) -> Iterator[Prohibition]:
    """Read the negation of a clause, its verb, and what the verb is about."""
    low = [word.casefold() for word in words]
    for at, word in enumerate(low):
        if at + 1 == len(low):
            break
        if (
            word in says.CONTRAST
            and low[at + 1] in says.PREPOSITIONS
            and all(each in says.OPENERS for each in low[:at])
            and (_is_imperative(before) or tongue not in ("en", ""))
        ):
            for part in parts_of(words[at + 1 :]):  # "but not the Hilton"
                if objects := objects_of(part, ()):
                    yield Prohibition(main_acts(before), objects, "")
            return
        if (
            word == "not"
            and all(each in says.OPENERS - {"do", "did"} for each in low[:at])
            and not acts_of(low[at + 1])
        ):
            return
        if word in says.NOT and (licence := _licence(low, at)):
            yield from _after_not(words, low, at, passive=licence == "passive")
            return
        if (
            word in ("nothing", "nobody")
            and low[at + 1] in says.PREPOSITIONS
            and all(each in says.OPENERS for each in low[:at])
            and (says.MODAL | {"gets", "is", "to", "are"}).isdisjoint(low[at + 2 :])
        ):
            yield from _nothing_of(words[at + 1 :], ("any", "have"))
            return
        if word in ("stop", "quit") and not low[at + 1].endswith("ing"):
            return  # "stop the server"
        if word in says.AVOID and all(each in says.OPENERS for each in low[:at]):
            yield from _after_not(words, low, at, passive=False)
            return
        if word in says.WITHOUT and at + 1 < len(low) and {"can", "could", "possible", "able"}.isdisjoint(low):
            following = words[at + 1 :]
            if acts_of(low[at + 1]) and (low[at + 1].endswith("ing") or word != "without"):
                yield from _forbid(low[at + 1], following[1:], words)
            elif says.TELLING.isdisjoint(low[:at]) and says.TELLING.isdisjoint(before.casefold().split()):
                yield from _nothing_of(following, ("have",))
            return
        if word in ("nobody", "nothing", "none", "noone") and at <= 2 and len(low) > at + 1:
            verb = next(
                (
                    each
                    for each in range(at + 1, min(at + 8, len(low)))
                    if acts_of(low[each]) and low[each] not in says.FILL
                ),
                None,
            )
            modal = says.MODAL | says.BE | {"is", "are", "to"}
            if verb is not None and not modal.isdisjoint(low[at + 1 : verb]):
                if OUTSIDE.search(" ".join(low)) is None and {"else", "except", "but", "besides"}.isdisjoint(low[at:]):
                    between = [each for each in words[at + 1 : verb] if each.casefold() not in modal]
                    yield from _forbid(low[verb], [*between, *words[verb + 1 :], "anything"], words)
                return
        if (
            at
            and word in ("nothing", "nobody")
            and acts_of(low[at - 1])
            and all(each in says.OPENERS for each in low[: at - 1])
        ):
            yield from _forbid(low[at - 1], ["anything", *words[at + 1 :]], words)
            return
        if word == "no" and (
            tongue in ("es", "it", "pt") or (tongue != "en" and low[at + 1 : at + 2] and _conjugated(low[at + 1]))
        ):
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
    first = next((word for word in low if word not in says.OPENERS), "")
    if not first:
        return True  # an interjection
    return low[0] not in says.SUBJECTS | {"yes", "no", "sure"} and says.TELLING.isdisjoint(low)


def _conjugated(word: str) -> bool:
    """Tell whether a word is rather a Romance verb than an English noun: "no borres"."""
    return (bool(acts_of(word)) and word[-2:] in ("es", "as", "ís") and word not in NOUNS) or word.endswith(
        ("ques", "gues")
    )


def _licence(low: Sequence[str], at: int) -> str:
    """Tell whether a negation forbids rather than describes; ``passive`` where its subject is what it is done to."""
    before = low[:at]
    if not before or all(word in says.OPENERS for word in before):
        return "active"
    last = before[-1]
    subject = [
        word for word in before if word not in says.MODAL and word not in ("do", "did", "is", "are", "to", "ever")
    ]
    mine = not subject or any(word in says.SUBJECTS for word in subject[-1:])
    if last in says.MODAL:
        if last in ("can", "ca", "could", "will", "wo") and before != ["you", last]:
            return "passive" if low[at + 1 : at + 2] == ["be"] and last in ("can", "ca") else ""
        return "active" if mine and not (low[at + 1 : at + 2] == ["be"] and subject[-1:] != ["you"]) else "passive"
    if last == "do":
        if subject[-1:] == ["i"]:
            return "active" if {"want", "need", "like", "wish"} & set(low[at + 1 : at + 3]) else ""
        if subject[-1:] in (["you"], ["we"]):
            return "active" if acts_of(low[at + 1]) and low[at + 1] not in says.MENTAL else ""
        return "active" if any(word in ("please", "but") for word in before[-3:-1]) else ""
    if last == "did":
        return "active" if {"rather", "prefer"} & set(before) else ""
    if last in ("is", "are"):
        if low[at + 1 : at + 2] == ["to"]:
            return "passive" if low[at + 2 : at + 3] == ["be"] else "active"
        if low[at + 1 : at + 2] in (["invited"], ["welcome"]):
            return "passive"
        return (
            "active"
            if {"allowed", "permitted", "supposed", "authorized"} & set(low[at + 1 : at + 2])
            or (subject[-1:] == ["we"] and low[at + 1].endswith("ing"))
            else ""
        )
    return "active" if last in ("you", "we", "rather", "better", "please", "sure", "careful", "try") else ""


def _after_not(words: list[str], low: list[str], at: int, *, passive: bool) -> Iterator[Prohibition]:
    verb = at + 1
    while verb < len(low) and low[verb] in says.FILL and not (low[verb] in says.LIGHT and verb + 1 >= len(low)):
        passive = passive or (low[verb] in says.BE and bool(low[:at]) and low[at - 1] not in ("do", "you"))
        verb += 1
    if verb >= len(low):
        return
    rest = words[verb + 1 :]
    if low[verb] in says.MODAL:  # "never may rows be deleted"
        done = next(
            (
                each
                for each in range(verb + 1, len(low))
                if acts_of(low[each]) and low[each].endswith(("ed", "en", "t"))
            ),
            None,
        )
        if done is not None:
            yield from _forbid(low[done], words[verb + 1 : done] + words[done + 1 :], words)
        return
    if (
        low[verb] in says.ANY
        or low[verb] in ("a", "an", "the", "my", "our", "new")
        or low[verb - 1] in says.LIGHT
        or (low[at] in says.AVOID and not (acts_of(low[verb]) and low[verb].endswith("ing")))
    ):
        yield from _nothing_of(words[verb:], ("any", "have") if low[at] in says.AVOID else ("have",))
        return
    if low[verb] in ("want", "need", "like", "wish"):
        inner = next(
            (
                each
                for each in range(verb + 1, min(verb + 6, len(low)))
                if acts_of(low[each]) and low[each] not in says.FILL
            ),
            None,
        )
        if (
            inner is not None
            and (low[inner - 1] in ("to", "be", "you") or low[inner].endswith(("ed", "ing")))
            and low[inner] not in NOUNS
        ):
            yield from _forbid(
                low[inner],
                words[inner + 1 :] if low[inner - 1] != "be" else words[verb + 1 : inner],
                words,
                handed="be" in low,
            )
        else:
            yield from _nothing_of(words[verb + 1 :], ("have",))
        return
    yield from _forbid(
        low[verb], words[: at - 1] + rest if passive else rest, words, handed=passive or "be" in low[at:verb]
    )


def _forbid(verb: str, about: list[str], words: list[str], *, handed: bool = False) -> Iterator[Prohibition]:
    """Read "touch the tests or delete a file" as two prohibitions."""
    if "-" in verb and acts_of(verb.rpartition("-")[2]):
        about, verb = [verb.partition("-")[0], *about], verb.rpartition("-")[2]
    acts = _acts(verb, about, handed)
    parts = list(islice(parts_of(about), 4))
    for number, part in enumerate(parts if parts[0] or len(parts) == 1 else parts[1:], not parts[0]):
        part = [
            piece
            for word in part
            for piece in (word.split("-") if "-" in word and acts_of(word.rpartition("-")[2]) else [word])
        ]
        if number and part and acts_of(part[0]) and part[0].casefold() not in NOUNS:
            acts, part = _acts(part[0], part[1:], handed), part[1:]
        low = [word.casefold() for word in part]
        if {"more", "than"} <= set(low) or "number" in low:
            continue
        if not acts:
            if verb not in says.MENTAL and not verb.endswith(("'s",)) and (objects := objects_of(part, ())):
                yield Prohibition(("any",), objects, "")
            continue
        if verb.startswith(("reply", "answer", "respond")) and "all" in low:
            yield Prohibition(("send",), ("all",), "")
            continue
        forms = forms_of(part) if {"use", "mention", "add", "write"} & set(acts) else ()
        forms += forms_of([verb]) if "use" in acts else ()
        if says.FOR_GOOD.search(" ".join(words)) is not None and "remove" in acts:
            objects = objects_of(says.FOR_GOOD.sub("", " ".join(part)).split(), acts)
            yield Prohibition(("remove",), objects, "", of="good")
            continue
        objects = objects_of(part, acts)
        anything = not says.ANY.isdisjoint(low) or not says.GENERIC.isdisjoint(low)
        outside = OUTSIDE.search(" ".join(low)) is not None
        if "send" in acts and outside:
            yield Prohibition(("send", "invite"), (), "", of="house")
        elif objects or forms:
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
        acts -= (
            {"pay"}
            if handed or low & {"me", "us", "human", "agent", "call", "case", "over", "someone"} or not low
            else {"handover"}
        )
    if {"write"} & acts and (low & {"kunden", "kunde", "client", "clients", "cliente", "clientes"}):
        acts = {"send"}
    if verb in ("touch", "touching", "touched"):
        acts = {"any"} if handed else {"change"}
    if acts & {"use", "mention"}:
        acts |= {"have"}
    if "add" in acts and "change" not in acts:
        acts |= {"have"}
    noun = next((NOUNS[word] for word in low if word in NOUNS), None)
    if acts & {"add", "use"} and noun == "install":
        acts = {"install"}
    return tuple(sorted(acts - {"read"} if len(acts) > 1 else acts))


def _nothing_of(words: Sequence[str], acts: tuple[str, ...]) -> Iterator[Prohibition]:
    """Read "no new dependencies", "without logging": an act that the noun names, or what must not be there."""
    end = next(
        (
            at
            for at in range(1, len(words))
            if words[at].casefold() in ("in", "into") and words[-1].casefold() in says.PLACES
        ),
        len(words),
    )
    for piece in islice(parts_of(words[:end]), 4):
        low = [word.casefold() for word in piece]
        act = next(
            (
                NOUNS.get(word) or NOUNS.get(each)
                for word, each in zip(low[:5], piece, strict=False)
                if word in NOUNS or each in NOUNS
            ),
            None,
        )
        if act is None and low and acts_of(low[-1]) & {"install", "publish", "commit", "restart"}:
            act = next(iter(acts_of(low[-1]) & {"install", "publish", "commit", "restart"}))
            piece = piece[:-1]
        if act in ALONE:
            piece = [word for word in piece if not (NOUNS.get(word.casefold()) == act or word.casefold() in says.LIGHT)]
        objects, forms = objects_of(piece, (act,) if act else ()), forms_of(piece)
        if act == "create" and says.NEW.isdisjoint(low):
            act = None
        if end < len(words) and forms:
            yield Prohibition(acts, objects, "", forms=forms)
        elif act == "create":
            yield Prohibition(("create",), (), "")
        elif act and act not in ("log", "change") and (act != "remove"):
            yield Prohibition((act,), objects if act not in ALONE or len(objects) == 1 else (), "")
        elif act == "change":
            yield Prohibition(("change", "remove"), objects, "")
        elif objects or forms:
            yield Prohibition(acts, objects, "", forms=forms)


def _no_noun(words: list[str], low: list[str], at: int, before: str) -> Iterator[Prohibition]:
    """Read "no refunds", "issue no refunds", "no invoice may be deleted", "lösche keine Dateien"."""
    rest = words[at + 1 :]
    if not rest or low[at + 1] in says.NO_MATTER:
        return
    modal = next(
        (
            each
            for each in range(at + 2, len(low))
            if low[each] in says.MODAL | says.OTHER_MODAL | {"is", "are", "ne", "gets"}
        ),
        None,
    )
    if modal is not None and all(word in says.OPENERS for word in low[:at]):
        verb = next(
            (each for each in range(len(low) - 1, modal, -1) if acts_of(low[each]) and low[each] not in says.FILL), None
        )
        if verb is not None and (low[modal] not in ("is", "are") or low[modal + 1 : modal + 2] == ["to"]):
            about = [*words[at + 1 : modal], *(words[modal + 1 : verb] if low[at] != "no" else []), *words[verb + 1 :]]
            text = " ".join(about)
            domain = DOMAIN.search(text) if OUTSIDE.search(text) else None
            if "send" in acts_of(low[verb]) and domain:
                yield Prohibition(("send",), (), "", only=(domain[0].casefold(),), of="domain")
                return
            yield from _forbid(low[verb], about, words)
        return
    first = next((each for each in range(at) if low[each] not in says.OPENERS), None)
    last = len(low) - 1
    if low[at].startswith("kein") and acts_of(low[last]):
        yield from _forbid(low[last], words[at + 1 : last], words)
    elif first is None:
        if (
            (
                not before
                or not NOUNS.keys().isdisjoint(low)
                or main_acts(before) != ("any",)
                or not words_of(before)[2:]
            )
            and len(rest) <= 5
            and says.TELLING.isdisjoint(low)
            and {"there", "here", "yet"}.isdisjoint(low)
            and {"but", "still", "yet", "that"}.isdisjoint(low[:at])
        ):
            yield from _nothing_of(rest, ("any", "have"))
    elif first == at - 1 and low[first] in says.LIGHT | {"with", "include", "use", "add", "want"}:
        yield from _nothing_of(rest, ("have",))
    elif acts_of(low[first]) and at - first <= 3:
        yield from _forbid(low[first], [*rest, "any"], words)


def _german(words: list[str], low: list[str], negation: str) -> Iterator[Prohibition]:
    first = next((at for at, word in enumerate(low) if word not in says.OPENERS), 0)
    verbs = [
        at
        for at, word in enumerate(low)
        if acts_of(word) and word not in says.OTHER_MODAL and (at == first or not words[at][0].isupper())
    ]
    if not verbs:
        return
    verb = verbs[-1]
    if (verb != first and verb < len(low) - 2) or (
        verb != first and says.OTHER_MODAL.isdisjoint(low) and not low[verb].endswith("n")
    ):
        return
    if verb not in (first, len(low) - 1) and not low[verb].endswith(("en", "t")):
        return
    about = [
        word
        for at, word in enumerate(words)
        if at != verb
        and (
            (word[0].isupper() and at)
            or not word.isalpha()
            or low[at - 1] in ("tabelle", "spalte", "datei", "ordner", "branch", "zweig")
        )
    ]
    yield from _forbid(low[verb], [*about, *(["anything"] if negation in ("nichts",) else [])], words)


def _romance(words: list[str], low: list[str], at: int) -> Iterator[Prohibition]:
    before = [
        word
        for word in low[:at]
        if word not in says.OPENERS | {"il", "on", "se", "tu", "vous", "usted", "lei", "você", "nous"}
    ]
    verb = next((each for each in range(at + 1, min(at + 5, len(low))) if acts_of(low[each])), None)
    if verb is None or any(
        word
        not in says.FILL
        | says.OTHER_MODAL
        | {"pas", "que", "aucun", "faut", "jamais", "plus", "si", "può", "lo", "hay"}
        for word in low[at + 1 : verb]
    ):
        return
    modal = not says.OTHER_MODAL.isdisjoint(low[at + 1 : verb])
    if before and not modal:
        return
    yield from _forbid(low[verb], [*(words[:at] if modal else []), *words[verb + 1 :]], words)
