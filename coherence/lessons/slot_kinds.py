"""Kinds of the words of a message: a path, a version, an address, a code that stays."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.lessons.error_words import CODE_PARTS, EXTENSIONS, ORDINARY


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
