"""The normal form of an error, which stays the same when it comes back with other names, paths and numbers."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from hashlib import blake2b

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import check_text, clean
from coherence.core.words import word_set
from coherence.lessons.clean import clean_lines
from coherence.lessons.error_words import EXCEPTION_NAME
from coherence.lessons.headlines import find_headline
from coherence.lessons.is_prose import is_prose
from coherence.lessons.masks import Masked, mask
from coherence.lessons.tokens import PLACEHOLDER, WORD

FORM = 3
"""Number of the normal form, kept with every lesson: to be raised whenever equal errors get another one."""

MAX_TEMPLATE = 300
MAX_EMBEDDED = 400
MAX_HEADLINE = 360
"""Characters of a headline that are masked."""

MAX_WORDS = 64

KEYS = frozenset({"name", "path", "url", "address"})
"""Kinds of slots that tell an error from its siblings; numbers, ids, times and versions change by themselves."""

MAX_STEM = 7
"""Letters of a stem."""


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """A text that stood in the place of a placeholder."""

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
    """The text that is embedded: the headline with noise masked and names kept, at most 400 characters."""
    slots: tuple[Slot, ...]
    """The masked parts of the headline, in order, at most 16."""
    signature: bytes
    """Digest (8 bytes) of exception and template, without case."""
    prose: bool
    """True for a human's words about an error, False for an error text."""
    weak: bool
    """True if the headline says nearly nothing, so that an equal signature proves little."""
    words: tuple[str, ...] = ()
    """The stems of the words of the headline, without slots, sorted; at most 64."""


def normalise(text: str) -> ErrorShape:
    r"""Return the normal form of an error text.

    Parameters
    ----------
    text : str
        The output of a tool, or the words of a human about it; any text of any length. Of long ones the first 8,000
        and the last 24,000 characters are looked at.

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
    headline, reported = find_headline(lines)
    exception, masked, template = _masked(headline)
    if reported and _says_little(exception, template, masked.slots):
        exception, masked, template = _masked(reported)
    readable = masked.text if not exception or exception in masked.text else f"{exception}: {masked.text}".rstrip(": ")
    return _shape(exception, template, readable, masked.slots, prose=False)


def _masked(headline: str) -> tuple[str, Masked, str]:
    """Return a headline's exception, the rest of it masked, and its template."""
    exception, message = reword(headline[:MAX_HEADLINE])
    masked = mask(message)
    template = "<name>" if masked.template == "<path>" else masked.template  # a key may look like a file
    if exception and not template.startswith(exception) and exception not in template:
        template = f"{exception}: {template}" if template else exception
    return exception, masked, template


def _shape(
    exception: str,
    template: str,
    text: str,
    slots: tuple[tuple[str, str], ...],
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
        words=() if prose else tuple(sorted(stems_of(f"{exception} {template}"))[:MAX_WORDS]),
    )


def _says_little(exception: str, template: str, slots: tuple[tuple[str, str], ...]) -> bool:
    """Return whether a message has fewer telling words, names and exceptions than two."""
    message = template.removeprefix(exception)
    if message.lstrip(": ").startswith("assert "):
        return True
    words = {word for word in WORD.findall(PLACEHOLDER.sub(" ", message).lower()) if len(word) > 1} - _EMPTY_WORDS
    return len(words) + bool(exception) + any(kind in _TELLING_KINDS for kind, _ in slots) < 2


_TELLING_KINDS = frozenset({"name", "path", "version", "url"})
_EMPTY_WORDS = word_set(
    "error errors failed failure fail command exit exited code status with test tests assertion exception unknown "
    "internal an a the occurred process returned non zero build run script went wrong something server by from in at "
    "of to on is was and or returncode makefile make all line for task step job finished stopped signal warning fatal"
)


def reword(message: str) -> tuple[str, str]:
    """Return the exception or code of a headline, or nothing, and its message in one wording.

    Examples
    --------
    >>> reword("requests.exceptions.ConnectionError: timed out")
    ('ConnectionError', 'timed out')
    >>> reword("error[E0382]: borrow of moved value: `x`"), reword("zsh: command not found: jq")[1]
    (('E0382', 'borrow of moved value: `x`'), "command not found: 'jq'")
    """
    exception, message = _exception_of(_PROGRAM.sub("", " ".join(message.split())))
    told = _TOLD_IN.search(message) if "{" in message or '="' in message or message[:1] in ("'", '"') else None
    if told:
        said = next(group for group in told.groups() if group)
        message = f"{message[: told.start()].partition('{')[0]}{said}".strip()
    for pattern, replacement in _REWORDINGS:
        found = pattern.match(message)
        if found:
            message = found.expand(replacement) + message[found.end() :]
            break
    if exception == "ImportError" and message.startswith("No module named"):  # before Python 3.6
        exception = "ModuleNotFoundError"
    if not exception and message.startswith("assert "):
        exception = "AssertionError"
    return exception, _ASIDE.sub("", message)


def _exception_of(message: str) -> tuple[str, str]:
    exception = ""
    for _ in range(3):  # a class may stand before a class, and a code behind both
        coded = _CODED.match(message)
        named = None if coded else _NAMED.match(message)
        found = coded or named or _QUALIFIED.match(message)
        if found is None or (exception and not coded):
            break
        name = named[2] if named and named[2] else re.split(r"[.:\\/]", found[1])[-1]
        exception = name if name.lower() != "error" else ""  # "Error" names no class, and comes and goes
        message = message[found.end() :].strip()
    return exception, message


_PROGRAM = lazy_regex(r"^(?:\.?/[\w.+-]{1,60}){0,12}/(?=[\w+-]{1,60}: )")
_CODED = lazy_regex(
    r"(?:error|warning|fatal error)?\s?\[?((?-i:E[A-Z]{3,20}(?=[:,]? )|[A-Z]{1,6}-?\d{3,6}|ERR_[A-Z_]{2,60}))\]?"
    r"(?:\s?:\s*|\s(?=[a-z]))",
    re.IGNORECASE,
)
_NAMED = lazy_regex(rf"({EXCEPTION_NAME}|Error|panic)(?:\s?\[(\w{{1,60}})\]|\s\((\w{{1,60}})\))?(?::\s*|\s-\s|$)")
_QUALIFIED = lazy_regex(r"((?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{1,80})(?::\s*|$)")
_TOLD_IN = lazy_regex(
    r"[\"'](?:message|error|detail|msg|error_description"
    r"|reason)[\"']\s?:\s?(?:\"((?:[^\"\\]|\\.){1,400})\"?|'((?:[^'\\]|\\.){1,400})'?)"
    r"|(?:^|\s)(?:msg|err|error)=\"((?:[^\"\\]|\\.){1,400})\"?"
)
_ASIDE = lazy_regex(
    r"\]?\s(?:\{$|\{[\"'].{0,400}$|\(Request ID[^()]{0,100}\)|\(@INC[^()]{0,300}\)|\(you may [^()]{1,200}\)"
    r"|\((?:from|choose|available|valid|known|possible|supported)[^()]{0,300}\)$"
    r"|\((?:unknown location|[^()\s]{0,200}[/\\][^()]{0,200})\)\.?$"
    r"|\([^()]{1,200}, line \d{1,7}\)$|\[type=[^\]]{1,300}\].{0,200}$|\(type=[^()]{1,100}\)$"
    r"|(?:in|at) [^\s'\"]{1,300}(?::\d{1,7}|\s(?:on )?line \d{1,7})\.?$"
    r"|\(?(?:Did you (?:mean|forget)|did you mean|Maybe you meant|Perhaps you|perhaps you).{0,300}$)"
)
_SHELL = r"(?:-?(?:/\S{0,80}/)?(?:ba|z|da|a|k|c|tc|fi)?sh(?:\.exe)?|\S{1,200}\.(?:ba|z)?sh):\s?(?:line )?(?:\d+:\s?)?"
_REWORDINGS = (
    (
        lazy_regex(
            rf"(?:{_SHELL}command not found: (\S+)"
            rf"|(?:{_SHELL})?(?:[\w./-]{{1,80}}(?:\[\d+\])?: )?['\"]?([^\s:'\"]+)['\"]?: command not found\.*"
            rf"|{_SHELL}([^\s:]+): not found|(?:{_SHELL})?Unknown command:? ['\"]?([^\s'\"]+)['\"]?)$",
            re.IGNORECASE,
        ),
        r"command not found: '\1\2\3\4'",
    ),
    (
        lazy_regex(
            rf"(?:{_SHELL}\s?)?(?:\d+ )?(segmentation fault|killed|aborted|bus error|illegal instruction)"
            r"(?:\s+\(core dumped\))?(?:\s+[^\s:]\S*)?$",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (lazy_regex(_SHELL), ""),
)


def stems_of(template: str) -> set[str]:
    """Return the stems of a masked message, without placeholders and words that stand in any sentence.

    Examples
    --------
    >>> sorted(stems_of("UnknownTopicException: <name> expired")), sorted(stems_of("UNKNOWN_TOPIC, expires"))
    (['excepti', 'expir', 'topic', 'unknown'], ['expir', 'topic', 'unknown'])
    """
    return {_stem(word) for word in _PART.findall(PLACEHOLDER.sub(" ", template)) if len(word) > 1} - {""}


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the cosine of two sets of stems, in [0, 1].

    Examples
    --------
    >>> alike(frozenset({"no", "modul"}), frozenset({"no", "modul"})), alike(frozenset({"no"}), frozenset({"denied"}))
    (1.0, 0.0)
    """
    both = len(one & other)
    return both / math.sqrt(len(one) * len(other)) if both else 0.0


@lru_cache(4_096)
def _stem(word: str) -> str:
    low = word.lower()
    if low in _EMPTY:
        return ""
    for ending in ("ing", "ed", "es", "s", "ly", "e"):  # "es" before "s": one is taken
        if low.endswith(ending) and len(low) - len(ending) > 2:
            return low[: -len(ending)][:MAX_STEM]
    return low[:MAX_STEM]


_PART = lazy_regex(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+")
_EMPTY = word_set(
    "the a an of to in is was be for and or by with that this you your it on at from as are has have had will which its"
)
