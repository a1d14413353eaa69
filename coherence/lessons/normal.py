"""The normal form of an error: what stays the same when it comes back with other names, paths and numbers."""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import check_text, clean
from coherence.core.words import word_set
from coherence.lessons.clean import clean_lines
from coherence.lessons.error_phrases import reword
from coherence.lessons.error_words import CODE_PARTS
from coherence.lessons.headlines import find_headline
from coherence.lessons.is_prose import is_prose
from coherence.lessons.line_scores import telling_lines
from coherence.lessons.masks import MAX_SLOTS, Masked, mask
from coherence.lessons.stems import stems_of

FORM = 2
"""Number of the normal form, kept with every lesson: to be raised whenever equal errors get another one."""

MAX_TEMPLATE = 300
MAX_EMBEDDED = 400
MAX_HEADLINE = 360
"""Characters of a headline that are masked."""

MAX_SECOND = 140

MAX_SECONDARY = 160
"""Characters of a telling line beside the headline."""

MAX_WORDS = 64

KEYS = frozenset({"name", "path", "url", "address"})
"""Kinds of slots that tell an error from its siblings; numbers, ids, times and versions change by themselves. A
headline without any leaves that to the lines below it."""


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """What stood in the place of a placeholder."""

    kind: str
    """One of name, path, url, address, version, number, id and time."""
    value: str
    """The text as it was written, without quotes, at most 200 characters."""


class ErrorShape(msgspec.Struct, frozen=True):
    """The normal form of an error text."""

    exception: str
    """Exception class or code, such as ``ModuleNotFoundError``, ``E0382`` or ``ENOENT``; empty if there is none."""
    template: str
    """The headline with every slot masked, at most 300 characters."""
    text: str
    """What is embedded: the headline with noise masked and names kept, at most 400 characters."""
    slots: tuple[Slot, ...]
    """What was masked in the headline, in order, at most 16."""
    signature: bytes
    """Digest (8 bytes) of exception and template, without case."""
    prose: bool
    """Whether these are a human's words about an error, and no error text."""
    weak: bool
    """Whether neither words nor names of the headline tell, so that an equal signature proves little."""
    words: tuple[str, ...] = ()
    """The stems of the words of the headline and of the most telling other lines, without slots, sorted; at most 64."""


def normalise(text: str) -> ErrorShape:
    r"""Return the normal form of an error text.

    Parameters
    ----------
    text : str
        What a tool printed, or what a human said about it; any text of any length. Of long ones the first 8,000 and
        the last 24,000 characters are looked at.

    Raises
    ------
    TypeError
        For what is no text.

    Examples
    --------
    >>> one = normalise("Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in load\n"
    ...                 "    import yaml\nModuleNotFoundError: No module named 'yaml'")
    >>> one.exception, one.template
    ('ModuleNotFoundError', 'ModuleNotFoundError: No module named <name>')
    >>> two = normalise("E   ModuleNotFoundError: No module named 'requests'")
    >>> one.signature == two.signature, one.slots == two.slots
    (True, False)
    >>> normalise("my tests hang for ever when I run them in parallel").prose
    True
    """
    lines = clean_lines(check_text("text", text))
    if not lines:
        return _shape("", "", "", (), prose=False)
    if is_prose(lines):
        said = " ".join(line.strip() for line in lines)
        masked = mask(said[:MAX_EMBEDDED])
        return _shape("", masked.template, said, masked.slots, prose=True)
    head = find_headline(lines)
    exception, masked, template = _masked(head.message)
    if head.reported and _says_little(exception, template, masked.slots):
        head = head._replace(message=head.reported, second=head.message)
        exception, masked, template = _masked(head.message)
    readable = masked.text if not exception or exception in masked.text else f"{exception}: {masked.text}".rstrip(": ")
    second = mask(": ".join(filter(None, reword(head.second[:MAX_SECOND])))).text if head.second else ""
    embedded = f"{readable[: MAX_EMBEDDED - MAX_SECOND]}. {second}" if second else readable
    slots = masked.slots
    if not any(kind in KEYS and not _ENCODING.fullmatch(value) for kind, value in slots):
        slots += _named_in((head.literals,), KEYS) if head.literals else ()
    if not any(kind in KEYS for kind, _ in slots):
        slots += _named_in(_values(head.message), KEYS) or _named_in(head.details, frozenset({"name"}))
    return _shape(
        exception,
        template,
        embedded,
        slots[:MAX_SLOTS],
        _others(lines, head.message),
        prose=False,
    )


def _masked(headline: str) -> tuple[str, Masked, str]:
    """Return a headline's exception, the rest of it masked, and its template."""
    exception, message = reword(headline[:MAX_HEADLINE])
    masked = mask(message)
    template = "<name>" if masked.template == "<path>" else masked.template
    if exception and not template.startswith(exception) and exception not in template:
        template = f"{exception}: {template}" if template else exception
    return exception, masked, template


def _others(lines: list[str], headline: str) -> str:
    """Return the most telling lines beside the headline, masked."""
    told = (reword(line[:MAX_SECONDARY]) for line in telling_lines(lines, headline))
    return " ".join(f"{exception} {mask(message).template}" for exception, message in told)


def _values(message: str) -> tuple[str, ...]:
    """Return the values of the JSON in a headline, of which its template keeps only the message."""
    values = _VALUE.findall(message, message.find("{")) if "{" in message else []
    told = (value for value in values if value.count(" ") < 3 and not CODE_PARTS.search(value))
    return (" ".join(f"'{value}'" for value in told),) if values else ()


def _named_in(details: tuple[str, ...], kinds: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return what the first of some lines that names something names."""
    for line in details:
        found = tuple(slot for slot in mask(line[:MAX_HEADLINE]).slots if slot[0] in kinds)
        if found:
            return found[:3]
    return ()


def _shape(
    exception: str,
    template: str,
    text: str,
    slots: tuple[tuple[str, str], ...],
    others: str = "",
    *,
    prose: bool,
) -> ErrorShape:
    template = clean(template[:MAX_TEMPLATE])
    told = f"{exception}\0{template}".casefold().encode("utf-8", "replace")
    return ErrorShape(
        exception=exception,
        template=template,
        text=text[:MAX_EMBEDDED].strip(),
        slots=tuple(Slot(kind, value) for kind, value in slots),
        signature=blake2b(told, digest_size=8).digest(),
        prose=prose,
        weak=not prose and _says_little(exception, template, slots),
        words=() if prose else tuple(sorted(stems_of(f"{exception} {template} {others}"))[:MAX_WORDS]),
    )


def _says_little(exception: str, template: str, slots: tuple[tuple[str, str], ...]) -> bool:
    message = template.removeprefix(exception)
    if message.lstrip(": ").startswith("assert "):
        return True
    if exception in _TELLING_ALONE or ("1" in message and _SIGNALLED.search(message)):
        return False
    named = any(kind in _TELLING_KINDS for kind, _ in slots)
    lacking = (1 if exception and exception not in _GENERAL else 2) - named
    if lacking <= 0:
        return False
    words = set(_WORD.findall(_PLACEHOLDER.sub(" ", message).lower())) - _EMPTY_WORDS
    return len(words) < lacking


_VALUE = lazy_regex(r"(?<=[:\[, ])[\"']([^\"'\\]{1,80})[\"'](?!\s?:)")
_ENCODING = lazy_regex(r"utf-?(?:8|16|32)(?:-\w+)?|ascii|charmap|cp\d{3,4}|latin-?1|iso-?8859-?\d*|gbk", re.IGNORECASE)
"""Names of encodings, which are the same for every file."""
_SIGNALLED = lazy_regex(r"\b1[23]\d\b")
"""Exit codes from 126 on, which say how a process ended: not found, or killed by a signal."""

_TELLING_KINDS = frozenset({"name", "path", "version", "url"})
_WORD = lazy_regex(r"[^\W\d_]{2,}")
_PLACEHOLDER = lazy_regex(r"<\w+>")
_EMPTY_WORDS = word_set(
    "error errors failed failure fail command exit exited code status with test tests assertion exception unknown "
    "internal an a the occurred process returned non zero build run script went wrong something server by from in at "
    "of to on is was and or returncode makefile make all line for task step job finished stopped signal warning fatal"
)
_GENERAL = frozenset({"AssertionError", "Exception", "Error", "RuntimeError", "RuntimeException", "panic"})
_TELLING_ALONE = word_set(
    "ENOENT EACCES ECONNREFUSED ECONNRESET EADDRINUSE ENOSPC EMFILE EPERM MemoryError RecursionError "
    "KeyboardInterrupt OutOfMemoryError StackOverflowError ZeroDivisionError"
)
