"""How much a line of an error's output tells, and the lines that tell most."""

from __future__ import annotations

import re
from functools import lru_cache

from coherence.core.lazy import lazy_regex
from coherence.lessons.clean import ErrorLine, strip_prefixes
from coherence.lessons.error_words import CODE_PARTS, TELLING, VAGUE, WRAPPERS
from coherence.lessons.slot_kinds import CAMEL

MAX_SCORED = 120
"""Lines that are weighed; of more, those that hold a telling word come first."""

MAX_RATED, MAX_TOLD = 12, 2
"""Lines that hold a telling word, from both ends, that are compared as second to the headline, and that are taken."""

FAR = 80
"""Lines, from both ends, among which these are looked for."""

NAMED, LEVELLED, LOCATED, SAID, TOLD, VAGUELY, WRAPPING, NOTHING, USUAL, FRAME = 7, 6, 5, 4, 3, 2, 1, 0, -1, -2
"""How much a line says: an exception's name; an error level with a telling word; a place with one; a telling word
alone; a level alone; a vague word such as "failed" alone; a wrapper, which says only that something failed; nothing;
that work goes on as usual; and least a stack frame or a command that was echoed."""


def telling_lines(lines: list[str], headline: str) -> list[str]:
    """Return the most telling lines without prefixes, beside the headline, at most two, the most telling first.

    Examples
    --------
    >>> telling_lines(["make: *** [all] Error 2", "x.c:3:5: error: unknown type name 'u8'", "error: 7 bad"], "7 bad")
    ["unknown type name 'u8'"]
    """
    near = range(len(lines)) if len(lines) <= FAR else [*range(FAR // 2), *range(len(lines) - FAR // 2, len(lines))]
    found = [at for at in near if _holds_sign(lines[at])]
    found = found if len(found) <= MAX_RATED else found[: MAX_RATED // 2] + found[-MAX_RATED // 2 :]
    told: list[tuple[int, str]] = []
    for at in found:
        line, strength = rated(lines[at])
        if strength >= VAGUELY and line.text not in headline and headline not in line.text:
            told.append((-strength, line.text))
    told.sort(key=lambda each: each[0])
    return list(dict.fromkeys(text for _, text in told))[:MAX_TOLD]


@lru_cache(512)
def rated(written: str) -> tuple[ErrorLine, int]:
    """Return a line without its prefixes, and how much it says, from `FRAME` to `NAMED`."""
    line = strip_prefixes(written)
    return line, _strength(written, line)


def weighed(lines: list[str]) -> list[int]:
    """Return which lines are weighed: all, or those that hold a telling word."""
    if len(lines) <= MAX_SCORED:
        return list(range(len(lines)))
    found = [at for at, line in enumerate(lines) if _holds_sign(line) or any(map(line.lower().__contains__, TELLING))]
    half = MAX_SCORED // 2
    return found[:half] + found[half:][-half:] or [0]


def _holds_sign(line: str) -> bool:
    return any(map(line.__contains__, _SIGNS))


def _strength(written: str, line: ErrorLine) -> int:
    text = line.text
    if STACK_FRAME.match(text) or SOURCE.match(written) or _ECHOED.match(text):
        return FRAME
    low = text.lower()
    named = EXCEPTION.match(text) or (_NAMED_LAST.search(text) if text.endswith(")") else None)
    telling = any(map(low.__contains__, TELLING))
    vague = telling or any(map(low.__contains__, VAGUE))
    if _FINE.match(text) or (_may_be_calm(low) and _CALM.search(low)):
        return USUAL
    wrapping = _WRAPPER.match(text) is not None or any(map(low.__contains__, WRAPPERS))
    said = vague or named or line.error or _gives_reason(text) or _names_code(text) or _says_vaguely(text)
    if wrapping or not (said or _FIELD.match(text)):  # most lines of a log
        return WRAPPING if wrapping else _quiet(written, line)
    if any(map(low.__contains__, _COUNTED)) and _COUNTS.search(low):
        return WRAPPING
    telling = telling and _TELLING.search(low) is not None
    if line.warning and not line.error:
        return VAGUELY if _names_code(text) else WRAPPING if telling and not line.place else _quiet(written, line)
    if named:
        return SAID if "Warning" in named[0] else NAMED
    if _FIELD.match(text):
        return SAID
    if line.error:
        if " " not in text and _PATH.fullmatch(text):
            return NOTHING
        return NAMED if line.place else LEVELLED if telling else TOLD
    vague = telling or (vague and _VAGUE.search(low) is not None)
    if line.place and vague:
        return LOCATED
    if telling or _gives_reason(text) or _names_code(text) or _NUMBERED.match(text):
        return SAID
    return VAGUELY if vague or _says_vaguely(text) else NOTHING


def _may_be_calm(low: str) -> bool:
    """Return whether a line holds what :data:`_CALM` takes longer to look for."""
    return low.endswith(_CALM_ENDS) or any(map(low.__contains__, _CALM_PARTS))


def _quiet(written: str, line: ErrorLine) -> int:
    """Return how much a line without any telling word says: one that a log has at a low level least."""
    return USUAL if line.warning and not _WARNED.match(written) else NOTHING


def _gives_reason(text: str) -> bool:
    return ("o " in text or CAMEL.search(text) is not None) and _REASON.search(text) is not None


def _says_vaguely(text: str) -> bool:
    return _PROGRAM_SAYS.match(text) is not None or ("BackOff" in text and _RETRIED.search(text) is not None)


def _names_code(text: str) -> bool:
    """Return whether a code in capitals, such as ``UNKNOWN_TOPIC``, says what went wrong."""
    return "_" in text and any(CODE_PARTS.search(code) for code in _CAPITALS.findall(text))


_SIGNS = (
    "rror",
    "RROR",
    "xception",
    "ail",
    "FAIL",
    "annot",
    "ould not",
    "nable",
    "enied",
    "efused",
    "imed out",
    "ot found",
    "o such",
    "nvalid",
    "anic",
    "atal",
    "FATAL",
    "issing",
    "ndefined",
    "nknown",
    "nexpected",
    "onflict",
    "xpected",
)
"""Parts of the lines that tell most, in any case of their first letter: looked for before a line is rated beside the
headline."""
EXCEPTION = lazy_regex(
    r"(?:[A-Za-z_$][\w$]{0,80}(?:\.|::|\\|/)){0,12}[A-Z][\w$]{0,100}?"
    r"(?:Error|Exception|Warning|Fault|Interrupt|Exit|Timeout|NotFound|Failure|Failed|Panic|DoesNotExist"
    r"|Overflow|Iteration|Mismatch|Denied|NotReady|Exceeded|Unavailable|Conflict|Violation|Unauthorized|Forbidden)"
    r"(?:\s?\[\w{1,60}\]|\s\(\w{1,60}\))?(?::\s|:?$|\s-\s|\s\($)"
    r"|(?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{1,80}:\s"
    r"|[A-Z]{1,6}\d{3,6}:\s|error(?:\[[A-Z]\d{2,5}\]|\s[A-Z]{1,6}\d{2,6})\s?:|(?:panic|fatal error):\s"
    r"|Error\s\[\w{1,60}\]:"
    r"|(?:Syntax|Type|Reference|Range|Key|Value)Error\b"
)
_NAMED_LAST = lazy_regex(r"\s\((?:[A-Z]\w{0,60}::){0,4}[A-Z]\w{1,60}(?:Error|Exception|NotFound)\)$")
"""The exception's name as Ruby writes it, after the message."""
STACK_FRAME = lazy_regex(
    r"at \S{1,300}(?:\(| \(|:\d+)|at (?:async |new )?[\w.$<>\[\] ]{1,120} \(|File \"|\.\.\. \d+ (?:more|common)"
    r"|goroutine \d"
    r"|#\d+ |from \S{1,300}:\d+:in |(?:\S{1,300}:\d+:)?in [`'][^`'\n]{1,120}'$|\^+$|~+\^|[-=_*~.]{5,}"
    r"|\S{1,200}:\d+ \+0x|Require stack|node:internal|throw |raise "
    r"|\d+:\s+0x|stack backtrace|note: run with|A complete log of this run"
)
SOURCE = lazy_regex(r"\s*(?:>?\s*\d{1,6}\s*\||\|)\s|\s+(?:throw|raise|return|if|import|from|assert)\b")
_WRAPPER = lazy_regex(
    r"FAIL(?:ED)?\b|in \S+(?: [\d:,-]+)?$|Completed \d|\S+@\S+ \w+: |(?:file|path|cwd|command|errno|syscall"
    r"|code|signal) \S+$|collecting \S+|--- FAIL|code [A-Z]\w+$|errno:? -?\d+|syscall:? |\d+ (?:errors?"
    r"|failed)\b|Found \d+ errors?|=+ |[^{]{0,200}=>$|\d{1,2}\. |Failures?(?:/Error)?:|ERRORS?!*$"
    r"|[Ss]ee (?:also )?https?:"
    r"|(?:Build|BUILD|Task|Job|Step|Tests?|Deploy\w{0,9}|deploy\w{0,9}|Pipeline|Stage|Finished|failed)\b.{0,60}\b"
    r"(?:FAILED|FAILURE|failed|with \d+)\W*$"
)
_ECHOED = lazy_regex(r"\++ (?=[\w./~\"'$({\[-])|[$%] \S|[#:] (?:cd|export|set) |\[command\]")
"""A command that a shell or a CI runner repeats before it runs it."""
_FINE = lazy_regex(r"(?:Successfully|Deprecated|Deprecation|DEPRECATED)\b|[✓✔√]|(?:--- )?PASS(?:ED)?\b|ok\b|=== ")
_CALM = lazy_regex(
    r"(?:\.\.\.|:) ?(?:yes|no|done|ok|cached)$|\.\.\. ?not found$"
    r"|\b(?:level|lvl|severity)[\"']?\s?[=:]\s?[\"']?(?:info|debug|trace|notice|warn)"
    r"|[.,;] (?:installing|creating|skipping|ignoring|using|continuing|retrying)\b[^.]{0,40}\.*$"
    r"|\balready (?:the newest|up[ -]to[ -]date|installed|satisfied)"
)
"""What tells that all is well, or is said at a low log level."""
_CALM_ENDS = ("yes", "no", "done", "ok", "cached", "not found")
_CALM_PARTS = ("level", "lvl", "severity", ". ", ", ", "; ", "already ", "\n")
_COUNTS = lazy_regex(
    r"(?<![\w.:/])\d+ (?:errors?|failed|failures?|failing|warnings?)\b(?! for\b)"
    r"|\b(?:failed|failures|errors)\s?[=:]\s?\d|\b(?:use|run|rerun|re-run|running)\b.{0,30} -{1,2}\w[\w-]* "
    r"(?:option |switch |flag )?(?:for|to)\b"
)
"""How many failed, and which option would tell more."""
_COUNTED = (" error", " fail", " warning", "failed", "failures", "errors", " -")
"""Parts of what this finds."""
_TELLING = lazy_regex("(?<![\\w/.=-])(?:" + "|".join(map(re.escape, TELLING)) + ")(?![=/_])(?!-\\w)")
_VAGUE = lazy_regex(r"(?<![\w/.=-])(?:" + "|".join(map(re.escape, VAGUE)) + r")(?:s|d|ed|ing|ure|ures)?(?![\w=/-])")
_PATH = lazy_regex(r"[\w~.-]{0,200}[/\\][^\s:]{0,400}")
_REASON = lazy_regex(
    r"\b[Nn]o (?:\w+ ){1,3}(?:to|in|for|of|matching|found|available|was|were|provided|specified|named|with)\b"
    r"|(?<![\w/.-])(?:Failed|Err|BackOff|OOM|Insufficient|Unhealthy|Invalid)[A-Z][a-z]\w+(?![\w./(])"
    r"|(?<![\w/.-])[A-Z]\w{1,40}(?<=[a-zM])(?:Killed|Failed|Denied|NotFound|NotReady|Exceeded|Refused"
    r"|Expired|Unavailable|Unhealthy|Lost|Evicted|Rejected|Conflict|Mismatch)(?![\w./(])"
)
"""What is not there, or a reason in one word, as Kubernetes and clouds give it."""
_CAPITALS = lazy_regex(r"(?<![\w./$-])[A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,8}(?![\w./=:-])")
_NUMBERED = lazy_regex(r"[a-z][\w.+-]{0,30}: \(\d{1,4}\) \w")
"""A program's message with its number, as curl writes it."""
_PROGRAM_SAYS = lazy_regex(rf"{_NUMBERED.pattern}|[a-z][\w.+-]{{0,30}}: [^:\n]{{1,120}}: [A-Z][a-z]{{1,20}} [a-z]")
"""A program, perhaps its subject, and the reason, as ``perror`` prints it."""
_RETRIED = lazy_regex(r"(?<![\w/.-])[A-Z]\w{0,40}[a-z]BackOff(?![\w./(])")
"""That something keeps failing, as Kubernetes says it."""
_WARNED = lazy_regex(r"\s*warning:", re.IGNORECASE)
_FIELD = lazy_regex(r"[\"'](?:message|error|detail|msg|error_description)[\"']\s?:\s?[\"']")
