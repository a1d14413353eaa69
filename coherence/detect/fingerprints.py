"""Fingerprints of a tool call and of its result: small digests that tell repeats from progress.

Both sides are kept twice: *exact*, and *masked*, without what changes by itself. In arguments that is only what no
agent chooses on purpose (UUIDs, timestamps, long hexadecimal ids, the names of temporary places, a display name): two
calls that differ in a number or a file name are two calls. In results every number is masked too, and the numbers are
kept beside it, so that a count which moves one way can be told from one that stands still.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from posixpath import normpath
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import clean, ends
from coherence.core.words import holds, word_set
from coherence.detect.failure_cues import must_wait
from coherence.detect.text_analysis import most_of

Access: TypeAlias = Literal["read", "write", "search", "shell", ""]
"""Deed of a tool to files: show one, change one, look for some, run a command (which may do any of these);
empty = none of these, or unknown."""

ENDS = 10_000
"""Characters of a text, from each end, that are masked (1,000 of a result beyond 32,000); what lies between is compared
as it is."""

MAX_PATHS = 4
MAX_PATH = 1_000
MOST_COUNT = 1e300
"""A number of many digits counts as this: JSON knows no infinity."""

MAX_COUNTS = 8
"""Numbers of a result that are kept; of more than these the first four, the sum of the next, and the last three."""

MAX_LINE = 200
"""Characters of a result's first line that are kept."""

MAX_COMMAND = 2_000
"""Characters of a shell command that are looked through for files and waiting, and of a result, from each end, for what
went wrong."""


class CallTrace(msgspec.Struct, frozen=True):
    """Fingerprint of a call."""

    exact: bytes
    """Digest (8 bytes) of tool and arguments; the order of keys does not matter."""
    masked: bytes
    """The same without ids, timestamps, temporary places, display fields and white space that repeats."""
    access: Access = ""
    paths: tuple[str, ...] = ()
    """Files and folders that the call names, normalised, at most four; of a shell command those of plain reads and
    writes."""
    waits: bool = False
    """True if the call waits for something or asks how far it is."""
    blank: bool = False
    """True if it changes something and its arguments do not say what: the host left them out, and no two such calls are
    known to be the same."""
    page: str = ""
    """Digest of the call without the arguments that choose a page or a range of lines; empty if it has none."""


class ResultTrace(msgspec.Struct, frozen=True):
    """Fingerprint of a result."""

    exact: bytes
    """Digest (8 bytes) of the text and of whether it was an error."""
    masked: bytes
    """The same without ids, timestamps, durations, addresses and numbers."""
    counts: tuple[float, ...] = ()
    """The plain numbers among what was masked, in order: all, or of more than eight the first four, the sum of the next
    and the last three."""
    rate_limited: bool = False
    first_line: str = ""
    """Of an error the line that says most, else the first that is not empty; at most 200 characters."""
    empty: bool = False
    """True if there is nothing but white space."""
    pending: bool = False
    """True if it is asked for again on purpose: work that is not done, or a gauge that is read."""


@lru_cache(maxsize=2)  # a call is asked about by several detectors
def trace_call(tool: str, arguments: bytes) -> CallTrace:
    """Reduce a call to what is kept of it.

    Parameters
    ----------
    tool : str
        The tool's name, of any vendor.
    arguments : bytes
        JSON of any shape. What is no JSON counts as one text.

    Examples
    --------
    >>> one = trace_call("Read", b'{"file_path": "/src/app.py", "offset": 1, "limit": 50}')
    >>> two = trace_call("Read", b'{"limit": 50, "offset": 51, "file_path": "/src/app.py"}')
    >>> one.access, one.paths, one.masked == two.masked, one.page == two.page
    ('read', ('/src/app.py',), False, True)
    """
    raw = bytes(arguments)
    try:
        value: Any = msgspec.json.decode(raw)
        canonical = _ENCODER.encode(value)
    except (ValueError, RecursionError):
        value = raw.decode("utf-8", "replace")
        canonical = raw
    words = name_words(tool)
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {}
    command = command_of(words, value)
    access = _access_of(words, fields, command)
    doing = {key: item for key, item in fields.items() if not _is_display(key, words)}
    kept = canonical if len(doing) == len(fields) else _ENCODER.encode(doing)
    return CallTrace(
        exact=_digest(tool, canonical),
        masked=_digest(tool.lower(), _masked_arguments(kept.decode("utf-8", "replace"), access).encode()),
        access=access,
        paths=_paths_of(fields, command, access),
        waits=_waits(words, fields, command),
        blank=access == "write" and not any(_says(item) for item in fields.values()),
        page=_page_of(tool, fields, command),
    )


def trace_result(text: str, *, error: bool) -> ResultTrace:
    """Reduce a result to what is kept of it.

    Parameters
    ----------
    text : str
        What the tool answered.
    error : bool
        Whether it counts as an error.

    Examples
    --------
    >>> before = trace_result("12 failing in 3.1 s", error=True)
    >>> after = trace_result("11 failing in 2.9 s", error=True)
    >>> before.masked == after.masked, before.counts, after.counts
    (True, (12.0,), (11.0,))
    """
    flag = "error" if error else "result"
    data = text.encode("utf-8", "surrogatepass")
    half = most_of(text, 2 * ENDS) // 2
    parts = _NUMBER.split(_without_ids(ends(text, 2 * half, "\n")))  # text, number, text, …, text
    middle = _digest("", text[half:-half].encode("utf-8", "surrogatepass")) if len(text) > 2 * half else b""
    masked = "#".join(parts[::2]).encode("utf-8", "surrogatepass") + middle
    told = ends(text, 2 * MAX_COMMAND, "\n")
    return ResultTrace(
        exact=_digest(flag, data),
        masked=_digest(flag, masked),
        counts=_counts_of(parts),
        # A long text that is no error may be a page about rate limits.
        rate_limited=(error or len(text) <= MAX_COMMAND) and is_rate_limited(told),
        first_line=_telling_line(told, error),
        empty=not text or text.isspace(),
        pending=not error and must_wait(text),
    )


def _says(argument: object) -> bool:
    return argument not in (None, "", [], {})


def _digest(name: str, data: bytes) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass") + b"\0" + data, digest_size=8).digest()


_ENCODER = msgspec.json.Encoder(order="sorted")

_IS_HEX = bytes(ord("h") if chr(code) in "0123456789abcdefABCDEF" else 32 for code in range(256))
_SPACE = lazy_regex(r" [ ]+|\\[nrt](?: |\\[nrt])*+")
_LONG_HEX = lazy_regex(
    r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    # digits alone are a number, letters alone a word
    r"|(?=[a-fA-F]*[0-9])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{12,})(?![0-9A-Za-z])"
)
_TIMESTAMP = lazy_regex(
    r"[0-9][0-9]{3}(?:"  # a first sign that is no repeat is looked for five times as fast
    r"-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    r"|T[0-9]{6}Z?)"
)
_TEMPORARY = lazy_regex(
    r"(?<![\w.])(?:/private)?/(?:var/)?tmp/[^\s\"'\\/;|&)]*(?:/pytest-[0-9]+)?"
    r"|/var/folders/[^\s\"'\\/]*/[^\s\"'\\/]*(?:/T/[^\s\"'\\/;|&)]*)?"
    r"|(?:%TEMP%|%TMP%|\$TMPDIR|AppData[\\/]{1,2}Local[\\/]{1,2}Temp)[\\/]{1,2}[^\s\"'\\/;|&)]*"
)
_NUMBER = lazy_regex(
    r"([0-9][0-9]*+(?:x[0-9a-fA-F]++|(?:[.:-][0-9]++|,[0-9]{3}(?![0-9]))*+"
    r"(?:\s?(?:[mnuµ]?s|secs?|seconds?|min|minutes?|h|hours?)\b)?))"
)
"""A number with what belongs to it: an address, a date, a time of day, a version, a duration."""


def _without_ids(text: str) -> str:
    # Looking for the rare ids costs more than asking first whether there can be any.
    if b"hhhhhhhhhhhh" in text.encode("utf-8", "replace").translate(_IS_HEX):
        text = _LONG_HEX.sub("<id>", text)
    if any(sign in text for sign in ("tmp/", "/var/folders/", "TMP", "TEMP", "Temp")):
        text = _TEMPORARY.sub("<temporary>", text)
    return text


def _masked_arguments(text: str, access: Access) -> str:
    middle = ""
    if len(text) > 2 * ENDS:
        middle = _digest("", text[ENDS:-ENDS].encode()).hex()
        text = ends(text, 2 * ENDS, "\n")
    if access != "write":  # in what is written, white space may be all that changes
        text = _SPACE.sub(" ", text) if "  " in text or "\\" in text else text
    return f"{_TIMESTAMP.sub('<time>', _without_ids(text))}{middle}"


_WORD = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


DISPLAY = word_set("explanation thought thoughts thinking reasoning rationale reason justification display_name")
"""Arguments that only say why: they differ while the call does the same."""

LABELS = word_set("title description")
"""Arguments that only say why, unless the tool makes or looks for something of that title."""

THINKS = word_set("think thinking thought thoughts reason reasoning reflect plan note")
MAKES = word_set(
    "create add new post send write insert update set open submit publish make book schedule register search get find "
    "list lookup task todo todos agent issue event"
)
WRITES = word_set("write edit editor replace patch multiedit")
READS = word_set("read view cat")
SEARCHES = word_set("search grep glob find ls list rg ripgrep lookup")
SHELLS = word_set("bash shell sh zsh terminal exec execute run command cmd powershell console")
CHANGES = word_set("create delete remove rename move save update put insert append copy add make")
SHOWS = word_set("get open load show fetch")
FILES = word_set("file files notebook document")
COMMANDS = ("command", "cmd", "commands", "script")
PATHS = word_set(
    "path file_path filepath filename file_name file target_file notebook_path absolute_path relative_path "
    "relative_workspace_path old_path new_path source_path destination_path paths files uri"
)
WAITS = word_set("wait sleep timer delay poll polling status watch idle pause monitor heartbeat await progress output")
PAGES = word_set(
    "page offset cursor limit skip page_token next_token page_number page_size per_page max_results start_line "
    "end_line line_start line_end start_index end_index view_range line_range from_line to_line after before"
)
"""Arguments that choose a part of one whole."""


MAX_NAME = 200
"""Characters of a tool's name that are read."""


@lru_cache(maxsize=512)
def name_words(tool: str) -> tuple[str, ...]:
    """Return the words of a tool's name in lower case, in order.

    Examples
    --------
    >>> name_words("mcp__crm__setPrice")
    ('mcp', 'crm', 'set', 'price')
    """
    return tuple(word.lower() for word in _WORD.findall(tool[:MAX_NAME]))


def _is_display(key: str, words: tuple[str, ...]) -> bool:
    name = key.lower()
    if name in DISPLAY:
        return THINKS.isdisjoint(words)
    return name in LABELS and MAKES.isdisjoint(words) and THINKS.isdisjoint(words)


STEPS = lazy_regex(r"&&|\|\||[;|\n]")
"""Signs between the steps of a command line."""


def command_of(words: tuple[str, ...], value: Any, most: int = MAX_COMMAND) -> str | None:
    """Return at most so many characters of the command of a shell call, ``None`` of any other call."""
    if SHELLS.isdisjoint(words):
        return None
    found = value
    if isinstance(value, dict):
        found = next((value[key] for key in COMMANDS if key in value), None)
    if isinstance(found, list):  # an argument vector; what bash -c runs is its last part
        parts = [part for part in found[:100] if isinstance(part, str)]
        found = parts[2] if len(parts) == 3 and parts[1] in ("-c", "-lc") else " ".join(parts)
    return found[:most] if isinstance(found, str) else None


def _access_of(words: tuple[str, ...], fields: Mapping[str, Any], command: str | None) -> Access:
    if command is not None:
        return "shell"
    verb = fields.get("command", fields.get("action"))
    if isinstance(verb, str) and len(verb) <= 40:  # one tool for all, with the deed as an argument
        words = tuple(name_words(verb)) + words
        if words[:1] and words[0] in READS:
            return "read"
    # "create_order" changes no file, as "create_file" does.
    names_file = not FILES.isdisjoint(words) or any(key in fields for key in PATHS)
    if not WRITES.isdisjoint(words) or (names_file and not CHANGES.isdisjoint(words)):
        return "write"
    if not SEARCHES.isdisjoint(words):
        return "search"
    if not READS.isdisjoint(words) or (names_file and not SHOWS.isdisjoint(words)):
        return "read"
    return ""


_PATCHED = lazy_regex(r"^\*\*\* (?:Add|Update|Delete) File: (\S[^\n]*)", re.MULTILINE)
_INTO = lazy_regex(r"(?<![0-9&<>])>>?\s*([^\s<>&|;\"']+)")
_READERS = word_set("cat head tail less more sed grep tee nl wc")


def _paths_of(fields: Mapping[str, Any], command: str | None, access: Access) -> tuple[str, ...]:
    found: list[Any] = []
    if command is not None:
        found += _shell_paths(command)
    for key in sorted(PATHS.intersection(fields)):  # a set has another order in each process
        item = fields[key]
        found += item[:MAX_PATHS] if isinstance(item, list) else [item]
    if access == "write" and not found:
        texts = [item for item in fields.values() if isinstance(item, str) and "*** " in item[:ENDS]]
        found += [path for text in texts[:2] for path in _PATCHED.findall(text[: 2 * ENDS])]
    paths: list[str] = []
    for path in found:
        if isinstance(path, str) and path.strip() and len(path) <= MAX_PATH:
            plain = normpath(path.strip().removeprefix("file://"))
            if plain not in paths:
                paths.append(plain)
    return tuple(paths[:MAX_PATHS])


def _without_document(command: str) -> str:
    at = command.find("<<")  # what follows on the next lines is text, no command
    end = command.find("\n", at)
    return command[:end] if at >= 0 and end >= 0 else command


def _shell_paths(command: str) -> list[str]:
    command = _without_document(command)
    paths = []
    for step in STEPS.split(command)[:16]:
        paths += _INTO.findall(step)
        words = [word.strip("'\"") for word in _INTO.sub(" ", step).split()[:16]]
        if words and words[0] in _READERS:
            files = [word for word in words[1:] if not word.startswith(("-", "<")) and not word[:1].isdigit()]
            if words[0] in ("sed", "grep"):  # the first is the script or the pattern
                files = files[1:] if not any(word[:1].isdigit() for word in words[1:]) else files
            paths += files
    return paths


_SHELL_WAIT = lazy_regex(r"(?:^|[;&|\n(]|\bdo)\s{0,20}(?:sleep|wait|watch)\b|\btime\.sleep\(|\btail -[fF]\b")
_IN_SHELL_WAIT = ("sleep", "wait", "watch", "tail -")
"""One of these is in any command that waits: asked first, for that takes a tenth of the time."""
_STATUS = lazy_regex(
    # "git status" waits for nothing
    r"(?:^|[;&|\n])\s{0,20}(?!git\b|grep\b|rg\b|echo\b)[^\s;&|]++(?:\s++[^\s;&|]++){0,2}?\s++status(?:\s|$)"
)


def _waits(words: tuple[str, ...], fields: Mapping[str, Any], command: str | None) -> bool:
    if command is not None:
        command = _without_document(command)
        # An empty command asks a running shell for more of its output.
        if not command.strip() or ("status" in command and _STATUS.search(command) is not None):
            return True
        return holds(command, _IN_SHELL_WAIT) and _SHELL_WAIT.search(command) is not None
    if words[:1] == ("check",) or not WAITS.isdisjoint(words):
        return True
    verb = fields.get("command", fields.get("action"))
    return isinstance(verb, str) and (not verb.strip() or not WAITS.isdisjoint(name_words(verb[:40])))


_SHELL_PAGE = lazy_regex(r"\b(sed -n\s+['\"]?)[0-9]+,[0-9]+p|\b((?:head|tail)\s+(?:-n\s*|-c\s*|-)?\+?)[0-9]+")


def _page_of(tool: str, fields: Mapping[str, Any], command: str | None) -> str:
    rest: dict[str, Any] = {key: item for key, item in fields.items() if key.lower() not in PAGES}
    if command is not None:
        pages = "sed -n" in command or "head" in command or "tail" in command
        whole = _SHELL_PAGE.sub(r"\1\2#", command) if pages else command
        if whole != command:
            return _digest(tool, whole.encode("utf-8", "surrogatepass")).hex()
    return _digest(tool, _ENCODER.encode(rest)).hex() if len(rest) < len(fields) else ""


_PLAIN = lazy_regex(r"[0-9]++(?:,[0-9]{3})*+(?:\.[0-9]+)?")
_NAMING = ("attempt ", "tempt #", "retry ", "pid ", "pid=", "pid: ", " id ", " id=", " id: ", '"id": ', '"id":')
"""Words before a number that rises by itself, and tells of no progress."""
_NAMING_ENDS = frozenset(end for name in _NAMING for end in (name[-2], name[-2].upper()))
"""Their last characters but one."""


def _counts_of(parts: list[str]) -> tuple[float, ...]:
    counts = [
        float(number) if number.isdigit() else float(number.replace(",", ""))
        for before, number in zip(parts[::2], parts[1::2], strict=False)
        if (number.isdigit() or _PLAIN.fullmatch(number))
        and not (before[-2:-1] in _NAMING_ENDS and before[-8:].lower().endswith(_NAMING))
    ]
    if counts and max(counts) > MOST_COUNT:
        counts = [min(count, MOST_COUNT) for count in counts]
    if len(counts) > MAX_COUNTS:
        counts[4:-3] = [min(sum(counts[4:-3]), MOST_COUNT)]
    return tuple(counts)


_LIMIT_SIGNS = ("limit", "too many requests", "overloaded", "throttl", "retry", "quota", "429")
_LIMIT = lazy_regex(
    r"rate[ _-]?limit|too many requests|overloaded|throttl|retry[ -]after"
    r"|(?:exceed|insufficient|over|out of|reach|hit)(?:s|ed|ing)?[ _-](?:\w{1,12}[ _-]){0,3}quota"
    r"|\bquotas?[ _-](?:\w{1,12}[ _-]){0,2}(?:exceed|reach|exhaust|used|hit|full)"
    r"|\b(?:http|status|code|error|response)\W{0,3}(?:code\W{0,3})?429\b|^\W*429\b"
)
_TELLING = ("error", "exception", "fail", "fatal", "denied", "not found", "cannot", "invalid", "panic")


def is_rate_limited(text: str) -> bool:
    """Tell whether an error says that somebody asks too often.

    Examples
    --------
    >>> is_rate_limited("HTTP 429 Too Many Requests"), is_rate_limited("HTTP 500")
    (True, False)
    """
    low = ends(text, 2 * MAX_COMMAND, "\n").lower()
    return any(sign in low for sign in _LIMIT_SIGNS) and _LIMIT.search(low) is not None


_ENDED = lazy_regex(r"\s*exit (?:code|status):? \d{1,3}\s*\n\s*(?=\S)", re.IGNORECASE)
"""A line that says with which status a program ended; what the program said comes behind it."""


def _telling_line(text: str, error: bool) -> str:
    at = text.rfind("Traceback (most recent call last)") if error else -1
    if at >= 0:
        rest = [line for line in text[at:].splitlines()[1:] if line.strip()]
        # the exception; frames are indented
        found = next((line for line in rest if not line[0].isspace()), rest[-1] if rest else text[at:])
        return _one_line(found)
    low = text.lower() if error else ""
    start = min((at for at in map(low.find, _TELLING) if at >= 0), default=len(text) - len(text.lstrip()))
    start = text.rfind("\n", 0, start) + 1
    if error and (status := _ENDED.match(text, start)) is not None:
        start = status.end()
    end = text.find("\n", start)
    return _one_line(text[start : end if end >= 0 else len(text)])


def _one_line(line: str) -> str:
    return clean(" ".join(line.split())[:MAX_LINE])
