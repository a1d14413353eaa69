"""Signs in the output of a tool: that it failed whatever its status says, and that it says why."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex

_SIGNS = (
    "Traceback (most",
    "rror:",
    "rror[",
    "rror TS",
    "xception",
    " failed",
    "FAILED",
    "FAILURE",
    "failing",
    "not found",
    "ERR!",
    "fatal:",
    "panic: ",
    "make: ***",
    "No such file",
    "denied",
)
_FAILURE = lazy_regex(
    r"^Traceback \(most recent call last\)|^(?:[\w.]{0,60}\.)?[A-Z]\w{0,60}(?:Error|Exception)(?:$|: )"
    r"|\b[1-9]\d* (?:tests? )?fail(?:ed|ing|ures?)\b"
    r"|^(?:FAILED|E  )|command not found|^(?:bash|sh|zsh|/bin/\w{2,4}): .{0,200}(?:No such file|not found|denied)"
    r"|^npm (?:ERR!|error)|^[Ee]rror(?:\[E\d+\])?: |error TS\d|^fatal: |^make: \*\*\*|BUILD FAIL|^panic: |^ERROR:? "
    r"|^\S{1,200}:\d+(?::\d+)?: (?:fatal )?error: |No module named ",
    re.MULTILINE,
)


def shows_failure(text: str) -> bool:
    """Return whether what a command printed at its ends shows that it failed, whatever its exit status was.

    Examples
    --------
    >>> shows_failure("=== 2 failed, 3 passed in 0.1s ==="), shows_failure("=== 5 passed, 0 failed ===")
    (True, False)
    """
    ends = text if len(text) <= 3_000 else f"{text[:500]}\n{text[-2500:]}"
    return any(map(ends.__contains__, _SIGNS)) and _FAILURE.search(ends) is not None


_TAGS = lazy_regex(
    r"<[^<>\n]{1,40}>|\b(?:exit|return|status|code|error|exited|with|process|command|failed)\b", re.IGNORECASE
)
_REFUSED = lazy_regex(
    r"\buser (?:doesn't want|does not want|has |was )?(?:rejected|denied|declined|cancell?ed|interrupted|to proceed)"
    r"|doesn't want to (?:proceed|take this)|interrupted by (?:the )?user|KeyboardInterrupt",
    re.IGNORECASE,
)


def says_something(text: str) -> bool:
    """Return whether an error says what went wrong, and not only that it did, or that a person stopped it."""
    start = text[:1_000]
    return any(map(str.isalpha, _TAGS.sub("", start))) and _REFUSED.search(start) is None
