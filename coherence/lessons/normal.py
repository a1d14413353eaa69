"""The normal form of an error, which stays the same when it comes back with other names, paths and numbers."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import check_text, clean
from coherence.core.words import word_set
from coherence.lessons.clean import clean_lines
from coherence.lessons.error_phrases import reword
from coherence.lessons.headlines import find_headline
from coherence.lessons.is_prose import is_prose
from coherence.lessons.masks import Masked, mask
from coherence.lessons.stems import stems_of

FORM = 2
"""Number of the normal form, kept with every lesson: to be raised whenever equal errors get another one."""

MAX_TEMPLATE = 300
MAX_EMBEDDED = 400
MAX_HEADLINE = 360
"""Characters of a headline that are masked."""

MAX_WORDS = 64

KEYS = frozenset({"name", "path", "url", "address"})
"""Kinds of slots that tell an error from its siblings; numbers, ids, times and versions change by themselves."""


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
    """Whether these are a human's words about an error, and no error text."""
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
    template = "<name>" if masked.template == "<path>" else masked.template
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
    words = set(_WORD.findall(_PLACEHOLDER.sub(" ", message).lower())) - _EMPTY_WORDS
    return len(words) + bool(exception) + any(kind in _TELLING_KINDS for kind, _ in slots) < 2


_TELLING_KINDS = frozenset({"name", "path", "version", "url"})
_WORD = lazy_regex(r"[^\W\d_]{2,}")
_PLACEHOLDER = lazy_regex(r"<\w+>")
_EMPTY_WORDS = word_set(
    "error errors failed failure fail command exit exited code status with test tests assertion exception unknown "
    "internal an a the occurred process returned non zero build run script went wrong something server by from in at "
    "of to on is was and or returncode makefile make all line for task step job finished stopped signal warning fatal"
)
