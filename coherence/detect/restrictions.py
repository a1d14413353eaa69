"""Restricting clauses of a text, reduced to acts, objects, an allowed set or a bound. Words of seven languages.

Precision before recall: what only describes ("users do not delete their accounts"), what has a condition ("unless",
"if") and what cannot be linked to an object is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from coherence.core.readings import excerpt
from coherence.core.words import word_set
from coherence.detect import restriction_words as says
from coherence.detect.acts import NOUNS, acts_of
from coherence.detect.allowances import BOUND, DOMAIN, OUTSIDE, SAYS_NO, allowances, bounds
from coherence.detect.languages import language
from coherence.detect.objects import DAYS, IMPLIED, PERSONS, objects_of
from coherence.detect.prohibition import Prohibition
from coherence.detect.properties import forms_of
from coherence.detect.text_analysis import TextAnalysis, tokens

MAX_CHARS = 20_000
MAX_CLAUSES = 12
MAX_SAID = 240
"""Characters of a sentence that are read."""
QUOTED = 160
ALONE = word_set("publish commit install handover cancel send pay buy book restart online invite")
"""Acts that may be forbidden without a word of what they are done to."""


def may_forbid(text: str) -> bool:
    """Tell whether a text may forbid something at all."""
    return any(map(text.casefold().__contains__, says.CUES))


def prohibitions(
    text: str | TextAnalysis, seq: int = 0, goal: str = "", *, lasting: bool = False
) -> Iterator[Prohibition]:
    """Yield what a request forbids; ``goal`` is what "those two" and "nothing else" are resolved against."""
    analysis = text if isinstance(text, TextAnalysis) else TextAnalysis(text)
    if not may_forbid(analysis.raw):
        return
    for statement in analysis.part(MAX_CHARS, "\n").statements:
        if statement.endswith(("?", "？")) or not may_forbid(statement):
            continue
        sentence = excerpt(statement, QUOTED)
        for found in _of_statement(statement.replace("’", "'")[:MAX_SAID], goal or analysis.raw[:MAX_CHARS], lasting):
            if days := tuple(sorted({day for token in found.objects for day in DAYS.get(token, ())})):
                found = Prohibition(("add", "book", "change", "send", "any"), (), "", only=days, of="day")
            yield msgspec.structs.replace(found, sentence=sentence, seq=seq, lasting=lasting)


def _of_statement(said: str, goal: str, lasting: bool) -> Iterator[Prohibition]:
    tongue = language(said)
    said = says.CONTRACTED.sub(_spelled, said)
    yield from allowances(said, goal)
    bound = list(bounds(said))
    yield from bound
    yield from _chinese(said)
    once = not lasting and says.MINE.search(said) is not None
    said = says.PHRASE.sub(lambda found: says.PHRASES[found[0].casefold()], said)
    clauses = [part.strip() for part in islice(says.CLAUSE_END.split(said), MAX_CLAUSES) if part and part.strip()]
    but = says.EXCEPT.search(said)
    if but is not None and not SAYS_NO.search(said[: but.start("what")]):
        what = says.CLAUSE_END.split(but["what"])[0]
        objects = objects_of(_words(says.AT.split(what)[0]), ()) or objects_of(_words(what), ())
        main = _main_acts(said[: but.end()])
        if objects and (main != ("any",) or says.ALL.search(said[: but.end()]) is not None):
            yield Prohibition(main, objects, "")
    yield from _kept_back(said)
    acts: tuple[str, ...] = ()
    for at, clause in enumerate(clauses):
        near = clause if at == 0 else f"{clauses[at - 1]}, {clause}" if _starts_condition(clauses[at - 1]) else clause
        if at + 1 < len(clauses) and _starts_condition(clauses[at + 1]):
            near = f"{near}, {clauses[at + 1]}"
        if not once and says.CONDITION.search(near) is not None:
            acts = ()
            continue
        if bound and BOUND.search(clause):
            clause = clause.partition(" and ")[2]
        made = list(_of_clause(clause, clauses[at - 1] if at else "", tongue))
        if not made and acts and _lists(clause, clauses[at:]):
            made = [
                Prohibition(acts, objects, "") for part in _parts(_words(clause)) if (objects := objects_of(part, acts))
            ]
        made = list(_resolved(made, clause, clauses[at - 1] if at else ""))
        acts = made[-1].acts if made else ()
        yield from (msgspec.structs.replace(each, once=once) for each in made)


def _main_acts(clause: str) -> tuple[str, ...]:
    """Return the acts of the first verb of a clause."""
    verbs = (acts_of(word) for word in _words(clause)[:12] if word not in NOUNS)
    found = next(filter(None, verbs), None)
    return (*sorted(found), "other") if found else ("any",)


def _resolved(made: list[Prohibition], clause: str, before: str) -> Iterator[Prohibition]:
    """Yield prohibitions with "it" and "there" replaced by what the clause before is about."""
    words = [word for word in _words(before) if not acts_of(word) or word[0].isupper()]
    there = re.search(r"\b(?:there|dort|là|allí|lì)\b", clause) is not None
    for each in made:
        if each.objects == ("",) or (there and not each.objects):
            objects = objects_of([word for word in words if word.casefold() not in says.TELLING], each.acts)
            objects = tuple(token for token in objects if token not in ("protect", "note", "full"))[:3]
            if objects:
                yield msgspec.structs.replace(each, objects=objects)
        else:
            yield each


def _kept_back(said: str) -> Iterator[Prohibition]:
    """Read what somebody does himself, and that it is only to be looked."""
    for found in islice(says.MYSELF.finditer(said), 2):
        acts = acts_of(found["verb"] or found["left"] or found["job"])
        if not ALONE.isdisjoint(acts):
            yield Prohibition(tuple(sorted(acts)), (), "")
    if says.LOOK.search(said) is not None:
        yield Prohibition(("change", "remove", "add", "restart", "publish"), (), "")


def _spelled(found: re.Match[str]) -> str:
    if found["aux"]:
        return f"{found['aux']} not"
    return "do not" if found["whole"] == "dont" else "can not" if found["whole"] else "ne " if found["ne"] else ""


def _starts_condition(clause: str) -> bool:
    found = says.CONDITION.search(clause)
    return found is not None and found.start() < 6


def _lists(clause: str, rest: Sequence[str]) -> bool:
    """Tell whether a clause goes on with a list of things: "the docs, the tests or the config"."""
    words = _words(clause)
    first = next((word for word in words if word not in ("and", "or", "nor", "oder", "und", "the", "any")), "")
    ends = any(re.search(r"\b(?:or|nor|and|oder|und|ou|ni|o|y)\b", each) for each in rest[:3])
    return len(words) <= 5 and ends and not acts_of(first) and says.TELLING.isdisjoint(words)


def _words(clause: str) -> list[str]:
    return [word.rstrip(".'") for word in says.WORD.findall(clause)]


def _parts(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the parts of "the tests or the docs"."""
    part: list[str] = []
    for word in words:
        if word.casefold() in ("or", "nor", "and", "oder", "und", "ou", "et", "ni", "o", "y", "e"):
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _of_clause(clause: str, before: str, tongue: str) -> Iterator[Prohibition]:
    for found in islice(says.OUT.finditer(clause), 2):
        if found["secret"] and says.IT.fullmatch(found["secret"]) is not None:
            who = [word for word in _words(clause[: found.start()]) if word.casefold() not in says.MODAL]
            if objects := objects_of(who, ("send",)):
                yield Prohibition(("send", "invite"), objects, "")
            return
        what = found["what"] or found["out"] or found["unseen"] or found["hush"] or found["secret"] or found["silent"]
        out_of = found["out"] is not None
        objects = objects_of(_words(what), ())
        forms = forms_of(_words(what))
        if objects or forms:
            yield Prohibition(("any", "have") if out_of else ("have",), objects, "", forms=forms)
            return
    for found in islice(says.STAYS.finditer(clause), 2):
        acts: tuple[str, ...] = (
            "change",
            "remove",
            "add",
            "cancel",
            "close",
            "restart",
            "open",
            "book",
            "other",
            "publish",
        )
        if found["all"] or found["need"] or " surviv" in clause or "be kept" in clause:
            acts = ("remove",)
        made = False
        for part in _parts(_words(found["kept"] or found["stays"] or found["all"] or found["let"] or found["need"])):
            if objects := objects_of(part, ()):
                made = True
                yield Prohibition(acts, objects, "")
        if made:
            return
    if (shut := says.CLOSED.match(clause)) is not None and shut["what"].casefold() not in says.SUBJECTS:
        yield from _closed(_words(shut["what"]))
        return
    yield from _negated(_words(clause), before, tongue)


def _closed(words: list[str]) -> Iterator[Prohibition]:
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
    for part in _parts(words):
        act = next((NOUNS[word.casefold()] for word in part if word.casefold() in NOUNS), None)
        if act in ALONE:
            part = [word for word in part if NOUNS.get(word.casefold()) != act]
        objects, forms = objects_of(part, (act,) if act else ()), forms_of(part)
        if act in ALONE:
            yield Prohibition((act,), objects, "", forms=forms)
        elif objects or forms:
            yield Prohibition(("any", "have"), objects, "", forms=forms)


def _negated(words: list[str], before: str, tongue: str) -> Iterator[Prohibition]:
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
            for each in _nothing_of(words[at + 1 :], ("any",)):  # "but not the Hilton"
                yield msgspec.structs.replace(each, acts=_main_acts(before)) if each.acts == ("any",) else each
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
            tongue in ("es", "it", "pt") or (not tongue and low[at + 1 : at + 2] and _conjugated(low[at + 1]))
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
    low = [word.casefold() for word in _words(clause)]
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
    parts = list(islice(_parts(about), 4))
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
        objects, forms = (
            objects_of(part, acts),
            forms_of(part) if {"use", "mention", "add", "write"} & set(acts) else (),
        )
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
        acts = {"change"}
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
    for piece in islice(_parts(words[:end]), 4):
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
        if act == "create" and not {
            "new",
            "additional",
            "extra",
            "more",
            "neue",
            "neuen",
            "nouveau",
            "nouveaux",
            "nuevos",
        } & set(low):
            act = None
        if act == "create":
            if {"new", "additional", "extra", "other", "more", "neue", "neuen", "nouveau", "nouveaux", "nuevos"} & set(
                low
            ):
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
    if not rest or low[at + 1] in (
        "longer",
        "idea",
        "need",
        "problem",
        "worries",
        "sign",
        "trace",
        "luck",
        "result",
        "results",
        "error",
        "errors",
        "answer",
        "response",
        "record",
        "records",
        "match",
        "matches",
        "matter",
        "doubt",
        "way",
        "hurry",
        "rush",
        "one",
        "changes-needed",
    ):
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
            (not before or not NOUNS.keys().isdisjoint(low) or _main_acts(before) != ("any",) or not _words(before)[2:])
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


def _chinese(said: str) -> Iterator[Prohibition]:
    for found in islice(says.CHINESE.finditer(said), 3):
        about = found["before"] + found["what"]
        objects = tuple(sorted(tokens(" ".join(name for word, name in says.CHINESE_THINGS.items() if word in about))))
        latin = tuple(sorted(tokens(" ".join(re.findall(r"[A-Za-z0-9_./@-]{2,40}", about)))))
        act = says.CHINESE_ACTS[found["act"]]
        acts = (act, "have") if act in ("use", "add") else (act,)
        implied = IMPLIED.get(act, frozenset())
        objects = tuple(token for token in (*objects, *latin) if token not in implied)
        if objects or (act in ALONE and not about.strip("了吧何任")):
            yield Prohibition(acts, objects, "")


def asked(text: TextAnalysis) -> set[str]:
    """Return the acts that a request asks for."""
    found: set[str] = set()
    for statement in text.statements:
        if says.NEGATIVE.search(statement) is None:
            found.update(*(acts_of(word) for word in _words(statement)[:60]))
    return found
