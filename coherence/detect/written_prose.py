"""Prose that a call writes for people: notes, reports, mails, answers; not code, not data for a program."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any

from coherence.core.lazy import lazy_regex
from coherence.core.readings import Claim
from coherence.core.validation import ends
from coherence.core.words import word_set
from coherence.detect.fingerprints import FILES, PATHS, SHELLS, WRITES, command_of, name_words

MAX_PROSE = 4_000
"""Characters of one call that are read, half from each end."""

LEAST_WORDS, LEAST_SIGNS = 2, 12
"""Words of a text that says something, and characters where no spaces part the words."""

MAX_TEXTS = 60
"""Arguments of one call that are looked at, those within others too."""

LEAST_DIGITS = 4
"""Digits of an id that is the number of something."""

LEAST_NUMBERED = 2
"""Digits of one that is written as #12: it numbers what somebody has numbered."""

WRITING = word_set(
    "write create append submit complete finish finished done send reply respond post answer email mail publish save "
    "store record edit fill insert add update set put open close escalate transfer notify announce"
)
"""Words in the names of tools that write, whatever else they do."""

LOOKING = word_set(
    "get list search find read check show view fetch lookup look query browse scan count calculate calculator calc "
    "compute evaluate eval translate translator translation summarize analyze analyse classify detect extract parse "
    "convert embed generate think reason test validate verify ask question python code compile navigate crawl "
    "scrape speak tts transcribe delegate spawn agent simulate llm prompt type click press select wait match "
    "compare rank score grep glob buscar leer suchen lesen finden chercher lire trouver cercare leggere ler calcula"
)
"""Words in the names of tools whose texts are asked about or worked on."""

OWN = word_set("todo todos plan plans think thought scratchpad patch diff")
"""Words in the names of tools by which an agent speaks to itself, or writes what is no prose."""

ORDERS = word_set("prompt instruction instructions")
"""Arguments that tell another agent what to do."""

PROSE_KEYS = word_set(
    "content contents body text message result answer summary note notes comment comments report response output reply "
    "details description title subject headline resolution reason remarks caption abstract observations findings desc "
    "markdown html "
    "nachricht inhalt betreff zusammenfassung notiz notizen kommentar beschreibung bericht titel "
    "texto mensaje contenido cuerpo asunto resumen nota notas comentario descripcion informe "
    "contenu corps objet texte commentaire rapport testo messaggio oggetto contenuto riepilogo commento descrizione "
    "mensagem assunto resumo"
)
"""Words in the names of arguments that hold what is written."""

OTHER_KEYS = word_set(
    "id ids type format name path file url style template query language lang old before from to kind key user status "
    "channel"
)
"""Words in the names of arguments that tell something about it."""

NEW_KEYS = word_set("new insert insertion append add added replacement")
"""Words in the names of arguments that hold new lines of a file."""

DATA_KEYS = word_set("data rows row cells values table records record entries entry items fields sheet columns")
"""Arguments that hold a table or a record of what is written."""

SHEETS = word_set("sheet sheets spreadsheet cell cells excel row rows column")
"""Words in the names of tools that write one value of a table."""

CALENDARS = word_set(
    "calendar event events schedule scheduler meeting meetings invite invitation appointment book booking reserve "
    "reminder remind alarm termin reunion cita rendezvous"
)
"""Words in the names of tools that plan."""

AROUND = 100
"""Characters of a line before and behind a day in which words of plans are looked for."""

MAX_ROWS = 200
"""Lines of a table that are read."""

PROSE_ENDINGS = word_set("md markdown txt text doc docx odt rtf pdf csv tsv xlsx xls eml adoc org log html htm")
"""Endings of files that people read; one without an ending is such a file, too."""

_TRYING = lazy_regex(
    r"(?:^|[/_. -])(?:tests?|specs?|examples?|samples?|fixtures?|mocks?|demos?|dummy|templates?|drafts?)(?:[/_. -]|$)",
    re.IGNORECASE,
)
"""Names of files that hold what somebody makes up on purpose."""

MANY_TICKS = 150
"""Characters a backtick from which a file is about code: names and numbers in it are those of things to come."""

_CODE = lazy_regex(
    r"^\s{0,40}(?:def |class |import |from \w+ import |function |const |let |var |#include|return\b|if \(|for \()"
    r"|^\s{0,40}<\w+[ >]"
    r"|[;{}]\s{0,9}$",
    re.MULTILINE,
)
_TAG = lazy_regex(r"</?[a-zA-Z][^<>]{0,200}>")
_INTO = r"[\w./~-]{1,200}"
_HEREDOC = lazy_regex(r"<<-?\s{0,2}['\"]?(?P<mark>\w{1,20})['\"]?")
_TARGET = lazy_regex(rf">{{1,2}}\s{{0,3}}({_INTO})|\btee (?:-a )?({_INTO})")
_ECHO = lazy_regex(
    r"\b(?:echo|printf) (?:-\w )?(?P<quote>['\"])(?P<said>[^'\"\n]{3,2000})(?P=quote)\s{0,3}>{1,2}\s{0,3}"
    rf"(?P<into>{_INTO})"
)
_OPTION = lazy_regex(
    r"(?:^|\s)(?:-[a-zA-Z]{0,3}m|--(?:message|body|title|comment|notes?|description|summary|text|subject))[ =]"
    r"(?:'(?P<plain>[^']{3,2000})'|\"(?P<said>(?:[^\"\\]|\\.){3,2000})\")"
)
"""Texts that a command is told to write: the message of a commit, the text of a pull request."""
_SENDS = lazy_regex(r"\b(?:mail|mailx|sendmail|mutt|gh|glab|hub|wall)\b|-m [\"']?\$\(cat|--(?:body|message|notes)\b")
_SUGGESTS = lazy_regex(
    r"\b(?:let['’]?s|propos\w*|suggest\w*|(?:i|we)(?:['’]d| would)? recommend|recommended|should|must|can we"
    r"|could (?:we|you)|would (?:you|it|that)|(?:i|we)(?: wi|['’])ll|going to|expected:|acceptance"
    r"|as an? \w{1,20},? i want|please (?:be|allow|arrive|come|wait)"
    r"|vorschl\w*|schlage|sollten?|könnten wir|(?:ich|wir) werden?|propon\w*|sugier\w*|deber[ií]a\w*|v(?:oy|amos) a"
    r"|devrait|pourr\w+-vous|je vais|nous allons)(?!\w)",
    re.IGNORECASE,
)
"""Words of a sentence that suggests, promises or asks for something."""
_PLANS = lazy_regex(
    r"\b(?:let['’]?s|propos\w*|suggest\w*|recommend\w*|would|should|could|will|shall|plan\w*|schedul\w*|remind\w*|please"
    r"|can (?:you|we)|next|tomorrow|tonight|today|updated|generated|prepared|as of|wird|werde\w*|bitte|vorschl\w*"
    r"|schlage|sollten?|könnten?|stand|morgen|mañana|propon\w*|será|demain|sera|devrait|pourrait)\b|['’]ll\b|\?"
    r"|^[-*#>\s]{0,9}(?:date|time|when|datum|uhrzeit|wann|fecha|hora|heure|quand)\b|^\s{0,4}#",
    re.IGNORECASE | re.MULTILINE,
)
"""Words of a sentence that plans, asks, or says when something is written."""
_PLAN = lazy_regex(
    r"\b(?:agenda|itinerary|timetable|programme|schedule|plan|ablauf|zeitplan|tagesordnung|horario|calendario|planning)\b",
    re.IGNORECASE,
)
"""Words in the title of a plan."""


def prose_of(tool: str, arguments: Any) -> str:
    """Return what a call writes for people; empty if it writes nothing, or code.

    Examples
    --------
    >>> prose_of("send_email", {"to": "a@x.org", "body": "The total is 40 euros."})
    'The total is 40 euros.'
    >>> prose_of("bash", {"command": "git commit -qm 'Halve the time of the import'"})
    'Halve the time of the import'
    >>> prose_of("write_file", {"path": "pay.py", "content": "total = 40  # the sum of it"})
    ''
    """
    words = frozenset(name_words(tool))
    fields = arguments if isinstance(arguments, dict) else {}
    command = command_of(tuple(words), arguments)
    if command is not None:
        found = _of_command(command)
    elif not OWN.isdisjoint(words) or not ORDERS.isdisjoint(fields) or tool.lower() == "task":
        return ""
    elif not SHELLS.isdisjoint(words) or (not LOOKING.isdisjoint(words) and WRITING.isdisjoint(words)):
        found = iter(())
    else:
        found = _of_fields(words, fields)
    return ends("\n".join(found), MAX_PROSE, "\n\n")


def _of_fields(words: frozenset[str], arguments: dict[str, Any]) -> Iterator[str]:
    for key, value in islice(arguments.items(), 40):
        if key.lower() in DATA_KEYS and isinstance(value, dict | list):
            yield "\n".join(islice(_rows(value), MAX_ROWS))
        elif key.lower() == "value" and isinstance(value, int | float | str) and not SHEETS.isdisjoint(words):
            yield str(value)[:MAX_PROSE]
    files = [value for key, value in arguments.items() if key in PATHS and isinstance(value, str)]
    if all(map(_is_prose_file, files)):
        in_file = bool(files) or not (FILES | WRITES).isdisjoint(words)
        for each in islice(_texts(arguments, in_file=bool(files)), MAX_TEXTS):
            text = ends(each, MAX_PROSE, "\n\n")
            text = text if in_file else _TAG.sub(" ", text).strip()
            if _says_something(text) and not _is_code(text, ticks=in_file):
                yield text


def _texts(arguments: Any, *, in_file: bool) -> Iterator[str]:
    """Yield the texts whose arguments are named as prose is, within lists and objects too."""
    waiting: list[Iterator[tuple[bool, Any]]] = [iter([(False, arguments)])]
    looked = 0
    while waiting and looked < 4 * MAX_TEXTS:
        looked += 1
        holds, value = next(waiting[-1], (False, waiting))
        if value is waiting:
            waiting.pop()
        elif isinstance(value, str):
            if holds:
                yield value
        elif isinstance(value, dict):
            waiting.append(
                (_holds_prose(key, within=holds, in_file=in_file), each)
                for key, each in value.items()
                if value is not arguments or key.lower() not in DATA_KEYS
            )
        elif isinstance(value, list):
            waiting.append(zip(repeat(holds), value))


def _holds_prose(key: str, *, within: bool, in_file: bool) -> bool:
    named = name_words(key)
    if not OTHER_KEYS.isdisjoint(named):
        return False
    return within or not PROSE_KEYS.isdisjoint(named) or (in_file and not NEW_KEYS.isdisjoint(named))


def _says_something(text: str) -> bool:
    """Tell whether a text is more than a word."""
    return len(text.split(None, LEAST_WORDS)) >= LEAST_WORDS or (not text.isascii() and len(text) >= LEAST_SIGNS)


def _rows(value: Any) -> Iterator[str]:
    """Yield the rows of a table, or the fields of a record, one a line."""
    items = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else [value])
    for key, each in items:
        name = f"{key}: " if isinstance(value, dict) else ""
        if isinstance(each, list) and not any(isinstance(cell, dict | list) for cell in each):
            yield name + "; ".join(str(cell) for cell in each if cell is not None)
        elif isinstance(each, dict | list):
            yield from _rows(each) if _depth(each) < MAX_DEPTH else ()
        elif each is not None and not isinstance(each, bool):
            yield f"{name}{each}"


MAX_DEPTH = 4


def _depth(value: Any) -> int:
    """Return how deep lists and objects lie in each other, at most five."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            each
            for item in level[:MAX_ROWS]
            for each in islice(item.values() if isinstance(item, dict) else item, MAX_ROWS)
            if isinstance(each, dict | list)
        ]
    return depth


def _of_command(command: str) -> Iterator[str]:
    text = command[: 2 * MAX_PROSE]
    if "<<" in text:
        yield from _heredocs(text)
    if ">" in text:
        yield from (found["said"] for found in islice(_ECHO.finditer(text), 4) if _is_prose_file(found["into"]))
    for found in islice(_OPTION.finditer(text), 8) if "-" in text else ():
        said = found["plain"] or found["said"] or ""
        # What -m "$(cat notes.txt)" says stands elsewhere.
        if _says_something(said) and not said.startswith(("$(", "@")) and not _is_code(said, ticks=False):
            yield said.replace("\\n", "\n").replace('\\"', '"')


def _heredocs(text: str) -> Iterator[str]:
    for found in islice(_HEREDOC.finditer(text), 4):
        begin = text.find("\n", found.end()) + 1
        line = text[text.rfind("\n", 0, found.start()) + 1 : begin]
        into = _TARGET.search(line)
        end = text.find(f"\n{found['mark']}", begin)
        body = text[begin : end if end >= 0 else len(text)] if begin else ""
        read = _is_prose_file(into[1] or into[2]) if into is not None else _SENDS.search(line) is not None
        if read and not _is_code(body):
            yield body


def _is_prose_file(path: str) -> bool:
    name = path[-200:].rpartition("/")[2].lower()
    ending = name.rpartition(".")[2] if "." in name else "txt"
    return ending in PROSE_ENDINGS and _TRYING.search(path[-200:]) is None


def _is_code(text: str, *, ticks: bool = True) -> bool:
    """Tell whether a fifth of the lines are code, or a file is about code."""
    lines = text.count("\n") + 1
    return 5 * len(_CODE.findall(text)) >= lines or (ticks and text.count("`") * MANY_TICKS > len(text))


def facts_of(claims: Iterable[Claim], text: str, *, planned: bool) -> list[Claim]:
    """Return the values in what is written that can only be known: new files, functions and short codes are made up.

    So are numbers in a sentence that suggests something, days and hours where the call plans or the words do, and the
    hour by which a line of a log begins.
    """
    suggests, plans_it = ([found.start() for found in words.finditer(text)] for words in (_SUGGESTS, _PLANS))
    found = []
    for claim in claims:
        if claim.kind in ("date", "time"):
            begins = not text[text.rfind("\n", 0, claim.start) + 1 : claim.start].strip("-*#>|[( \t")
            told = not planned and not (begins and claim.kind == "time") and not _is_said(plans_it, text, claim)
        elif claim.kind in ("number", "amount"):
            told = not _is_said(suggests, text, claim)
        elif claim.kind == "id":
            told = sum(map(str.isdigit, claim.text)) >= (LEAST_NUMBERED if claim.text.isdigit() else LEAST_DIGITS)
        else:
            told = claim.kind not in ("function", "path", "name")
        if told:
            found.append(claim)
    return found


def _is_said(places: Sequence[int], text: str, claim: Claim) -> bool:
    """Tell whether the sentence of a value has one of the places in a text."""
    if not places:
        return False
    begin, end = max(0, claim.start - AROUND), min(len(text), claim.start + AROUND)
    begin = max(begin, *(text.rfind(mark, begin, claim.start) + 1 for mark in ENDS))
    after = claim.start + len(claim.text)
    end = min(end, *(at + 1 for mark in ENDS if (at := text.find(mark, after, end)) >= 0), end)
    return bisect_left(places, begin) < bisect_left(places, end)


ENDS = ("\n", ". ", "! ", "? ")


def plans(tool: str, text: str) -> bool:
    """Tell whether a call puts something on somebody's calendar, or a text says that it is a plan."""
    return not CALENDARS.isdisjoint(name_words(tool)) or _PLAN.search(text[:AROUND]) is not None
