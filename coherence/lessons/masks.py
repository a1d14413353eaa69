"""A message with its names, paths, versions, numbers, ids, addresses and times masked."""

from __future__ import annotations

import re
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.lessons.error_words import CODE_PARTS, ERRNO_TEXTS, INTRODUCING, KINDS, ORDINARY
from coherence.lessons.slot_kinds import (
    CAMEL,
    CODE,
    IS_TIME,
    LINE_COLUMN,
    SIMPLE,
    URL,
    VERSIONED,
    has_extension,
    kind_of,
)

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
    >>> masked = mask("No module named 'yaml' in /srv/app.py, took 3.2 s")
    >>> masked.template
    'No module named <name> in <path>, took <time>'
    >>> masked.text
    'No module named yaml in app.py, took'
    >>> masked.slots
    (('name', 'yaml'), ('path', '/srv/app.py'), ('time', '3.2 s'))
    """
    low = message.lower()
    found = _Masking(any(map(low.__contains__, ERRNO_TEXTS)))
    if "<" in message:
        message = _OBJECT_AT.sub(r"`\1`", _CLASS.sub(r"`\1`", message))
    found.read(message, last=True)
    return found.result()


class _Masking:
    """The template, the text and the slots while a message is read from left to right."""

    def __init__(self, about_files: bool) -> None:
        self._about_files = about_files
        self._template: list[str] = []
        self._text: list[str] = []
        self._slots: list[tuple[str, str]] = []
        self._inside = False
        """Whether the word before opened the arguments of a call."""
        self._unit = False
        """Whether the next word is the unit of a number that was masked."""
        self._opened = ""
        """The opening parenthesis or bracket before, if one stands alone there."""
        self._after_code = False
        """Whether the word before was a code such as ENOTFOUND."""
        self._before = ""
        """The word before, in lower case with its punctuation."""

    def read(self, message: str, last: bool) -> None:
        at = 0
        for quoted in _QUOTED.finditer(message):
            self.words(message[at : quoted.start()])
            self.quoted(quoted[quoted.lastindex or 0])
            at = quoted.end()
        self.words(message[at:], last)

    def quoted(self, value: str) -> None:
        bare = value.strip()
        if bare in _NOTHING:
            self._plain(bare)
            self._before = bare.lower()
            return
        if bare.count(" ") > 1 and not _IS_TYPE.search(bare):  # a sentence, not a name
            self.read(bare, last=False)
            return
        pair = _TAGGED.fullmatch(bare)
        if pair:
            self._add("name", pair[1])
            if pair[3][:1] in "~^v0123456789":
                self._slots.append(("version", pair[3]))  # it comes and goes: the template does without
            self._before = "'"
            return
        released = _RELEASED.fullmatch(bare)
        if released:
            self._add("name", released[1])
            self._slots.append(("version", released[2]))
            self._before = "'"
            return
        kind = kind_of(bare, self._word_before()) if " " not in bare else ""
        if kind == "code" and _SNAKE.fullmatch(bare) and not _STRONG_CODE.search(bare):
            kind = "name"
        if IS_TIME.fullmatch(bare):
            kind = "time"
        if self._word_before() in _HOSTS and kind in ("", "name"):
            kind = "address"
        if kind == "code":
            self._template.append(bare)
            self._text.append(bare)
        else:
            self._add(kind or "name", bare)
        self._before = "'"

    def words(self, text: str, last: bool = False) -> None:
        tokens = _TOKEN.findall(text)
        arrows = "->" in text
        for at, (space, word) in enumerate(tokens):
            if self._unit:
                self._unit = False
                self._plain(word[len(word.rstrip(_TRAILING)) :])
                continue
            if not arrows and word in ORDINARY and self._before not in _NAMING:
                self._plain(f" {word}" if space else word)
                self._opened, self._inside, self._after_code, self._before = "", False, False, word
                continue
            if space:
                self._plain(" ")
            following = tokens[at + 1 : at + 3]
            spaced = bool(following and following[0][0])
            self._word(word, [word for _, word in following], spaced, ends=last and at + 1 == len(tokens))
            self._opened = word if word in ("(", "[", "{") else ""
            self._inside = word == "(" and not space and at > 0
            if word[0].isalnum() or _HOLDS_WORD.search(word) or word in ("->", "-"):
                self._before = word.lower()
        if text[-1:].isspace():
            self._plain(" ")

    def _word_before(self) -> str:
        return self._before.strip("()[]{}:,;.'\"`=<>")

    def _word(self, word: str, rest: list[str], spaced: bool, ends: bool) -> None:
        core = word.lstrip(_LEADING)
        lead = word[: len(word) - len(core)]
        core = core.rstrip(_TRAILING)
        call = core.endswith("(")
        core = core.rstrip("(")
        trail = word[len(lead) + len(core) + 2 * call :]
        if core in ("$", "_"):
            self._add("name", core)
            return
        if not core or not (core[0].isalnum() or _HOLDS_WORD.search(core)):
            self._plain(word)
            return
        before = self._word_before()
        called = rest[:1] == ["("] and core.lower() not in ORDINARY and not spaced
        if call or (called and SIMPLE.fullmatch(core)):
            kind = "name"
        elif core.isalpha() and (core.islower() or not CAMEL.search(core)):
            kind = "name" if self._names(core, trail, before, rest, ends) else ""
        else:
            pair = _PAIR.match(core)
            if pair is None and _NAME_VERSION.fullmatch(core) and not has_extension(core):
                pair = _NAME_VERSION_PAIR.match(core)
            if pair and not URL.match(core):
                self._plain(lead)
                self._assigned(pair, inside=self._opened == "{")
                self._plain(trail)
                return
            kind = kind_of(core, before)
            if (
                kind == "number"
                and _STATUS.fullmatch(core)
                and not trail.startswith(",")
                and (not self._before or (rest and rest[0].lower() in _STATUS_WORDS))
            ):
                kind = "code"
            if kind == "" and self._names(core, trail, before, rest, ends):
                kind = "name"
        self._after_code = kind == "code" or (core.isupper() and CODE.fullmatch(core) is not None and core != "ERROR")
        if kind in ("", "code") and not (before in _HOSTS and ends):
            self._plain(word)
            return
        self._plain(lead)
        unit = rest[0].lower().rstrip(".,;:)]") if rest and not trail else ""
        if kind in ("", "name") and before in _HOSTS and (ends or trail):
            kind = "address"
        if kind == "number" and unit in _DURATIONS:
            kind, core, self._unit = "time", f"{core} {unit}", True
        self._add(kind, core)
        self._plain(trail)

    def _assigned(self, pair: re.Match[str], inside: bool) -> None:
        """Add a key and its value, or a package and its version; inside braces, what a code is about is a name."""
        key, sign, value = pair.groups()
        told = inside and sign == "=" and CODE_PARTS.search(value) and _CAPITALS.fullmatch(value)
        if told and key.lower() not in ORDINARY | KINDS:
            self._add("name", key)
            self._plain(f"={value}")
            return
        if sign in ("=", ":="):
            self._plain(key + "=")
            if value:
                kind = kind_of(value, key.lower())
                if kind == "code" or (value.isalpha() and value.lower() in ORDINARY):
                    self._plain(value)
                else:
                    self._add(kind or "name", value)
            return
        if key:
            self._add("name", key)
            self._plain(" ")
        self._add(
            "version" if value[:1].isdigit() or value[:1] == "v" or sign == "@" else "name",
            f"{value}" if key else f"{sign}{value}",
        )

    def _names(self, core: str, trail: str, before: str, rest: list[str], ends: bool) -> bool:
        """Whether a plain word stands where names stand."""
        low = core.lower()
        if ("'" in low or "’" in low) and _CONTRACTED.search(low):
            return False
        first = rest[0] if rest else ""
        if self._before == "->" or first == "->":
            return True
        if self._before.endswith(":") and ends and (before in KINDS or before in INTRODUCING or before == "name"):
            return True
        if before in KINDS and (
            (ends and low in _NAMELIKE) or (self._opened == "[" and trail[:1] == "]") or rest[:2] == ["does", "not"]
        ):
            return low not in KINDS
        if before == "for" and ends and core[0].isupper():
            return True
        if low in ORDINARY:
            return False
        if low in KINDS and (rest or before in KINDS):
            return False
        if self._inside:
            return len(core) > 1
        if first in ("is", "was") and rest[1:] and rest[1] in _ABSENT and before not in _ARTICLES:
            return True
        if self._opened == "(" and trail[:1] == ")":
            return CODE_PARTS.search(low) is None and len(core) > 2
        if (self._after_code and ends) or (self._before == "-" and trail == ":"):
            return True
        if before in ("named", "called"):
            return True
        if before in KINDS or before in INTRODUCING:
            return not self._before.endswith((",", ";", "."))
        if (
            rest
            and not core.isupper()
            and before not in VERSIONED
            and low not in VERSIONED
            and _PLAIN_VERSION.match(rest[0])
        ):
            return True
        if self._before.endswith(":") and not self._before.startswith("<") and ends and low not in KINDS:
            return True
        if trail == ":" and rest and self._before.endswith(":") and self._about_files:
            return True
        if before in _FOR and (ends or trail in (",", ".", ":") or rest[:1] in (["..."], ["("])):
            return True
        if "-" in core and rest[:2] in (["could", "not"], ["cannot", "be"], ["does", "not"], ["not", "found"]):
            return True
        if before in _FOR and rest[:2] in (["does", "not"], ["not", "found"]):
            return True
        return trail == ":" and first == "unbound"

    def _plain(self, text: str) -> None:
        self._template.append(text)
        self._text.append(text)

    def _add(self, kind: str, value: str) -> None:
        if kind == "name" and self._about_files:
            kind = "path"
        generated = _GENERATED.fullmatch(value) if kind == "name" else None
        if generated:
            self._slots.append(("id", value[:MAX_VALUE]))
            value = generated[1]
        self._template.append(f"<{kind}>")
        self._text.append(_readable(kind, value))
        if len(self._slots) < MAX_SLOTS:
            self._slots.append((kind, value[:MAX_VALUE]))

    def result(self) -> Masked:
        template = "".join(self._template)
        if len(self._slots) > 1:
            template = _RUN.sub(r"\1", template.replace(">,)", ">)"))
        template = " ".join(template.split()).strip(" .!?,;:")
        text = "".join(self._text)
        if "(" in text or "[" in text or "{" in text or "#" in text:
            text = _HOLLOW.sub("", text)
        text = " ".join(text.split())
        if any(map(text.__contains__, _SPACED_STOPS)):
            text = _BEFORE_STOP.sub(r"\1", text)
        return Masked(template, text.strip(" ,;:"), tuple(self._slots[:MAX_SLOTS]))


def _readable(kind: str, value: str) -> str:
    """Return what of a slot helps a reader, or an embedder, to know the error."""
    if kind in ("name", "version"):
        return value[:80]
    if kind == "path":
        bare = LINE_COLUMN.sub("", value).rstrip("/\\")
        return re.split(r"[\\/]", bare)[-1][:80]
    if kind == "url":
        found = _URL_HOST.match(value)
        return found[1][:80] if found else ""
    if kind == "address":
        return _SERVICES.get(value.rpartition(":")[2], "")
    return ""


_CONTRACTED = lazy_regex(r"[a-z](?:n['’]t|['’](?:s|re|ve|ll|m|d))$")
_CAPITALS = lazy_regex(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_GENERATED = lazy_regex(
    r"([a-z][a-z0-9-]{0,100}?)-(?=[a-z]{0,15}\d)[a-z0-9]{8,16}-(?=[a-z]{0,4}\d|[b-df-hj-np-tv-z]{5})[a-z0-9]{5}"
    r"(?:_[a-z][a-z0-9-]{0,62})?"
)
"""A name that a scheduler made of another one: it differs at every start."""
_CLASS = lazy_regex(r"<class '([^'\n]{1,100})'>")
_OBJECT_AT = lazy_regex(r"<([\w.]{1,100})[^<>\n]{0,100}? at 0x[0-9a-fA-F]{4,16}>")
_QUOTED = lazy_regex(
    r"(?<![\w'])[bru]?'([^'\s]{1,200}|[^'\n]{1,80})'(?![\w'])|(?<![\w\"])[bru]?\"([^\"\s]{1,200}"
    r"|[^\"\n]{1,200})\"(?!\w)"
    r"|`([^`'\n]{1,120})[`'](?!\w)"
    r"|(?<!\w)[‘‚]([^’‘\n]{1,80})[’‘]|[“„]([^”“\n]{1,80})[”“]|«([^»\n]{1,80})»|''([^'\n]{1,80})''"
)
_TOKEN = lazy_regex(r"(\s*)([^\s(\[{]+(?:\(\))?|[(\[{]+)")
_LEADING = "([{<\"'‘“`"
_TRAILING = ")]}>\"'’”`:,;.!?…"
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
_NAMING = (
    KINDS
    | INTRODUCING
    | {"->", "name:", "host:", "hostname:", "host", "hostname"}
    | {f"{word}:" for word in KINDS | INTRODUCING}
)
"""Words before which even an ordinary word may be a name."""
_NAMELIKE = word_set("api app build client data db default dev index main master public root server test web")
_STATUS_WORDS = word_set("not client server unauthorized forbidden too internal bad service gateway error method")
_STATUS = lazy_regex(r"[45]\d\d")
_NOTHING = frozenset({"NoneType", "None", "null", "nil", "undefined", "NULL", "NaN"})
_FOR = word_set("for from on require requires install installing because")
_ARTICLES = word_set("the a an this that your it which")
_NAME_VERSION_PAIR = lazy_regex(r"([A-Za-z][\w.-]{0,80}?)(-)(?=\d{1,4}\.)(.{0,60})$")
_PLAIN_VERSION = lazy_regex(r"(?!\d{1,3}(?:\.\d{1,3}){3})[<>=~^!]{0,2}v?\d{1,5}\.\d{1,5}\.\d|[<>=~^!]{1,2}v?\d")
_IS_TYPE = lazy_regex(r"[|<>&{}]")
_NAME_VERSION = lazy_regex(r"([A-Za-z][\w.-]{0,80}?)-(\d{1,4}\.\d{1,5}[\w.+]{0,30})")
_HOLDS_WORD = lazy_regex(r"\w")
_HOSTS = frozenset({"host", "hostname"})
_ABSENT = frozenset(
    {"not", "undefined", "null", "required", "read-only", "already", "possibly", "deprecated", "unbound", "ambiguous"}
)
_SNAKE = lazy_regex(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
_STRONG_CODE = lazy_regex(
    r"error|exception|fail|denied|not_?found|invalid|no_such|refused|exceeded|unauthori|forbidden|missing|unknown"
    r"|unavailable|unsupported|not_|does_|too_|insufficient|quota|expired|conflict|mismatch|back_?off|timed?_?out"
)
"""Parts of codes: a quoted word with another one, such as ``password_reset``, is as likely a name."""
_TAGGED = lazy_regex(r"(@?[A-Za-z][\w./-]{0,80})(@)((?:latest|next|beta|canary|[~^]?v?\d[\w.+-]{0,40}))")
_RELEASED = lazy_regex(r"(@?[A-Za-z][\w./-]{0,80}) (v?\d{1,6}\.\d{1,6}\.\d[\w.+-]{0,40})")
_PAIR = lazy_regex(r"([A-Za-z@][\w./-]{0,80})(={1,3}|:=|[<>~!^]=|@(?=[\dv^~<>=*]|latest$|next$)|[<>](?=\d))(.{0,200})$")
_URL_HOST = lazy_regex(r"[\w+.-]{1,30}://(?:[^/@\s]{1,80}@)?([^/:?#\s]{1,120})")
_DURATIONS = word_set("ms s sec secs second seconds min mins minute minutes hour hours h days day milliseconds")
_RUN = lazy_regex(r"(<(\w+)>)(?:(?:, ?|,? (?:and|or|&|\|) |/| ?\| ?| )(?:and |or )?<\2>)+")
_HOLLOW = lazy_regex(r"\(\s*[,:;]?\s*\)|\[\s*[,:;]?\s*\]|\{\s*\}|(?<=\s)#(?=\s)")
_BEFORE_STOP = lazy_regex(r"\s+([,.;:)\]])")
_SPACED_STOPS = (" ,", " .", " ;", " :", " )", " ]")
