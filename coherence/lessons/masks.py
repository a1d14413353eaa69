"""A message with its names, paths, versions, numbers, ids, addresses and times masked."""

from __future__ import annotations

import re
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.lessons.error_words import CODE_PARTS, ERRNO_TEXTS, EXTENSIONS, INTRODUCING, KINDS, ORDINARY

MAX_SLOTS = 16
MAX_VALUE = 200


class Masked(NamedTuple):
    """A message, masked and readable."""

    template: str
    """With a placeholder such as ``<name>`` for every slot; runs of equal ones are one."""
    text: str
    """With names, versions, host names and the base names of files, without other slots."""
    slots: tuple[tuple[str, str], ...]
    """Kind and value, in order, at most 16."""


def mask(message: str) -> Masked:
    """Mask what differs between two occurrences of the same message.

    Parameters
    ----------
    message : str
        One line of at most a few hundred characters; the time grows linearly with it.

    Examples
    --------
    >>> masked = mask("No module named 'yaml' in /srv/app.py, took 3.2s")
    >>> masked.template
    'No module named <name> in <path>, took <time>'
    >>> masked.text
    'No module named yaml in app.py, took'
    >>> masked.slots
    (('name', 'yaml'), ('path', '/srv/app.py'), ('time', '3.2s'))
    """
    low = message.lower()
    found = _Masking(any(map(low.__contains__, ERRNO_TEXTS)))
    found.read(_ARROW.sub(r"'\1' -> '\2'", message), last=True)
    return found.result()


class _Masking:
    """The template, the text and the slots while a message is read from left to right."""

    def __init__(self, about_files: bool) -> None:
        self._about_files = about_files
        self._template: list[str] = []
        self._text: list[str] = []
        self._slots: list[tuple[str, str]] = []
        self._before = ""
        """The word before, in lower case with its punctuation."""

    def read(self, message: str, last: bool) -> None:
        at = 0
        for quoted in _QUOTED.finditer(message):
            self._words(message[at : quoted.start()])
            self._quoted(quoted[quoted.lastindex or 0].strip())
            at = quoted.end()
        self._words(message[at:], last)

    def result(self) -> Masked:
        template = _RUN.sub(r"\1", "".join(self._template).replace(">,)", ">)"))
        template = " ".join(template.split()).strip(" .!?,;:")
        text = _BEFORE_STOP.sub(r"\1", " ".join(_HOLLOW.sub("", "".join(self._text)).split()))
        return Masked(template, text.strip(" ,;:"), tuple(self._slots[:MAX_SLOTS]))

    def _quoted(self, value: str) -> None:
        if value.count(" ") > 1 and not _IS_TYPE.search(value):  # a sentence, not a name
            self.read(value, last=False)
            return
        if value in _NOTHING or not self._add_value(value, "name"):
            self._plain(value)
        self._before = "'"

    def _words(self, text: str, last: bool = False) -> None:
        tokens = _TOKEN.findall(text)
        for at, (space, word) in enumerate(tokens):
            if space:
                self._plain(" ")
            if word in ORDINARY and not self._before.endswith(":"):  # most words are
                self._plain(word)
                self._before = word
                continue
            core = word.lstrip(_LEADING)
            lead, core = word[: len(word) - len(core)], core.rstrip(_TRAILING)
            called = not core.endswith("(") and [each for _, each in tokens[at + 1 : at + 2]] == ["("]
            called = core.endswith("(") or (called and not tokens[at + 1][0] and core.lower() not in ORDINARY)
            core = core.rstrip("(")
            trail = word[len(lead) + len(core) :].replace("()", "")
            self._plain(lead)
            if not self._add_word(core, trail, called, last and at + 1 == len(tokens)):
                self._plain(core)
            self._plain(trail)
            if _HOLDS_WORD.search(word) or word in ("->", "-"):
                self._before = word.lower()
        if text[-1:].isspace():
            self._plain(" ")

    def _add_word(self, core: str, trail: str, called: bool, ends: bool) -> bool:
        """Add a word as a slot if it is one, and return whether it is."""
        if core in ("$", "_"):
            return self._add("name", core)
        if not _HOLDS_WORD.search(core):
            return False
        default = "name" if called or self._is_named(core, trail, ends) else ""
        if core.isalpha() and (core.islower() or not CAMEL.search(core)):
            return bool(default) and self._add_value(core, default)
        return self._add_value(core, default)

    def _is_named(self, core: str, trail: str, ends: bool) -> bool:
        """Return whether a plain word stands where names stand."""
        low = core.lower()
        before, colon = self._before.strip(_AROUND), self._before.endswith(":")
        if colon and ends and (before in KINDS or before in INTRODUCING):
            return True
        if low in ORDINARY or low in KINDS or "'" in low or "’" in low:
            return False
        if before in KINDS or before in INTRODUCING:
            return not self._before.endswith((",", ";", "."))
        if before == "for":
            return ends or trail[:1] in (",", ".", ":")
        return colon and (ends or (self._about_files and trail[:1] == ":"))

    def _add_value(self, value: str, default: str) -> bool:
        """Add a word that is more than letters, or was quoted, as a slot of its kind, and return whether it has one."""
        pair = None if "://" in value or has_extension(value) else _PAIR.fullmatch(value)
        if pair:
            return self._add_pair(*pair.groups())
        before = self._before.strip(_AROUND)
        kind = kind_of(value, before) if " " not in value else ""
        if before in ("host", "hostname") and kind in ("", "name"):
            kind = "address"
        return kind != "code" and bool(kind or default) and self._add(kind or default, value)

    def _add_pair(self, key: str, sign: str, value: str) -> bool:
        """Add a key with its value, or a package with its version."""
        if sign in ("=", ":="):
            self._plain(f"{key}=")
            self._before = key.lower()
            if value and ((value.isalpha() and value.lower() in ORDINARY) or not self._add_value(value, "name")):
                self._plain(value)
        else:
            self._add("name", key)
            if value[:1] in "~^v0123456789":  # it comes and goes: the template does without
                self._slots.append(("version", value))
        return True

    def _plain(self, text: str) -> None:
        self._template.append(text)
        self._text.append(text)

    def _add(self, kind: str, value: str) -> bool:
        if kind == "name" and self._about_files:
            kind = "path"
        generated = _GENERATED.fullmatch(value) if kind == "name" else None
        if generated:
            self._slots.append(("id", value[:MAX_VALUE]))
            value = generated[1]
        self._template.append(f"<{kind}>")
        self._text.append(_readable(kind, value))
        self._slots.append((kind, value[:MAX_VALUE]))
        return True


def _readable(kind: str, value: str) -> str:
    """Return what of a slot helps a reader, or an embedder, to know the error."""
    if kind in ("name", "version"):
        return value[:80]
    if kind == "path":
        return re.split(r"[\\/]", LINE_COLUMN.sub("", value).rstrip("/\\"))[-1][:80]
    if kind == "url":
        found = _URL_HOST.match(value)
        return found[1][:80] if found else ""
    return _SERVICES.get(value.rpartition(":")[2], "") if kind == "address" else ""


_QUOTED = lazy_regex(
    r"(?<![\w'])[bru]?'([^'\s]{1,200}|[^'\n]{1,80})'(?![\w'])|(?<![\w\"])[bru]?\"([^\"\s]{1,200}"
    r"|[^\"\n]{1,200})\"(?!\w)"
    r"|`([^`'\n]{1,120})[`'](?!\w)"
    r"|(?<!\w)[‘‚]([^’‘\n]{1,80})[’‘]|[“„]([^”“\n]{1,80})[”“]|«([^»\n]{1,80})»|''([^'\n]{1,80})''"
)
_TOKEN = lazy_regex(r"(\s*)([^\s(\[{]+(?:\(\))?|[(\[{]+)")
_LEADING = "([{<\"'‘“`"
_TRAILING = ")]}>\"'’”`:,;.!?…"
_AROUND = "()[]{}:,;.'\"`=<>"
_HOLDS_WORD = lazy_regex(r"\w")
_IS_TYPE = lazy_regex(r"[|<>&{}]")
_NOTHING = frozenset({"NoneType", "None", "null", "nil", "undefined", "NULL", "NaN"})
_GENERATED = lazy_regex(
    r"([a-z][a-z0-9-]{0,100}?)-(?=[a-z]{0,15}\d)[a-z0-9]{8,16}-(?=[a-z]{0,4}\d|[b-df-hj-np-tv-z]{5})[a-z0-9]{5}"
    r"(?:_[a-z][a-z0-9-]{0,62})?"
)
"""A name that a scheduler made of another one: it differs at every start."""
_PAIR = lazy_regex(
    r"(@?[A-Za-z][\w./-]{0,80}?)"
    r"(={1,3}|:=|[<>~!^]=|@(?=[~^]?v?\d|latest$|next$|beta$|canary$)|[<>](?=\d)|-(?=\d{1,4}\.\d))(.{0,200})"
)
_ARROW = lazy_regex(r"(?<!\S)([^\s'\"`]{1,100}) -> ([^\s'\"`]{1,100})")
_URL_HOST = lazy_regex(r"[\w+.-]{1,30}://(?:[^/@\s]{1,80}@)?([^/:?#\s]{1,120})")
_RUN = lazy_regex(r"(<(\w+)>)(?:(?:, ?|,? (?:and|or|&|\|) |/| ?\| ?| )(?:and |or )?<\2>)+")
_HOLLOW = lazy_regex(r"\(\s*[,:;]?\s*\)|\[\s*[,:;]?\s*\]|\{\s*\}|(?<=\s)#(?=\s)")
_BEFORE_STOP = lazy_regex(r"\s+([,.;:)\]])")
_SERVICES = {
    "5432": "postgres",
    "3306": "mysql",
    "6379": "redis",
    "27017": "mongodb",
    "9200": "elasticsearch",
    "5672": "rabbitmq",
    "9092": "kafka",
    "11211": "memcached",
    "2375": "docker",
    "6443": "kubernetes",
}
"""Ports -> the services that listen there."""


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
    if "://" in word and URL.match(word):
        return "url"
    if first in "/~\\." and len(word) > 1 and _ROOTED.match(word):
        return "path"
    if "/" in word or "\\" in word:
        return _slashed(word)
    if first.isdigit() or (first in "-+<>=^~v" and _VERSION.fullmatch(word)) or (first in "-+" and word[1:2].isdigit()):
        return _numeric(word, before)
    if ":" in word and _ADDRESS.fullmatch(word):
        return "path" if has_extension(word.partition(":")[0]) else "address"
    if word.lower() == "localhost" or _HOST.fullmatch(word):
        return "address"
    if _CODE.fullmatch(word):
        return "code"
    if _HEX.fullmatch(word):
        return "id"
    if has_extension(word):
        return "path"
    if word.isalpha() and (word.islower() or not CAMEL.search(word)):
        return ""
    if _COMPOUND.search(word):
        return "code" if CODE_PARTS.search(word) and _SIMPLE.fullmatch(word) else "name"
    return ""


def _slashed(word: str) -> str:
    if word[0] == "@":
        return "name"
    if _DRIVE.match(word) or has_extension(word) or _ADDRESS_PATH.match(word):
        return "path"
    parts = re.split(r"[\\/]", word)
    if parts[0] == "HTTP":
        return ""
    if _NUMERIC.fullmatch(word):
        return "time" if _TIME.fullmatch(word) else "number"
    if all(part.lower() in ORDINARY or len(part) < 3 for part in parts):
        return ""
    return "name"


def _numeric(word: str, before: str) -> str:
    if _TIME.fullmatch(word):
        return "time"
    if _ADDRESS.fullmatch(word) or _HOST.fullmatch(word) or (before == "port" and word.isdigit()):
        return "address"
    if _HEX.fullmatch(word):
        return "id"
    if word.isdigit() and (before in _BEFORE_CODES or (before == "code" and int(word[:9]) > 125)):
        return "code"
    if _VERSION.fullmatch(word) and (word.count(".") > 1 or not word[0].isdigit()):
        return "version"
    if _NUMERIC.fullmatch(word):
        return "number"
    if _CODE.fullmatch(word):
        return "code"
    return "id" if len(word) >= 12 else "name"


def has_extension(word: str) -> bool:
    """Return whether a word, perhaps with line and column, ends like a file name."""
    base = LINE_COLUMN.sub("", word)
    stem, dot, extension = base.rpartition(".")
    return bool(dot and stem) and extension.lower() in EXTENSIONS and not stem.endswith(("/", "\\"))


CAMEL = lazy_regex(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
URL = lazy_regex(r"[a-zA-Z][\w+.-]{1,30}://")
_ROOTED = lazy_regex(r"(?:/|~/|\.{1,2}[/\\]|\\\\|\.[A-Za-z])")
_DRIVE = lazy_regex(r"[A-Za-z]:[\\/]")
_ADDRESS_PATH = lazy_regex(r"[\w.-]+\\")
_ADDRESS = lazy_regex(
    r"(?:[A-Za-z0-9_](?:[\w.-]{0,100}\w)?|\[[0-9a-fA-F:.]{2,45}\]|\d{1,3}(?:\.\d{1,3}){3}|::1?|\*)?:\d{2,5}"
)
_HOST = lazy_regex(r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?|(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F:]{1,10}|::1")
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
