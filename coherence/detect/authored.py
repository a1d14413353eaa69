"""Acts that a sentence says its author did, and to what: "I booked a room and invited Tom" is two acts.

An act is told by its place and its form, not by a list of verbs: behind the author ("I", "j'ai", "he"), at the start of
a line, or behind another act; and between "habe ich" and the end in German and Dutch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.claim_words import ACTORS, BOUNDS, DONE, SKIPPED, is_negation
from coherence.detect.languages import FUNCTION_WORDS

_WORD = lazy_regex(r"[#@]?[\w'’]+(?:[./:-]\w+)*|[,:]")

MAX_THING, REACH = 7, 30
"""Words of a thing that are kept, and words behind an act that are looked at."""

IRREGULAR = word_set(
    "wrote rewrote written rewritten put sent built rebuilt made set bought cut drew drawn brought threw thrown "
    "began "
    "swapped sold gave given took taken went gone split chose chosen got laid hid hidden shut spun wound"
)
WORLDLY = (
    DONE["send"]
    | DONE["publish"]
    | DONE["buy"]
    | word_set(
        "e-mailed subscribed upgraded redesigned invited scheduled paid transferred posted notified signed "
        "registered "
        "renamed reformatted restyled migrated translated modernized "
        "modernised bumped rebranded archived forwarded uninstalled unsubscribed"
    )
)
"""Acts upon the world and upon what is there as a whole, which nothing that is to be mended or made implies."""

INFORMING = word_set(
    "checked verified noticed found confirmed tested ran reviewed looked read searched considered compared noted "
    "tried "
    "kept left ensured listed mentioned explained used asked wanted needed believed recommended suggested preserved "
    "retained included provided attached gave examined inspected validated discovered observed identified learned "
    "encountered said stated told described covered highlighted pointed received applied addressed handled "
    "double-checked attempted followed adjusted updated fixed corrected related based required called allowed indeed "
    "need exceed proceed feed speed seed hundred ignored skipped declined refused associated resisted watched "
    "picked rescheduled went gone took "
    "taken assumed imported explored retrieved located completed processed downloaded opened accessed logged "
    "imported refreshed regenerated restarted reloaded saved synced angepasst aktualisiert "
    "geprüft getestet actualisé vérifié testé actualizado adaptado ajustado verificado обновил проверил "
    "calculated computed estimated got chose chosen counted measured named"
)
"""Verbs of telling and of looking, and of what follows from a change: no addition."""

GIVING = word_set("included provided attached listed gave covered")
"""Such verbs that tell of an addition where it is announced as a bonus."""

AUTHORS = {
    "en": word_set("i we i've we've"),
    "fr": word_set("j'ai ai avons"),
    "es": word_set("yo he hemos"),
    "it": word_set("ho abbiamo"),
    "pt": word_set("eu"),
    "ru": word_set("я мы"),
}
"""Language -> words right before an act of the author; in others, the act has a form of its own or a frame."""

FRAMES = {
    "de": (word_set("habe haben"), word_set("ich wir"), word_set("wurde wurden")),
    "nl": (word_set("heb hebben"), word_set("ik we wij"), word_set("werd werden")),
}
"""Language -> "habe", "ich" and "wurde", between which and a participle at the end the things stand."""

PRETERITES = {
    "es": ("é", "í", "ei"),
    "pt": ("ei", "í", "ri", "di"),
    "ru": ("ил", "ила", "ал", "ала", "ли"),
    # Polish and Turkish, which no list of function words tells
    "xx": ("łem", "łam", "dim", "dım", "tim", "tım", "dum", "düm"),
}
"""Language -> endings of what the author did."""

FILLER = (
    SKIPPED
    | frozenset(chain.from_iterable(words for name, words in FUNCTION_WORDS.items() if name != "en"))
    | word_set(
        "you him her them us me yourself it several few many little simple short handy nice quick basic full "
        "complete "
        "separate second some sure up out also well too now there both two three four five whole remaining matching "
        "she they he him it's there everyone anyone already successfully ihn ihm ihnen wieder anew zwei drei "
        "vier fünf neue neuen deux trois dos tres duas três nuevo nueva novo nova"
    )
)
"""Words of a thing that do not say what it is."""

LINKS = word_set(", and or then und oder et ou y o e и")
_BREAKS = LINKS | {":"}
_STOPS = (BOUNDS - LINKS - word_set("it them del di")) | word_set(
    "per door behind under over between through before after until using via around onto within beside instead"
)
_MODEST = word_set("also then too now just already finally have even aussi également auch también además igualmente")
_BASE = word_set("given put set cut split shut sent read spread let")
"""Words that begin an instruction as well as a report."""

PASSIVE = word_set("was were been")
_OTHERS = word_set("by automatically itself themselves own always already while when")
"""Words that say that it was another who did it."""

_AIMS = word_set("to para pour per zu om")


class Act(NamedTuple):
    """One act of the author."""

    verb: str
    things: tuple[tuple[str, ...], ...]
    """Things that it was done to, in lower case, each with at least one word."""


def tokens_of(clause: str) -> list[str]:
    """Return a clause's words, commas and colons, in lower case.

    Examples
    --------
    >>> tokens_of("I've set X, too")
    ["i've", 'set', 'x', ',', 'too']
    """
    return [token.casefold().replace("’", "'") for token in _WORD.findall(clause)]


def acts_of(
    tokens: Sequence[str], strong: bool = False, spoken: str = "en", passive: bool = False, first: bool = True
) -> Iterator[Act]:
    """Yield the acts that a clause tells of, up to its first negation.

    Parameters
    ----------
    tokens : sequence of str
        What :func:`tokens_of` returned.
    strong : bool
        Whether the sentence announces something extra: then aims are acts as well ("the liberty of moving it").
    spoken : str
        The two letters of the language.
    passive : bool
        Whether what "was rewritten" is the author's act.
    first : bool
        Whether the clause may begin with an act: "Added a test".

    Examples
    --------
    >>> [(act.verb, act.things) for act in acts_of(tokens_of("I booked a room and invited Tom"))]
    [('booked', (('room',),)), ('invited', (('tom',),))]
    >>> list(acts_of(tokens_of("You could invite Tom")))
    []
    >>> [act.things for act in acts_of(tokens_of("Dazu habe ich einen Index angelegt"), spoken="de")]
    [(('index',),)]
    """
    authored = False
    frame = FRAMES.get(spoken)
    for at, token in enumerate(tokens):
        if is_negation(token):
            return
        if frame and token in frame[0] and not frame[1].isdisjoint(tokens[max(0, at - 1) : at + 2]):
            yield Act(tokens[-1], tuple(things_of(tokens[:-1], at)))
            return
        if frame and passive and token in frame[2]:
            # The comma parts what stands on both sides of "wurde" into two things.
            yield Act(tokens[-1], tuple(things_of([*_subject(tokens[:at]), ",", *tokens[at + 1 : -1]], -1)))
            return
        if _is_act(tokens, at, strong, authored, spoken, first):
            authored = True
            yield Act(token, tuple(things_of(tokens, at)))
        elif passive and token in PASSIVE and at + 1 < len(tokens) and (done := _passive(tokens, at)):
            yield Act(done, tuple(things_of(_subject(tokens[:at]), -1)))


def _subject(before: Sequence[str]) -> Sequence[str]:
    """Return the words before "was" that belong to it: those behind the last comma or "and", up to a preposition."""
    start = max((at + 1 for at, token in enumerate(before) if token in _BREAKS), default=0)
    end = next((at for at in range(start, len(before)) if before[at] in _STOPS), len(before))
    return before[start:end]


def _passive(tokens: Sequence[str], at: int) -> str:
    """Return the act of "the page was also rewritten", empty where there is none."""
    if not _OTHERS.isdisjoint(tokens[at:]):
        return ""
    for token in tokens[at + 1 : at + 4]:
        if is_done(token):
            return token
        if token not in _MODEST:
            return ""
    return ""


def _is_act(tokens: Sequence[str], at: int, strong: bool, authored: bool, spoken: str, first: bool) -> bool:
    token, before = tokens[at], tokens[:at]
    last = before[-1] if before else ""
    # "thing", "being" and "doing" are no acts.
    if strong and token.endswith("ing") and len(token) > 5:
        return last in ("of", "and", ",", "by")
    if strong and last in _AIMS and len(token) > 2:
        return True
    # Longer than "así" and "aquí"; no token ends with a line break, which stands for having no such endings.
    if len(token) > 4 and token.endswith(PRETERITES.get(spoken or "xx", ("\n",))):
        return True
    # "I made it async" tells of the change that was asked for.
    if tokens[at + 1 : at + 2] in (["it"], ["them"]) and token in ("made",):
        return False
    follows = _follows_author(before, AUTHORS.get(spoken, AUTHORS["en"]))
    if spoken not in ("en", "") and follows:
        # Participles of other languages are not listed: any longer word there is taken for one.
        return len(token) > 3 and token not in _MODEST
    if not is_done(token):
        return False
    return (
        follows
        or (authored and last in LINKS | _MODEST)
        or (first and token not in _BASE and ACTORS.issuperset(before))
    )


def _follows_author(before: Sequence[str], authors: frozenset[str]) -> bool:
    """Tell whether nothing but adverbs stands between the author and what follows."""
    for token in reversed(before[-5:]):
        if token in authors:
            return True
        if token not in _MODEST and not token.endswith(("ly", "mente", "ment")):
            return False
    return False


def is_done(token: str) -> bool:
    """Tell whether an English word has the form of an act that was done.

    Examples
    --------
    >>> is_done("booked"), is_done("rewrote"), is_done("books")
    (True, True, False)
    """
    if token in IRREGULAR or token in WORLDLY:
        return True
    if token in DONE["add"]:
        return not token.endswith("s")  # "it adds", "includes": what the result does, not what its author did
    return token.endswith("ed") and len(token) > 4 and not token.startswith("un")  # "unchanged", "untouched"


def things_of(tokens: Sequence[str], at: int) -> Iterator[tuple[str, ...]]:
    """Yield what stands behind an act, thing by thing: "a room and a car" are two.

    Examples
    --------
    >>> list(things_of(["booked", "a", "room", "and", "a", "car", "for", "you"], 0))
    [('room',), ('car',)]
    """
    words: list[str] = []
    for token in tokens[at + 1 : at + 1 + REACH]:
        if token in _STOPS or is_done(token) or is_negation(token):
            break
        if token in _BREAKS:
            if words:
                yield tuple(words)
            words = []
        elif token not in FILLER and not token.endswith("ly") and len(words) < MAX_THING:
            words.append(token)
    if words:
        yield tuple(words)
