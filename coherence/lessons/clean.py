"""Error output made plain: bounded, without colours and control characters, without what loggers write before lines."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.lessons.tokens import PLACE, base_of, has_extension

HEAD, TAIL = 8_000, 24_000
"""Characters from a text's two ends that are looked at: Java, Node and Go say first what went wrong, Python last."""

MAX_LESSON = 4_000
"""Characters of an error that a lesson keeps; of longer ones the ends and the lines that say what went wrong."""

MAX_LINES = 400
"""Lines from the two ends that are looked at; a quarter of them from the beginning."""

MAX_COLUMNS = 600
"""Characters of a line that are looked at."""


class ErrorLine(NamedTuple):
    """One line without its prefixes."""

    text: str
    error: bool
    """True if a prefix said that this is an error."""
    warning: bool
    """True if a prefix said that this is less than an error."""
    place: str
    """The source file that a prefix named, without line and column; empty if there was none."""


def clean_lines(text: str) -> list[str]:
    r"""Return the lines of a text that are looked at, without blank ones, colours and control characters.

    Examples
    --------
    >>> clean_lines("\x1b[31mError\x1b[0m: no\r\n\n  at f (a.js:1)\0\n")
    ['Error: no', '  at f (a.js:1)']
    """
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n{text[-TAIL:]}"
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate can be neither kept nor digested
    if "\x1b" in text:
        text = _ESCAPE.sub("", text).replace("\x1b", " ")  # a cut goes through a sequence now and then
    text = _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    if "\n" not in text and text.count("\\n") > 1:  # a log that was put into JSON
        text = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    lines = [line[:MAX_COLUMNS].rstrip() for line in text.split("\n") if line and not line.isspace()]
    if len(lines) > MAX_LINES:
        lines = lines[: MAX_LINES // 4] + lines[-MAX_LINES * 3 // 4 :]
    return lines


@lru_cache(512)
def strip_prefixes(line: str) -> ErrorLine:
    """Take from a line what loggers, test runners and compilers write before the message.

    Examples
    --------
    >>> strip_prefixes("2026-01-02 10:00:00,123 - ERROR - disk full")
    ErrorLine(text='disk full', error=True, warning=False, place='')
    >>> strip_prefixes("src/app.c:3:5: error: expected ';'")
    ErrorLine(text="expected ';'", error=True, warning=False, place='src/app.c')
    """
    text, error, warning, place = line.strip(), False, False, ""
    for _ in range(8):  # time, host, logger, level, place and more stand behind each other
        found = _PREFIX.match(text)
        if found is None:
            located = PLACE.match(text) if not place and (":" in text or "(" in text) else None
            if located is None or not (has_extension(located[1]) or base_of(located[1]) in _NAMED_FILES):
                break
            place, found = located[1], located
        elif found.lastgroup == "error":
            error = True
        elif found.lastgroup == "warning":
            warning = True
        if found.end() >= len(text):  # nothing but prefixes: whatever its level, the line says nothing
            return ErrorLine("", False, False, "")
        text = text[found.end() :].lstrip()
    return ErrorLine(text, error, warning, place)


_NAMED_FILES = word_set("Makefile GNUmakefile Dockerfile Jenkinsfile Gemfile Rakefile CMakeLists.txt")

_ESCAPE = lazy_regex(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[@-Z\\^_])")
_CONTROL = lazy_regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u202a-\u202e\ufeff]")

_PREFIX = lazy_regex(
    r"""
    (?P<error>
        (?-i:Warning)\s{2,}[A-Z]\w{2,60}\s{2,}\S[^\n]{0,40}?\s{2,}[\w.,-]{1,60}\s{2,}
      | npm\ (?:ERR!|error)(?:\s+|$) | ERR!\s | \#\#\[error\]\s* | ::error[^:\n]{0,200}::\s*
      | \#\d{1,4}\ (?:\[[^\]]{1,40}\]\ )?(?:\d+\.\d+\ )?(?=ERROR)
      | (?-i:E)\ {2,}(?=\S)
      | (?-i:ERROR|CRITICAL|FATAL):(?:[\w.-]{1,80}):\s*
      | (?-i:ERROR|FATAL|SEVERE)\s+\d+\s+---\s\[[^\]]{0,60}\]\ \S{1,100}\s*:\s
      | (?-i:FAILED|ERROR)\ \S{1,300}\.py(?:::\S{1,300})?\ -[ ]
      | \[?(?:PHP\ )?(?:fatal\ error|parse\ error|runtime\ error|compile\ error|error|fatal|critical|crit|emerg|severe
            |alert|failure|fehler)\]?(?:\s*:\s+|\s+-\s+|(?<=\])\s+)
      | (?-i:ERROR|FATAL|CRITICAL|SEVERE|PANIC|ERR)\s+(?=[^\W\d]|\[|/)
      | [a-z][\w.+-]{0,30}:\s+(?=(?:fatal\ )?error\b) | (?-i:[A-Z]{4,20}\ (?:FAILED|ERROR)):\s+
      | Error\ response\ from\ \w{1,30}:\s+ | failed\ to\ solve:\s+(?=[^\n]{1,200}:)
      | (?:time|ts|t)="?[^"\s]{1,60}"?\s+level=(?:error|fatal|panic)\s+ | level=(?:error|fatal|panic)\s+
      | (?-i:error)\s+(?=(?-i:[A-Z@"']))
      | (?-i:[A-Z]?[a-z]{2,20}):\s+(?=(?-i:(?:[\w.]{1,80}\.)?[A-Z]\w{1,60}(?:Error|Exception):\s))
      | ==\d{1,9}==\s?(?:ERROR:\s)?
      | Uncaught\ (?:\(in\ promise\)\ )? | Unhandled\ exception(?:\.|:|\ at\ \S{1,80}:)\s+ | unhandled\ rejection:?\s+
      | UnhandledPromiseRejectionWarning:\s+ | \[UnhandledPromiseRejection:\s+
      | Exception\ in\ thread\ "[^"\n]{0,80}"\s+ | Caused\ by:\s+ | e:\s+(?=file:|/|\w)
    )
  | (?P<warning>
        npm\ (?:WARN|warn|notice)\s+ | \#\#\[warning\]\s* | ::(?:warning|notice|debug)[^:\n]{0,200}::\s*
      | \[?(?:warning|warn|info|debug|notice|note|hint|help|trace|advice)\]?(?:\s*:\s+|\s+-\s+|(?<=\])\s+)
      | (?-i:WARNING|INFO|DEBUG):[\w.-]{1,80}:\s* | (?-i:Normal)(?:\s{2,}[^\n]{1,60}?){2}\s{2,}[\w.-]{1,60}\s{2,}
      | (?-i:WARNING|WARN|INFO|DEBUG|TRACE|NOTE):?\s+(?=\S)
    )
  | (?:
        [^\t\n]{1,80}\t[^\t\n]{1,80}\t(?=\d{4}-\d\d-\d\dT)
      | \d{1,6}:\d{1,6}\s+(?:-\s+)?(?=\S) | =\s+note:\s+ | [|>│╷╵┃]\s+
      | \[(?=(?-i:\w{0,40}Error:\s)) | psql:(?=\S+:\d)
      | (?-i:[a-z][\w.-]{0,60}[_-]\d{1,4})\s{1,20}\|\s+ | \S{1,120}\ \((?:local|remote)-exec\):\s+
      | (?!g?make)(?:[\w.-]{1,60}\ )?[a-z][\w./-]{0,60}\[\d{1,8}\]:\s
      | [×✖✘✗❌●⨯•*‼⚠]+\s+ | !\ +(?=\[) | \#\d{1,4}\ (?:\[[^\]]{1,40}\]\ )?(?:\d+\.\d+\ )
      | \[?\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?)?(?:Z|\ ?[+-]\d\d:?\d\d|\ UTC)?\]?[\s:,-]*
      | \[?\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?::|\ -)?\s+
      | (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)?,?\ ?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\ +\d{1,2}
            \ \d\d:\d\d:\d\d\ \S{1,80}\ [\w./-]{1,60}(?:\[\d{1,8}\])?:\s
      | [EWIF]\d{4}\ \d\d:\d\d:\d\d\.\d{1,9}\s+\d{1,8}\ \S{1,80}:\d{1,6}\]\s
      | \[(?!rejected|remote\ rejected)(?-i:[a-z0-9\#])[\w\ ./:@\#-]{0,40}\]:?\s+
      | \(node:\d{1,8}\)\s+ | remote:\s+ | stderr:\s+ | stdout:\s+ | \d{1,9}\#\d{1,9}:\s(?:\*\d{1,9}\s)?
      | [\w.]{1,80}\ -\ (?=(?:ERROR|CRITICAL|FATAL|WARNING)\b) | (?:[a-z]\w{0,40}\.){1,8}[A-Z]\w{0,60}\ -[ ]
      | in\ [`'"‘][^`'"’\n]{0,120}[`'"’]:\s
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
