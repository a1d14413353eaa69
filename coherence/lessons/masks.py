"""A message with its names, paths, versions, numbers, ids, addresses and times masked."""

from __future__ import annotations

from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.lessons.error_words import ERRNO_TEXTS, INTRODUCING, KINDS, ORDINARY
from coherence.lessons.tokens import ENDPOINT, HOLDS_WORD, Token, base_of, cut, has_extension, is_plain, kind_of

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
    found.read(_ARROW.sub(r"'\1' -> '\2'", message), last=True)  # both sides of a renaming are names
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
        tokens = cut(message)
        for at, token in enumerate(tokens):
            self._plain(token.lead)
            if token.quoted:
                self._quoted(token.text)
            else:
                self._word(token, last and at + 1 == len(tokens))

    def result(self) -> Masked:
        template = _RUN.sub(r"\1", "".join(self._template).replace(">,)", ">)"))  # a tuple of one
        template = " ".join(template.split()).strip(" .!?,;:")
        text = _BEFORE_STOP.sub(r"\1", " ".join(_HOLLOW.sub("", "".join(self._text)).split()))
        return Masked(template, text.strip(" ,;:"), tuple(self._slots[:MAX_SLOTS]))

    def _quoted(self, value: str) -> None:
        if value.count(" ") > 1 and not _IS_TYPE.search(value):  # a sentence, not a name
            self.read(value, last=False)
            return
        if value in _NOTHING or not self._add_value(value, "name"):
            self._plain(value)
        self._before = "'"  # what stood before the quotes says nothing of the word behind them

    def _word(self, token: Token, ends: bool) -> None:
        word, written = token.text, f"{token.text}{token.trail}"
        if word in ORDINARY and not token.called and not self._before.endswith(":"):  # else it may be a name
            self._plain(written)
            self._before = written.lower()
            return
        self._plain(token.trail if self._add_word(token, ends) else written)
        if HOLDS_WORD.search(word) or word == "-":
            self._before = written.lower()

    def _add_word(self, token: Token, ends: bool) -> bool:
        """Add a word as a slot if it is one, and return whether it is."""
        word = token.text
        if word in ("$", "_"):  # names in PHP, JavaScript and Python
            return self._add("name", word)
        default = "name" if token.called or self._is_named(word, token.trail, ends) else ""
        return bool((default or not is_plain(word)) and HOLDS_WORD.search(word)) and self._add_value(word, default)

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
        if before == "for":  # "found for requests", but "for the module"
            return ends or trail[:1] in (",", ".", ":")
        return colon and (ends or (self._about_files and trail[:1] == ":"))  # "cat: notes: No such file"

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
        if kind == "name" and self._about_files:  # what is not found, denied or a directory is a file
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
        return base_of(value)[:80]
    if kind == "url":
        found = ENDPOINT.match(value)
        return found["host"][:80] if found else ""
    return _SERVICES.get(value.rpartition(":")[2], "") if kind == "address" else ""


_AROUND = "()[]{}:,;.'\"`=<>"
_IS_TYPE = lazy_regex(r"[|<>&{}]")
_NOTHING = frozenset({"NoneType", "None", "null", "nil", "undefined", "NULL", "NaN"})  # values, not names
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
_RUN = lazy_regex(r"(<(\w+)>)(?:(?:, ?|,? (?:and|or|&|\|) |/| ?\| ?| )(?:and |or )?<\2>)+")  # a list of any length
_HOLLOW = lazy_regex(r"\(\s*[,:;]?\s*\)|\[\s*[,:;]?\s*\]|\{\s*\}|(?<=\s)#(?=\s)")
_BEFORE_STOP = lazy_regex(r"\s+([,.;:)\]])")
_SERVICES = dict(
    each.split(":")
    for each in word_set(
        "5432:postgres 3306:mysql 6379:redis 27017:mongodb 9200:elasticsearch 5672:rabbitmq 9092:kafka "
        "11211:memcached 2375:docker 6443:kubernetes"
    )
)
"""Ports -> the services that listen there."""
