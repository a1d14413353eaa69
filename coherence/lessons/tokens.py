"""Texts cut into tokens: quoted passages, words, names, files with line and column, addresses.

Masking, naming and the reading of lines and shell commands look for them here, so that all of them see the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.lessons.error_words import CODE_PARTS, EXTENSIONS, ORDINARY

MAX_LINE = 2_000
"""Characters of a line whose names are taken."""


class Token(msgspec.Struct, frozen=True):
    """A quoted passage, or a word with the punctuation around it."""

    text: str
    """Without quotes, or without the punctuation."""
    lead: str
    """A space if white space stands before, and the punctuation before a word."""
    trail: str = ""
    """The punctuation after a word, without an empty pair of parentheses."""
    quoted: bool = False
    called: bool = False
    """True for a word before parentheses, which make it the name of a function."""


def cut(text: str) -> list[Token]:
    """Return the tokens of a line, in order.

    Examples
    --------
    >>> [token.text for token in cut("load() has no key 'a b' in /srv/app.py:3.")]
    ['load', 'has', 'no', 'key', 'a b', 'in', '/srv/app.py:3']
    """
    at, tokens = 0, list[Token]()
    for quoted in _QUOTED.finditer(text):
        between = text[at : quoted.start()]
        tokens += _words(between)
        tokens.append(Token(quoted[quoted.lastindex or 0].strip(), " " if between[-1:].isspace() else "", quoted=True))
        at = quoted.end()
    return tokens + _words(text[at:])


def _words(text: str) -> list[Token]:
    found, tokens = _SPACED.findall(text), list[Token]()
    for at, (space, word) in enumerate(found):
        if word in ORDINARY:  # most words are: the rest of this costs some microseconds
            tokens.append(Token(word, " " if space else ""))
            continue
        core = word.lstrip(_LEADING)
        lead, core = word[: len(word) - len(core)], core.rstrip(_TRAILING)
        called = core[-1:] == "(" or (found[at + 1 : at + 2] == [("", "(")] and core.lower() not in ORDINARY)
        core = core.rstrip("(")
        trail = word[len(lead) + len(core) :].replace("()", "")  # load() and load are one name
        tokens.append(Token(core, f" {lead}" if space else lead, trail, called=called))
    return tokens


def names_in(parts: Iterable[str], pattern: re.Pattern[str], most: int) -> list[str]:
    """Return what a pattern of this module finds in some texts, in small letters, each once, in order.

    Examples
    --------
    >>> line = "cannot import name 'soft_unicode' from markupsafe (about.html)"
    >>> names_in([line], MARKED, 9), names_in([line], DOTTED, 9)
    (['soft_unicode', 'about', 'html'], ['about.html'])
    """
    found: dict[str, None] = {}
    for part in parts:
        found.update(dict.fromkeys(map(str.lower, pattern.findall(part[:MAX_LINE]))))
        if len(found) > most:  # one more than wanted: the empty one does not count
            break
    found.pop("", None)
    return list(found)[:most]


def path_of(word: str) -> str:
    """Return a path without the line and column behind it."""
    return LINE_COLUMN.sub("", word)


def base_of(word: str) -> str:
    r"""Return the last part of a path, without line and column.

    Examples
    --------
    >>> base_of("/srv/app.py:3:5"), base_of("src\\a.ts(12,5)"), base_of("build/")
    ('app.py', 'a.ts', 'build')
    """
    return path_of(word).replace("\\", "/").rstrip("/").rpartition("/")[2]


_QUOTED = lazy_regex(
    r"(?<![\w'])[bru]?'([^'\s]{1,200}|[^'\n]{1,80})'(?![\w'])|(?<![\w\"])[bru]?\"([^\"\s]{1,200}"
    r"|[^\"\n]{1,200})\"(?!\w)|`([^`'\n]{1,120})[`'](?!\w)"  # GNU tools close a backtick by an apostrophe
    r"|(?<!\w)[‘‚]([^’‘\n]{1,80})[’‘]|[“„]([^”“\n]{1,80})[”“]|«([^»\n]{1,80})»|''([^'\n]{1,80})''"
)
"""A passage in quotes; an apostrophe inside or behind a word opens and closes none."""
_SPACED = lazy_regex(r"(\s*)([^\s(\[{]+(?:\(\))?|[(\[{]+)")
WORD = lazy_regex(r"[^\W\d_]+(?:'[^\W\d_]+)?")
HOLDS_WORD = lazy_regex(r"\w")
PLACEHOLDER = lazy_regex(r"<\w+>")
NAME = lazy_regex(r"[^\W\d][\w-]*\w|(?<![\w.])\d+(?:\.\d+)+(?![\w.])|(?<!\d)\d{3,5}(?!\d)")
MARKED = lazy_regex(
    r"(?<![\w'\"`/.:@=(<-])[^\W\d_][a-z]*+(?![\w-])"
    # bounded, or a word of nothing but letters is looked through again from each of them
    r"|((?<=['\"`/.:@=(<])[^\W\d][\w-]*\w|[^\W\d_][\w-]{0,90}[\d_-][\w-]*\w|[^\W\d_][a-z]{1,90}[A-Z]\w*"
    r"|(?<!\d)\d{3,5}(?!\d))"
)
"""Words that stand like a name outside of a headline: quoted, part of a path or dotted name, or not spelt as a word.
Plain words are passed over whole, and give nothing."""
DOTTED = lazy_regex(r"(?<![\w./])[^\W\d][\w-]{0,60}(?:\.[\w-]{1,60}){1,5}")
"""A file or a dotted name as a whole: each part of ``about.html`` is a word, both together are a name."""
VERSION_BEHIND = lazy_regex(
    r"(?::[a-z]{2,8}(?=:\d))?(?:===?|[<>~!]=|[<>\[]|@(?=[\dv^~<>=*]|latest|next)|:(?=[\d:]|latest)).*", re.DOTALL
)
"""Version or tag of a package or image, with the sign before it."""
ENDPOINT = lazy_regex(
    r"(?:[a-z][\w+.-]*://)?+(?:[^/@\s]{1,80}@)?(?P<host>\[[0-9a-f:]+\]|[^\s/:?#]+)(?::(?P<port>\d+))?", re.IGNORECASE
)
_LEADING = "([{<\"'‘“`"
_TRAILING = ")]}>\"'’”`:,;.!?…"


def kind_of(word: str, before: str = "") -> str:
    """Return the kind of slot that a word is, ``"code"`` for a word that says itself what went wrong, or nothing.

    Parameters
    ----------
    word : str
        A word without white space, quotes and punctuation around it.
    before : str
        The word before it, in lower case: after "status" a number is a code.

    Examples
    --------
    >>> kind_of("/srv/app.py"), kind_of("10.0.0.1:80"), kind_of("v18.2.0"), kind_of("E0382"), kind_of("user_id")
    ('path', 'address', 'version', 'code', 'name')
    """
    if not word:
        return ""
    first = word[0]
    if "://" in word and _URL.match(word):
        return "url"
    if first in "/~\\." and len(word) > 1 and _ROOTED.match(word):
        return "path"
    if "/" in word or "\\" in word:  # before numbers: 3/4 and 2026/01/02 are told apart there
        return _slashed(word)
    if first.isdigit() or (first in "-+<>=^~v" and _VERSION.fullmatch(word)) or (first in "-+" and word[1:2].isdigit()):
        return _numeric(word, before)
    if ":" in word and _ADDRESS.fullmatch(word):  # app.py:80 and db:80 look alike but for the ending
        return "path" if has_extension(word.partition(":")[0]) else "address"
    if word.lower() == "localhost" or _IP.fullmatch(word):
        return "address"
    if _CODE.fullmatch(word):
        return "code"
    if _HEX.fullmatch(word):
        return "id"
    if has_extension(word):
        return "path"
    if is_plain(word):
        return ""
    if _COMPOUND.search(word):
        return "code" if CODE_PARTS.search(word) and _SIMPLE.fullmatch(word) else "name"
    return ""


def _slashed(word: str) -> str:
    if word[0] == "@":  # a scoped package
        return "name"
    if _DRIVE.match(word) or has_extension(word) or _ADDRESS_PATH.match(word):
        return "path"
    parts = word.replace("\\", "/").split("/")
    if parts[0] == "HTTP":  # HTTP/1.1
        return ""
    if _NUMERIC.fullmatch(word):
        return "time" if _TIME.fullmatch(word) else "number"
    if all(part.lower() in ORDINARY or len(part) < 3 for part in parts):  # and/or, n/a
        return ""
    return "name"


def _numeric(word: str, before: str) -> str:
    if _TIME.fullmatch(word):
        return "time"
    if _ADDRESS.fullmatch(word) or _IP.fullmatch(word) or (before == "port" and word.isdigit()):
        return "address"
    if _HEX.fullmatch(word):
        return "id"
    if word.isdigit() and (before in _BEFORE_CODES or (before == "code" and int(word[:9]) > 125)):  # shells' own
        return "code"
    if _VERSION.fullmatch(word) and (word.count(".") > 1 or not word[0].isdigit()):
        return "version"
    if _NUMERIC.fullmatch(word):
        return "number"
    if _CODE.fullmatch(word):
        return "code"
    return "id" if len(word) >= 12 else "name"  # nobody makes up a name of so many letters and digits


def is_plain(word: str) -> bool:
    """Return whether a word is letters only, and not spelt like a compound name."""
    return word.isalpha() and (word.islower() or not _CAMEL.search(word))


def has_extension(word: str) -> bool:
    """Return whether a word, perhaps with line and column, ends like a file name."""
    stem, dot, extension = path_of(word).rpartition(".")
    return bool(dot and stem) and extension.lower() in EXTENSIONS and not stem.endswith(("/", "\\"))


_CAMEL = lazy_regex(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_URL = lazy_regex(r"[a-zA-Z][\w+.-]{1,30}://")
_ROOTED = lazy_regex(r"(?:/|~/|\.{1,2}[/\\]|\\\\|\.[A-Za-z])")
_DRIVE = lazy_regex(r"[A-Za-z]:[\\/]")
_ADDRESS_PATH = lazy_regex(r"[\w.-]+\\")
_ADDRESS = lazy_regex(
    r"(?:[A-Za-z0-9_](?:[\w.-]{0,100}\w)?|\[[0-9a-fA-F:.]{2,45}\]|\d{1,3}(?:\.\d{1,3}){3}|::1?|\*)?:\d{2,5}"
)
_IP = lazy_regex(r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?|(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F:]{1,10}|::1")
_HEX = lazy_regex(
    r"0x[0-9a-fA-F]+|(?:sha\d{1,3}:)?(?=[a-fA-F]*[0-9])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{7,128}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_VERSION = lazy_regex(
    r"[<>=~^!]{0,3}v?\d{1,6}(?:\.(?:\d{1,8}|[x*])){1,4}(?:[-+.]?[A-Za-z][\w.+-]{0,40}|[-+]\d[\w.+-]{0,40})?"
    r"(?:,[<>=~^!]{1,3}[\w.*]{1,20}){0,4}|[<>=~^!]{1,3}v?\d[\w.*-]{0,20}(?:,[<>=~^!]{1,3}[\w.*]{1,20}){0,4}|v\d{1,4}"
)
_NUMERIC = lazy_regex(
    r"[-+]?\d[\d_]*(?:[.,:x×/*-]\d*)*(?:e[-+]?\d{1,4})?(?:%|[kKMGTP]?i?[bB]|[kKMGT]|st|nd|rd|th|px|m[bB])?"
)
_TIME = lazy_regex(
    r"\d[\d.,]{0,12}\s?(?:ms|[nuµ]s|s|sec|secs|seconds?|m|min|mins|minutes?|h|hrs?|hours?|d|days?)"
    r"|(?:\d{1,4}[hms]){1,2}\d{1,4}(?:\.\d{1,9})?s|\d{4}[-/]\d\d?[-/]\d\d?(?:[T ]\d\d?:\d\d.{0,20})?"
    r"|\d\d?:\d\d(?::\d\d)(?:[.,]\d{1,9})?Z?|\d\d?/\d\d?/\d{4}"
)
_CODE = lazy_regex(
    r"E[A-Z]{3,20}(?:_[A-Z]{2,20})*|[A-Z]{1,8}-?\d{2,6}|ERR_\w{2,60}|SIG[A-Z]{2,7}|\d{2}[A-Z0-9]{3}(?<!\d{5})|HY000"
    r"|(?:[A-Za-z]\w{0,60}\.)*[A-Z]\w{0,60}(?:Error|Exception|Warning|Fault|Failure|NotFound)"
)
_BEFORE_CODES = word_set(
    "http http/1.0 http/1.1 http/2 status status_code statuscode errno error sqlstate returncode curl signal"
)
"""Words after which a number says what went wrong."""
_COMPOUND = lazy_regex(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}|[._:@$&*%#\d|+=<>()\[\]\\^~{}]|^--?[A-Za-z]")
_SIMPLE = lazy_regex(r"[A-Za-z][\w-]*")
LINE_COLUMN = lazy_regex(r"(?::\d{1,7}){1,2}:?$|\(\d{1,7}(?:,\d{1,7})?\)$")
PLACE = lazy_regex(
    r"(?:-->\s|at\s|file://)?((?:[A-Za-z]:)?[^\s:()\[\]'\"<>|]{1,300})"
    r"(?:(?::\d{1,7}){1,2}(?:\s*[:-](?=\s)|:|(?=\s))|:?\ ?\(\d{1,7}(?:,\ ?\d{1,7}){0,3}\)\s?:?(?=\s)"
    r"|:\[\d{1,7},\d{1,7}\])\s*"
)
