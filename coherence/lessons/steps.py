"""A tool call reduced to its purpose, and to what it changes if it succeeds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import clean
from coherence.detect.fingerprints import DISPLAY, THINKS, command_of, name_words, trace_call
from coherence.lessons.commands import read_line, wrote
from coherence.lessons.programs import CHANGES, LOOKS, TRIES
from coherence.lessons.shell import MAX_DOCUMENT
from coherence.lessons.troubles import Made

PLANS = THINKS | {"todo", "todos"}
"""Words in the names of tools that change nothing but what the agent means to do."""

MAX_STEP = 240
"""Characters of a step's text."""

MAX_ARGUMENTS = 300_000
"""Bytes of arguments beyond which a call is not looked into."""

MAX_VALUE = 2_000
"""Characters of one argument that are looked at; of a command, `MAX_DOCUMENT`."""


def made_by(id: str, tool: str, arguments: bytes) -> Made:
    """Reduce a call to what is kept of it.

    Parameters
    ----------
    id, tool : str
        The call's id and the tool's name, of any vendor.
    arguments : bytes
        JSON of any shape. What is no JSON counts as one text; more than 300 kB is not looked into.

    Examples
    --------
    >>> made = made_by("c1", "Bash", b'{"command": "cd /repo && pip install pyyaml"}')
    >>> made.intent, made.steps
    ('shell: pip install pyyaml', ('ran `pip install pyyaml`',))
    >>> made_by("c2", "Edit", b'{"file_path": "app.py", "old_string": "a = 1", "new_string": "a = 2"}').steps
    ('edited app.py: `a = 1` -> `a = 2`',)
    """
    id, tool = clean(id[:200]), clean(tool[:100])
    if len(arguments) > MAX_ARGUMENTS:
        return Made(id, tool)
    try:
        value: Any = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        value = arguments[:MAX_VALUE].decode("utf-8", "replace")
    words = name_words(tool)
    command = command_of(words, value, MAX_DOCUMENT)
    if command is not None:
        return _shell(id, tool, command)
    fields = value if isinstance(value, dict) else {}
    trace = trace_call(tool, bytes(arguments))
    if trace.waits or (not PLANS.isdisjoint(words) and not trace.paths):
        return Made(id, tool)
    access = "write" if {"apply", "diff"} <= set(words) else trace.access
    if access in ("read", "write", "search"):
        step = _edit(fields, trace.paths) if access == "write" and (trace.paths or _text(fields, _PATCH)) else ""
        intent = f"{access}: {' '.join(trace.paths)}"[:200] if trace.paths and access != "search" else ""
        return Made(id, tool, intent, trace.exact, step, steps=(step,) if step else (), kind="file")
    shown = _arguments(fields)
    given = ", ".join(f"{key}={item}" for key, item in shown.items())
    text = _cut(f"called {tool}({given if fields else value})", MAX_STEP)
    verbs = [word for word in words if word in CHANGES or word in LOOKS or word in TRIES]
    steps = (text,) if verbs and verbs[0] in CHANGES else ()
    return Made(id, tool, _identity(tool, value), trace.exact, text, steps=steps, arguments=shown, kind="tool")


def _shell(id: str, tool: str, command: str) -> Made:
    line = read_line(clean(command))
    intent = f"shell: {line.intent}" if line.intent else ""
    text = f"ran `{line.text}`" if line.text else ""
    made = Made(id, tool, intent, _digest(line.doing), text, line.where, line.made, line.changed, kind="shell")
    made.quiet, made.hidden = line.quiet, line.hidden
    return made


# Edits.

_OLD = ("old_string", "old_str", "old_text", "old", "search", "find", "pattern")
_NEW = ("new_string", "new_str", "new_text", "new", "replace", "replacement", "insert_text", "new_source", "code_edit")
_WHOLE = ("content", "contents", "file_text", "text", "data", "body")
_PATCH = ("patch", "diff", "input", "patch_text")
_REMOVED = lazy_regex(r"^-(?!--)[ \t]*(\S[^\n]*)", re.MULTILINE)
_ADDED = lazy_regex(r"^\+(?!\+\+)[ \t]*(\S[^\n]*)", re.MULTILINE)
_PATCHED = lazy_regex(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(\S[^\n]*)", re.MULTILINE)


def _edit(fields: dict[str, Any], paths: tuple[str, ...]) -> str:
    patch = _text(fields, _PATCH)
    if patch.startswith("<<<<<<<"):  # a block to look for and the one in its place
        old, _, new = patch.partition("\n=======")
        different = _different(old.partition("\n")[2], new.partition("\n>>>>>>>")[0].removeprefix("\n"))
        return _cut(f"edited {_named(paths)}: {_change(*different)}", MAX_STEP)
    if patch and (_ADDED.search(patch) or _REMOVED.search(patch)):
        paths = paths or tuple(_PATCHED.findall(patch)[:4])
        return _cut(f"edited {_named(paths)}: {_change(_all(_REMOVED, patch), _all(_ADDED, patch))}", MAX_STEP)
    edits = fields.get("edits")
    several = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    first = several[0] if several else fields
    old, new = _text(first, _OLD), _text(first, _NEW)
    more = f" and {len(several) - 1} more" if len(several) > 1 else ""
    if old or new:
        return _cut(f"edited {_named(paths)}: {_change(*_different(old, new))}{more}", MAX_STEP)
    whole = _text(fields, _WHOLE)
    if whole:
        return clean(wrote(paths[0] if paths else "", whole))
    return f"changed {_named(paths)}"


def _text(fields: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((fields[key] for key in keys if isinstance(fields.get(key), str)), "")


def _all(pattern: re.Pattern[str], text: str) -> str:
    return " ".join(pattern.findall(text)[:8])


def _different(old: str, new: str) -> tuple[str, str]:
    """Return the lines in which two texts differ, without those that they share at both ends."""
    ours, theirs = old.split("\n"), new.split("\n")
    start, end = 0, min(len(ours), len(theirs))
    while start < end and ours[start] == theirs[start]:
        start += 1
    while min(len(ours), len(theirs)) > start and ours[-1] == theirs[-1]:
        del ours[-1], theirs[-1]
    return " ".join(ours[start:]), " ".join(theirs[start:])


def _change(old: str, new: str) -> str:
    return f"{_quoted(old)} -> {_quoted(new)}" if old.strip() else f"added {_quoted(new)}"


def _quoted(text: str) -> str:
    return f"`{_cut(text, 80)}`"


def _named(paths: tuple[str, ...]) -> str:
    """Return paths as they can stand in a fix: of an absolute one the last two parts."""
    shown = ["/".join(path.split("/")[-2:]) if path.startswith("/") else path for path in paths[:3]]
    return _cut(", ".join(shown), 100) or "a file"


# Other tools.


def _identity(tool: str, value: Any) -> str:
    """Return the purpose of a call: tool and values, whatever their names, order and types."""
    leaves = sorted(" ".join(str(leaf)[:MAX_VALUE].split()) for leaf in _leaves(value, 6))
    return f"tool: {tool.lower()[:80]} {trace_call('', msgspec.json.encode(leaves)).masked.hex()}"


def _leaves(value: Any, depth: int) -> Iterator[Any]:
    if isinstance(value, dict) and depth:
        for key, item in value.items():
            if key not in DISPLAY:
                yield from _leaves(item, depth - 1)
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _leaves(item, depth - 1)
    else:
        yield value


def _arguments(fields: dict[str, Any]) -> dict[str, str]:
    return {
        _cut(key, 40): _cut(item if isinstance(item, str) else msgspec.json.encode(item).decode(), 80)
        for key, item in list(fields.items())[:12]
        if key not in DISPLAY
    }


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


_CONTROL = lazy_regex(r"[\x00-\x1f\x7f]+")


def _cut(text: str, most: int) -> str:
    text = clean(" ".join(_CONTROL.sub(" ", text[: 4 * most]).split()))
    return text if len(text) <= most else f"{text[: most - 1]}…"
