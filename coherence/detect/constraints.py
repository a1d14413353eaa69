"""Constraints that a task states ("do not add logging") and answers that break them. Tables, no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.core.words import word_set

ACTS: dict[str, tuple[str, str]] = {
    "add": (
        "add adding include including introduce introducing insert inserting implement implementing create creating "
        "write writing füge fügt füg ergänze ergänzt baue bau ajoute ajoutez ajouter inclus añadas añada añadir "
        "agregues agregue agregar incluyas incluir",
        "added included introduced inserted implemented created wrote written adds includes installed wired "
        "hooked enabled integrated attached emitted emits placed hinzugefügt eingefügt ergänzt "
        "eingebaut ajouté ajoutée inclus añadido añadí agregado agregué incluido",
    ),
    "change": (
        "change changing modify modifying touch touching edit editing alter altering update updating rewrite rewriting "
        "refactor refactoring rename renaming move moving break breaking ändere ändert ändern verändere bearbeite "
        "modifie modifiez modifier change changez changer touche touchez modifiques modifique modificar cambies cambie "
        "cambiar toques toque tocar",
        "changed modified touched edited altered updated rewrote rewritten refactored renamed moved replaced removed "
        "deleted geändert verändert bearbeitet angepasst umbenannt modifié modifiée changé modificado modifiqué "
        "cambiado cambié",
    ),
    "remove": (
        "remove removing delete deleting drop dropping erase erasing lösche löscht löschen entferne entfernt entfernen "
        "supprime supprimez supprimer enlève enlevez borres borre borrar elimines elimine eliminar",
        "removed deleted dropped erased gelöscht entfernt supprimé supprimée enlevé borrado borré eliminado eliminé",
    ),
    "use": (
        "use using import importing employ employing verwende verwendet verwenden benutze benutzen nutze utilise "
        "utilisez utiliser uses usar utilices utilizar",
        "used using uses imported employed verwendet benutzt genutzt utilisé utilisée usado usé utilizado",
    ),
    "mention": ("mention mentioning say saying erwähne erwähnt mentionne mentionnez menciones mencione", ""),
    "run": ("run running execute executing start starting launch launching", "ran executed started launched"),
    "send": (
        "send sending email emailing contact contacting message messaging call calling share sharing",
        "sent emailed contacted messaged called shared",
    ),
    "publish": (
        "push pushing commit committing deploy deploying publish publishing merge merging release releasing install "
        "installing",
        "pushed committed deployed published merged released installed",
    ),
    "buy": (
        "buy buying pay paying book booking order ordering cancel cancelling canceling",
        "bought paid booked ordered cancelled canceled",
    ),
}
"""Act: how a task names it, how an answer says that it was done. An act without done words is one of wording."""

NAMED = {word: act for act, (named, _) in ACTS.items() for word in named.split()}
DONE = {act: word_set(done) for act, (_, done) in ACTS.items()} | {
    "have": word_set(f"{ACTS['add'][1]} {ACTS['use'][1]}")
}
"""``have`` is the act of "without X", "no X" and "avoid X"."""

SKIPPED = word_set(
    "the a an any its his her their this that these those my our your new extra more other additional further some "
    "all no of der die das den dem ein eine einen keine kein keinen le la les des de d l un une du aucun aucune el los "
    "las una ningún ninguna"
)
"""Words before or inside what is forbidden that say nothing about it."""

BOUNDS = word_set(
    "to in into from for with on at by as so because while but just only when if since than then where which who that "
    "please instead anywhere yet again either it them was were is are has have had been also too now everywhere though "
    "zu in im aus für mit auf bei weil damit aber hinzu ein nicht dans pour avec sur mais en para con pero al "
    "del bitte por , and or oder und et y"
)
"""Words that end what is forbidden or what was done."""

TAILS = word_set("statement call code support line message function file block")
"""Nouns that may follow what is forbidden without making it something else: "logging statements"."""

NEGATIONS = word_set(
    "no not never none nothing without neither nor cannot avoid avoided avoiding refrained kept unchanged untouched "
    "instead rather reverted undid kein keine keinen keinerlei nicht nie ohne ne n pas aucun aucune jamais sans sin "
    "ningún ninguna nunca"
)

UNREAL = word_set(
    "would could should might may can will if whether unless want wanted shall must let asked told requested würde "
    "könnte falls soll voudrais pourrais si podría quieres"
)
"""Words that say that a thing was not done, only wished, asked for or possible."""

ACTORS = word_set("i we i've we've ive j'ai he have done and also then now just already additionally finally ,")
"""Words that may stand right before what the answer says it did."""

PASSIVES = word_set("was were is has have wurde wurden")
"""Words between what was done to and the act: "logging was added"."""


MAX_CHARS = 20_000
"""Characters of a task or an answer that are read; of a longer one, half from its beginning and half from its end."""

MAX_CONSTRAINTS = 20
MAX_CUES = 200
"""Places of a task at which something may be forbidden that are looked at."""

_REACH = 7
"""Words between what was done and what it was done to."""

_PREPOSITIONS = BOUNDS - {",", "and", "or", "und", "oder", "et", "y"}

_TOKEN = lazy_regex(r"[\w'’]+(?:[./-]\w+)*|,")
_CLAUSE_END = lazy_regex(r"[.!;:](?=\s|$)|\n|[()–—]|\b(?:but|aber|mais|pero)\b", re.IGNORECASE)
_QUOTED = lazy_regex(
    r'```[^`]*```|"[^"\n]{0,500}"|“[^”\n]{0,500}”|„[^“\n]{0,500}“|«[^»\n]{0,500}»|^[ \t]*>.*$', re.MULTILINE
)
_CUE = lazy_regex(
    r"(?P<verb>(?:^|[.;:!?,(\n–—-]\s{0,3}|\b(?:please|and|but|so|also|you|we|sure|bitte|und|por favor)\s{1,3})"
    r"(?:(?:do not|don['’]?t|never|(?:must|should|may) not|mustn['’]t|shouldn['’]t|not to|stop|quit|no|nunca"
    r"|ne)\s{1,3}|n['’])"
    r"(?=(?P<named>\w+)))"
    r"|(?P<noun>\b(?:without|avoid|refrain from|i don['’]?t want|ohne|vermeide|sans|évitez?|sin|evita|"
    r"(?:füge?|ergänze) (?:bitte )?keine?n?)\s"
    r"|(?:^|[.;:!?,(\n]\s{0,3}|\b(?:please|and|but|with|bitte|said|want)\s{1,3})(?:no|keine?n?)\s)"
    r"|(?P<after>\b(?:ändere|lösche|entferne|verwende|benutze)\b(?= [^.!?;\n]{1,60} nicht\b))",
    re.IGNORECASE,
)
_STAYS = lazy_regex(
    r"\b(?:keep|leave) (?P<kept>[^\n.,;:!?]{2,60}?) (?:exactly |completely |entirely )?"
    r"(?:unchanged|untouched|alone|intact|unmodified|as (?:is|it is|they are))\b"
    r"|\bhands off (?P<off>[^\n.,;:!?]{2,40})"
    r"|(?:不要|别|请勿)(?:添加|增加|加入|加|使用|用)(?P<dense>[^\s。，、；！？,;!?]{1,12})",
    re.IGNORECASE,
)
"""What must stay as it is; and what must not be added, in Chinese."""
_TELLING = lazy_regex(
    r"\b(?:is|are|was|were|does|had|fail\w*|crash\w*|br[eo]ak\w*|broken|works?|happens?|when|if|because|"
    r"why|runs?|ist|sind|wird|wenn|est|sont|es|son)\b",
    re.IGNORECASE,
)
_EXCEPTION = lazy_regex(r"\b(?:unless|except|until|außer|sauf|salvo|excepto)\b", re.IGNORECASE)
_WORDING = lazy_regex(r"(?:words?|letters?|terms?|phrases?|Wort|Wörter|mots?|palabras?)\b", re.IGNORECASE)


class Constraint(msgspec.Struct, frozen=True):
    """One thing that a task forbids.

    Examples
    --------
    >>> forbidden("Fix the login. Do not add logging or touch the tests.")
    (Constraint(act='add', what=('logging',)), Constraint(act='change', what=('tests',)))
    """

    act: str
    """What must not be done: a key of ``constraint_words.ACTS``, or ``have`` for "without X", "no X", "avoid X"."""
    what: tuple[str, ...]
    """The words of what it must not be done to, in lower case, at least one."""

    @property
    def text(self) -> str:
        """The forbidden thing in one string, such as ``"error handling"``."""
        return " ".join(self.what)


@lru_cache(maxsize=32)
def forbidden(task: str) -> tuple[Constraint, ...]:
    """Return what a task forbids, in the order of the text, at most 20.

    Precision before recall: only acts of a fixed table are known, descriptions ("it fails without a network") and
    exceptions ("do not change it unless...") are passed over.

    Examples
    --------
    >>> [item.text for item in forbidden("Sort the list without recursion, and never use the word 'very'.")]
    ['recursion', 'very']
    >>> forbidden("The app crashes without network. Users do not see an error.")
    ()
    """
    text = ends(task, MAX_CHARS, "\n")
    found: dict[Constraint, None] = {}
    for cue in islice(_CUE.finditer(text), MAX_CUES):
        start = cue.end("noun") if cue["noun"] else cue.start("named") if cue["verb"] else cue.start("after")
        sentence = re.split(r"[.!?;](?=\s|$)|\n|[()]", text[start : start + 200], maxsplit=1)[0]
        if _EXCEPTION.search(sentence):
            continue
        if cue["noun"] and _tells(text, cue.start()):
            continue
        if cue["verb"] and cue["named"].casefold() not in NAMED and not cue["verb"].casefold().rstrip().endswith("no"):
            continue
        found |= dict.fromkeys(_parts(sentence))
    for stays in islice(_STAYS.finditer(text), MAX_CONSTRAINTS):
        if stays["dense"]:
            found[Constraint("add", (stays["dense"],))] = None
            continue
        tokens = [token.casefold() for token in _TOKEN.findall(stays["kept"] or stays["off"])]
        what = tuple(token for token in tokens if token not in SKIPPED)[-3:]
        if what and BOUNDS.isdisjoint(what):
            found[Constraint("change", what)] = None
    return tuple(found)[:MAX_CONSTRAINTS]


def violations(task: str, answer: str) -> tuple[str, ...]:
    """Return the forbidden things that an answer says it did, in the words of the task.

    What the answer denies, wishes, asks or quotes does not count, nor what somebody else did.

    Examples
    --------
    >>> task = "Refactor fetch_user to be async. Do not add logging or error handling."
    >>> violations(task, "Done: added logging and error handling")
    ('logging', 'error handling')
    >>> violations(task, "As asked, no logging was added.")
    ()
    """
    items = forbidden(task)
    if not items:
        return ()
    text = ends(answer, MAX_CHARS, "\n")
    clauses = [clause for clause in _CLAUSE_END.split(_QUOTED.sub(" ", text)) if "?" not in clause]
    told = [[token.casefold().replace("’", "'") for token in _TOKEN.findall(clause)] for clause in clauses]
    real = [(tokens, [_stem(token) for token in tokens]) for tokens in told if not any(map(is_negation, tokens))]
    done = (item for item in items if _calls(item, text) or any(_does(item, *clause) for clause in real))
    return tuple(dict.fromkeys(item.text for item in done))


def _tells(text: str, at: int) -> bool:
    """Tell whether the sentence before a place describes rather than asks."""
    before = re.split(r"[.!?;](?=\s)|\n", text[max(0, at - 200) : at])[-1]
    return _TELLING.search(before) is not None


def _parts(sentence: str) -> Iterator[Constraint]:
    """Read "add logging, metrics or error handling" as three constraints."""
    act = "have"
    pieces = re.split(r"\s*,?\s+(?:or|nor|and|oder|und|noch|ou|ni|et|o|y)\s+", sentence[:160])
    if len(pieces) > 1:
        pieces = [part for piece in pieces[:-1] for part in piece.split(",")] + pieces[-1:]
    pieces[-1] = pieces[-1].split(",", 1)[0]
    wording = False
    for number, piece in enumerate(pieces):
        tokens = [token.casefold().strip("'’") for token in _TOKEN.findall(piece)]
        if number and tokens and is_negation(tokens[0]):
            return
        if tokens and tokens[0] in NAMED:
            if number and not re.search(r"\b(?:or|nor|oder|ou|ni|o)\b", sentence):
                return
            act, tokens = NAMED[tokens[0]], tokens[1:]
        while tokens and tokens[0] in SKIPPED | {"pas", "nicht"}:
            tokens = tokens[1:]
        if tokens and _WORDING.fullmatch(tokens[0]):
            wording, tokens = True, tokens[1:]
        what: list[str] = []
        for token in tokens:
            if token in BOUNDS or len(what) == 3:
                break
            if token not in SKIPPED:
                what.append(token)
        if what and (len(what[0]) > 1 or not what[0].isascii()):
            yield Constraint("mention" if wording else act, tuple(what))


def _stem(word: str) -> str:
    """Cut the commonest English endings, so that "tests" meets "test" and "loggers" "logger"."""
    word = word.removesuffix("'s")
    for ending in ("ies", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending) + ("y" if ending == "ies" else "")
    return word.removesuffix("e") if len(word) > 4 else word


def is_negation(token: str) -> bool:
    """Tell whether a word says that a thing was not done, or only wished or possible."""
    return token in NEGATIONS or token in UNREAL or token.endswith("n't")


def _does(item: Constraint, tokens: Sequence[str], stems: Sequence[str]) -> bool:
    what = [_stem(word) for word in item.what]
    if what[0] not in stems:
        return False
    places = [at for at in range(len(stems)) if stems[at] == what[0] and stems[at : at + len(what)] == what]
    if item.act == "mention":
        return bool(places)
    verbs = [at for at, token in enumerate(tokens) if token in DONE[item.act]]
    return any(
        _reaches(tokens, verb, place, len(what))
        for verb in verbs
        for place in places
        if abs(verb - place) <= 2 * _REACH
    )


def _reaches(tokens: Sequence[str], verb: int, place: int, length: int) -> bool:
    """Tell whether the act at ``verb`` was done, by the answer's author, to what stands at ``place``."""
    end = place + length
    if place > verb:
        by_author = verb == 0 or tokens[verb - 1] in ACTORS or tokens[verb] == "using"
        closed = end == len(tokens) or tokens[end] in BOUNDS or _stem(tokens[end]) in TAILS
        between = tokens[verb + 1 : place]
        return by_author and closed and len(between) <= _REACH and _PREPOSITIONS.isdisjoint(between)
    between = tokens[end:verb]
    if not between:  # the participle comes last: "Ich habe Logging hinzugefügt"
        return not {"habe", "haben", "wurde"}.isdisjoint(tokens[max(0, place - 5) : place])
    return between[0] in PASSIVES and len(between) <= 3


def _calls(item: Constraint, answer: str) -> bool:
    """Tell whether a line of code in the answer calls or imports a name that must not be used."""
    if item.act not in {"use", "have"} or len(item.what) > 1 or not item.what[0].isidentifier():
        return False
    name = re.escape(item.what[0])
    before = r"(?:(?:return|yield|await)\s[^\n]{0,80}?|[\w., ]{1,40}=[^\n]{0,80}?|print\()?"
    code = rf"(?m)^[ \t]{{0,40}}(?:import {name}\b|from {name}[\w.]* import\b|{before}(?<![\w.]){name}\([^)\n])"
    return re.search(code, answer, re.IGNORECASE) is not None
