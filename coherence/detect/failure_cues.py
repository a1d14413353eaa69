"""Failures that no flag tells of: what a result says that its call failed, or found nothing."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.core.words import holds, may_hold
from coherence.detect.read_once import read_once

MAX_CHARS = 4_000
"""Characters of a result that are looked at, half from each end."""

LONG = 4_000
"""A result of more characters shows something; that it begins like a failure is half an argument."""

FAILED = 0.6
"""A failure from here on."""

_BEGINNING = lazy_regex(
    r"\s{0,20}(?:[\w.]{1,80}(?:Error|Exception|Failure)\b\s?[:(\n]"
    r"|(?:error|fatal|panic|failed|failure|err|abort(?:ed)?)\b\s{0,3}[:!\-\[(]"
    r"|traceback \(most |http(?:/[\d.]{1,3})?\s{1,3}[45]\d\d\b"
    r"|[45]\d\d\s(?:bad|unauth|payment|forbidden|not|method|conflict|gone|too|internal|service|gateway|client|server|err)"
    r"|(?:ba|z)?sh: |/bin/\w{2,5}: |usage:\s|(?:permission|access) denied|command not found|no such file"
    r"|timed? ?out\b|connection (?:refused|reset|closed|timed)|unable to |cannot |could not |invalid\b"
    r"|unauthori[sz]ed|forbidden\b|not found\b|segmentation fault|killed\b|caused by|exception in "
    r"|internal server error|bad (?:gateway|request)\b|service unavailable|gateway time-?out|too many requests"
    r"|failed to\b|\[(?:error|fatal)\]|(?:api|http|mcp|rpc|sql) error\b|file does(?: not|n't) exist"
    r"|no (?:such )?(?:element|node|link|button|tab|window|column|entity|device|route|handler|method)\b"
    r"|(?:unknown|unrecogni[sz]ed|unsupported) (?:verb|command|subcommand|option|switch|argument|parameter|flag|tool)\b"
    r"|[45]\d\d [-–—:] |not (?:started|allowed|permitted|possible|available|supported|installed|valid|connected"
    r"|executed|saved|sent|applied|authenticated)\b"
    r"|[\w.:/-]{1,60}(?: [\w.:/-]{1,40}){0,2}: no such \w"
    r"|error (?:from|during|while|response|parsing|reading|loading|opening|connecting|calling|executing|running)\b"
    r"|an? (?:\w{1,20} )?error (?:has )?occurred"
    r"|(?:the |tool )?(?:command|request|call|operation|query|upload|download|build|compilation|installation|connection"
    r"|authentication|login|deployment|execution|process) (?:failed|timed out|was (?:denied|refused|rejected))\b)",
    re.IGNORECASE,
)
_EXIT = lazy_regex(
    r"<returncode>\s{0,5}(-?\d{1,5})\s{0,5}</returncode>"
    r"|\b(?:exit(?:ed)?(?: with)?|returned(?: non-?zero)?(?: exit)?) (?:code|status)[ :=]{1,3}(-?\d{1,5})"
    r"(?![\w%]| (?:if|when|where|or|and|is|means|for|on|unless)\b)"
    r"|^(?:\w{1,20} ){0,2}exit(?:ed with|[:=]) ?(-?\d{1,5})$"
    r"|\"(?:exit_?code|return_?code|rc)\"\s{0,3}:\s{0,3}(-?\d{1,5})",
    re.IGNORECASE | re.MULTILINE,
)
"""Not what somebody writes about codes: ``exits with status 1 if …``, ``exit 1`` in a script, ``returned 5 rows``."""
_FIELD = lazy_regex(
    r'"(?:error|errors|err|error_?(?:code|message|description)|fault)"\s{0,3}:\s{0,3}'
    r'(?!null|false|none|0\b|""|\[\s{0,3}\]|\{\s{0,3}\})\S'
    r'|"(?:status|state|result|outcome)"\s{0,3}:\s{0,3}"?(?:error|failed|failure|fail|[45]\d\d)(?="|\s{0,9}[,}])'
    r'|"(?:success|ok)"\s{0,3}:\s{0,3}false|"(?:http_?)?(?:code|status_?code)"\s{0,3}:\s{0,3}"?[45]\d\d\b'
    r'|"is_?error"\s{0,3}:\s{0,3}true'
    r'|"(?:message|detail|msg)"\s{0,3}:\s{0,3}"'
    r"(?:internal server|unauthori[sz]ed|forbidden|not (?:found|auth)|access denied)"
    r'|"(?:__type|exception)"\s{0,3}:\s{0,3}"[\w.#:/]{0,120}(?:Exception|Error|Fault)"',
    re.IGNORECASE,
)
_DATA = lazy_regex(r"(?:[\w ().-]{1,40}: {1,3})?[{\[]")
"""Beginning of a line that holds data, after a few words at most; what is quoted in a sentence or a program is none."""
_PAGE = lazy_regex(r"<(?:title|h1)>\s{0,9}(?:error )?[45]\d\d\b|<(?:tool_use_)?error>", re.IGNORECASE)
_LINE = lazy_regex(
    r"\n(?:Traceback \(most recent call last\)|(?:Uncaught )?[\w.]{1,80}(?:Error|Exception)(?::|$)|(?:ba|z)?sh: "
    r"|npm (?:ERR!|error )|ERROR[: ]|[Ee]rror(?:\[\w{1,10}\]|(?: [A-Z]{1,6})? ?-?\d{1,6})?: |fatal(?: error)?: "
    r"|curl: \(\d|thread '[^'\n]{1,80}' panicked|CONFLICT \(|CMake Error|ORA-\d{5}: |Msg \d{1,6}, Level "
    r"|make(?:\[\d{1,3}\])?: \*\*\*|panic: |E: "
    r"|(?:\w{1,20}:)?[\w./\\+@-]{1,200}(?:[:(]\d{1,6}(?:[:,]\d{1,6})?\)?)?(?:: {1,3}| - )"
    r"(?:fatal )?(?:error|ERROR)\b[: ]"
    r"|[\w./-]{1,200}\.go:\d{1,6}:\d{1,6}: (?=[a-z\"])"  # the compiler of Go prints no "error:"
    # samtools and others of htslib
    r"|\[E::\w{1,60}\] |[\w./-]{1,60}: (?:cannot|can't|could(?: not|n't)|unable to|failed to) )",
    re.MULTILINE,
)
"""Lines that only failing programs print, each behind the end of another one: a sign that is quickly found."""
_UNKNOWN = lazy_regex(r": command not found$|is not recognized as (?:an internal|the name)", re.MULTILINE)
_LAST = lazy_regex(
    r"(?:^|: )(?:permission denied|operation not permitted|no such file or directory|no space left on device"
    r"|read-only file system|connection (?:refused|reset by peer|timed out)|network is unreachable|no route to host"
    r"|name or service not known|access denied)(?: \([\w,-]{1,80}\))?[.!]?$"
    r"|^[\w./-]{1,60}: (?:unable to|cannot|could not|failed to) |\b(?:verification|authentication) failed[.!]?$"
    r"|\b(?:connect|listen|bind|getaddrinfo|spawn|open|read|write|stat|scandir|mkdir|unlink|rename) "
    r"E(?:CONN[A-Z]{5,7}|HOSTUNREACH|TIMEDOUT|NOTFOUND|ADDRINUSE|ACCES|PERM|NOENT|EXIST|PIPE|MFILE|NOSPC)\b",
    re.IGNORECASE,
)
"""A last line with which a program gives up."""
LAST_CHARS = 400
_TESTS = lazy_regex(
    r"\n(?:E {2,8}[\w.]{1,80}(?:Error|Exception|Failed)\b|E {2,8}assert\b|FAILED \S|--- FAIL: "
    r"|FAILED \((?:failures|errors)=|={0,60} ?(?:\d{1,6} \w{1,12}, ){0,4}[1-9]\d{0,5} (?:failed|errors?)\b.{0,60} in \d"
    r"|Tests: {1,9}[1-9]\d{0,5} failed|test result: FAILED|FAIL[\t ]\S)",
    re.MULTILINE,
)
"""A run of tests that fail: part of healthy work, unless nothing comes of it."""
_IDLE = lazy_regex(r"(?:[\W_]|\b(?:the|process|program|command|finished|completed|stdout|stderr)\b)*", re.IGNORECASE)
"""Words and signs beside an exit code where the program has said nothing."""
_IN_EXIT = ("exit", "return", '"rc"')
_IN_LINE = (
    *("Error", "Exception", "ERR", "error", "sh: ", "Traceback", "fatal: ", "make", "panic: ", "E: "),
    *("curl: (", " panicked", "CONFLICT (", "ORA-", "Msg ", ".go:"),
    *("[E::", ": cannot ", ": can't ", ": could", ": unable ", ": failed "),
)
_IN_UNKNOWN = (": command not", "is not recognized as")
_IN_LAST = (
    *("denied", "not permitted", "no such file", "no space", "read-only", "connection", "network", "no route"),
    *("not known", "unable to", "cannot", "could not", "failed", "econn", "ehostunreach", "etimedout", "enotfound"),
    *("eaddrinuse", "eacces", "eperm", "enoent", "eexist", "epipe", "emfile", "enospc"),
)
_IN_TESTS = ("FAIL", "failed", "error", "E  ")
"""One of these is in any text that has such a code or line: asked first, for that takes a thirtieth of the time."""
_MARKS = lazy_regex(r"</?(?:returncode|output)>")
_NOTHING = lazy_regex(
    r"\s{0,50}(?:\[\s{0,9}\]|\{\s{0,9}\}|null|none|0|empty|\"\"|''"
    r"|no (?:results?|match(?:es)?|data|entries|records?|rows|hits|output|items|files?)\b.{0,80}"
    r"|nothing (?:found|matched|here)\b.{0,40}|0 (?:results?|matches|rows|hits|items|records|entries)\b.{0,60}"
    r"|\(?(?:empty|no output)\)?|.{0,60}\bnot found\b.{0,60}"
    r"|\{[^{}]{0,80}(?:\[\s{0,9}\]|:\s{0,3}0\b|null)[^{}]{0,60}\})?\s{0,50}[.!]?\s{0,50}",
    re.IGNORECASE,
)
_NO_HITS = lazy_regex(
    r"\s{0,20}(?:(?:your|the) )?(?:search|query|filter)\b[^\n]{0,120}\b(?:gave|returned|found|matched|has|had|yielded) "
    r"(?:no|0|nothing|zero)\b"
    r"|[^\n]{0,60}\bmatched (?:0|no) (?:nodes?|elements?|rows?|files?|lines?)\b"
    r"|\s{0,20}(?:0|no|zero) (?:results?|match(?:es)?|hits|records?|entries|items|documents?|listings?)\b(?! of [1-9])",
    re.IGNORECASE,
)
"""Beginning of a result that found nothing, whatever advice follows."""
MAX_NOTHING = 400
"""A longer result is something."""


@read_once
def failure_of(text: str, *, flagged: bool = False, reads: bool = False) -> float:
    r"""Return how surely a result says that its call failed, in [0, 1].

    Looked at are how the text begins, exit codes, fields such as ``"error"`` and ``"statusCode"``, and lines that only
    failing programs print. A file that is read may hold such lines, and a search that exits with 1 found nothing.
    A flag makes it 1, unless an exit code or the lines of failing tests say what it was set for: hosts flag every
    command that does not exit with 0.

    Parameters
    ----------
    text : str
        The result.
    flagged : bool
        Whether the call is marked as failed.
    reads : bool
        Whether the call shows a file: lines inside it are what somebody wrote there.

    Examples
    --------
    >>> [failure_of(text) for text in ("HTTP 503 Service Unavailable", '{"error": "no such order"}', "3 errors fixed")]
    [1.0, 1.0, 0.0]
    >>> failure_of("E       assert 200 == 401\\nFAILED tests/test_login.py::test_ok\\n1 failed in 0.31s")
    0.6
    >>> log = "def test():\n    pass\nERROR: not what it seems"
    >>> failure_of(log), failure_of(log, reads=True)
    (0.9, 0.0)
    >>> failure_of("Exit code 1", flagged=True), failure_of("no such order", flagged=True)
    (0.0, 1.0)
    """
    told = ends(text.strip(), MAX_CHARS, "\n")
    if not told:
        return float(flagged)
    code = _exit_code(told, 0, 300)
    if code is None and len(told) > 300:
        code = _exit_code(told, len(told) - 300, len(told))
    # A host puts an exit code first; further on, the file that is shown speaks of one.
    if code is not None and reads and code.start() > 0:
        code = None
    if code is not None and (value := next(group for group in code.groups() if group is not None)) != "0":
        body = _MARKS.sub("", told[: code.start()] + told[code.end() :]).strip()
        silent = _IDLE.fullmatch(body) is not None or finds_nothing(body)
        if value == "1":  # what a search says that finds nothing
            return 0.0 if silent else 1.0 if _gives_up(body) else FAILED
        return FAILED if silent else 1.0
    if flagged:
        return FAILED if _shows_tests(told) and not _gives_up(told) else 1.0
    if code is not None and code.start() == 0:
        told = _MARKS.sub("", told[code.end() :]).strip()
    if _BEGINNING.match(told):
        return 1.0 if len(text) < LONG else 0.4
    if _has_error_field(told) or (not reads and told.startswith("<") and _PAGE.search(told[:1500])):
        return 1.0 if len(text) < 1500 else 0.5
    if reads:
        return 0.0
    if _gives_up(told):
        return 0.9 if len(text) < 3000 else 0.4
    return FAILED if _shows_tests(told) else 0.0


def _shows_tests(told: str) -> bool:
    """Tell whether some line is one of tests that fail."""
    return holds(told, _IN_TESTS) and _TESTS.search("\n" + told) is not None


def _exit_code(told: str, begin: int, end: int) -> re.Match[str] | None:
    """Find an exit code in a part of a text."""
    return _EXIT.search(told[:end], begin) if may_hold(told[begin:end], _IN_EXIT) else None


def _gives_up(told: str) -> bool:
    """Tell whether some line is one that only failing programs print, or the last one says why it is the last."""
    if holds(told, _IN_LINE) and _LINE.search("\n" + told) is not None:
        return True
    if holds(told, _IN_UNKNOWN) and _UNKNOWN.search(told) is not None:
        return True
    last = told[told.rfind("\n") + 1 :][-LAST_CHARS:]
    return may_hold(last, _IN_LAST) and _LAST.search(last) is not None


def _has_error_field(told: str) -> bool:
    """Tell whether data, that is the whole text or a line of it, has a field that says failure."""
    for found in _FIELD.finditer(told[:1500]) if '"' in told else ():
        line = told[told.rfind("\n", 0, found.start()) + 1 : found.start()]
        if told.startswith(("{", "[")) or _DATA.match(line):
            return True
    return False


@read_once
def finds_nothing(text: str) -> bool:
    """Tell whether a result is empty, or says that there is nothing.

    Examples
    --------
    >>> [finds_nothing(text) for text in ("[]", "No matches found.", '{"results": [], "total": 0}', "3 matches")]
    [True, True, True, False]
    """
    if len(text) >= MAX_NOTHING:
        return False
    if _NO_HITS.match(text):
        return True
    bare = _MARKS.sub("", text) if "<" in text else text
    code = _exit_code(text, 0, len(text))
    if code is not None and code[1] in ("0", "1"):
        bare = _MARKS.sub("", text[code.end() :])
    elif code is not None and "1" in code.groups() and _IDLE.fullmatch(text[: code.start()] + text[code.end() :]):
        return True  # what a search says where the host tells its exit code in words
    return _NOTHING.fullmatch(bare) is not None


_PENDING = lazy_regex(
    r"\b(?:pending|queued|in[ _-]?progress|not (?:yet|ready)|still (?:running|building|waiting|processing)"
    r"|(?:is|status\W{1,5})\s?(?:running|processing|building|waiting|starting|scheduled))\b",
    re.IGNORECASE,
)
_IN_PENDING = (
    *("pending", "queued", "progress", "yet", "ready", "still", "running", "processing", "building", "waiting"),
    *("starting", "scheduled"),
)
_GAUGE = lazy_regex(
    r"[^\d\n]{0,30}[+-]?\d{1,12}(?:[.,]\d{1,6})?\s{0,2}"
    r"(?:°|º|%|[CFKVAWN]\b|[kM]?(?:Pa|W|V|Hz|bar)\b|degrees|celsius|percent|ppm|rpm|lux|dB|psi|km/h|m/s|mbar)[^\d\n]{0,12}"
)


def must_wait(text: str) -> bool:
    """Tell whether a result is one that is asked for again on purpose: something is not ready, or a gauge is read.

    Examples
    --------
    >>> [must_wait(text) for text in ('{"job": 7, "status": "pending"}', "21.5 °C", "No such file")]
    [True, True, False]
    """
    if len(text) >= MAX_NOTHING:
        return False
    pending = may_hold(text, _IN_PENDING) and _PENDING.search(text) is not None
    return pending or _GAUGE.fullmatch(text) is not None
