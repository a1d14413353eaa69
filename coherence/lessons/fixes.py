"""The fix of an error: calls reduced to purpose and changes, and the changes that tell somebody else what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename
from typing import Any

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import clean
from coherence.detect.fingerprints import DISPLAY, THINKS, command_of, name_words, trace_call
from coherence.lessons.programs import CHANGES, LOOKS, TRIES
from coherence.lessons.shell import DOCUMENT, MAX_DOCUMENT, cut_to, read_line, wrote
from coherence.lessons.troubles import FixStep, Made, Solved, Trouble

PLANS = THINKS | {"todo", "todos"}
"""Words in the names of tools that change nothing but what the agent means to do."""

MAX_STEP = 240
"""Characters of a step's text."""

MAX_ARGUMENTS = 300_000
"""Bytes of arguments beyond which a call is not looked into."""

MAX_VALUE = 2_000
"""Characters of one argument that are looked at; of a command, `MAX_DOCUMENT`."""

MAX_STEPS = 5
"""Changes that are kept since an error: the last ones."""

MAX_FIX = 600
"""Characters of a fix."""


def made_by(tool: str, arguments: bytes) -> Made:
    """Reduce a call to what is kept of it.

    Parameters
    ----------
    tool : str
        The tool's name, of any vendor.
    arguments : bytes
        JSON of any shape. What is no JSON counts as one text; more than 300 kB is not looked into.

    Examples
    --------
    >>> made = made_by("Bash", b'{"command": "cd /repo && pip install pyyaml"}')
    >>> made.intent, made.steps
    ('shell: pip install pyyaml', ('ran `pip install pyyaml`',))
    >>> made_by("Edit", b'{"file_path": "app.py", "old_string": "a = 1", "new_string": "a = 2"}').steps
    ('edited app.py: `a = 1` -> `a = 2`',)
    """
    tool = clean(tool[:100])
    if len(arguments) > MAX_ARGUMENTS:
        return Made(tool)
    try:
        value: Any = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        value = arguments[:MAX_VALUE].decode("utf-8", "replace")
    words = name_words(tool)
    command = command_of(words, value, MAX_DOCUMENT)
    if command is not None:
        return msgspec.structs.replace(read_line(clean(command)), tool=tool)
    fields = value if isinstance(value, dict) else {}
    trace = trace_call(tool, bytes(arguments))
    if trace.waits or (not PLANS.isdisjoint(words) and not trace.paths):
        return Made(tool)
    access = "write" if {"apply", "diff"} <= set(words) else trace.access
    if access in ("read", "write", "search"):
        step = _edit(fields, trace.paths) if access == "write" and (trace.paths or _text(fields, _PATCH)) else ""
        intent = f"{access}: {' '.join(trace.paths)}"[:200] if trace.paths and access != "search" else ""
        return Made(tool, intent, trace.exact, step, steps=(step,) if step else (), kind="file")
    shown = _arguments(fields)
    given = ", ".join(f"{key}={item}" for key, item in shown.items())
    text = cut_to(f"called {tool}({given if fields else value})", MAX_STEP)
    verbs = [word for word in words if word in CHANGES or word in LOOKS or word in TRIES]
    steps = (text,) if verbs and verbs[0] in CHANGES else ()
    return Made(tool, _identity(tool, value), trace.exact, text, steps=steps, arguments=shown, kind="tool")


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
        return cut_to(f"edited {_named(paths)}: {_change(*different)}", MAX_STEP)
    if patch and (_ADDED.search(patch) or _REMOVED.search(patch)):
        paths = paths or tuple(_PATCHED.findall(patch)[:4])
        return cut_to(f"edited {_named(paths)}: {_change(_all(_REMOVED, patch), _all(_ADDED, patch))}", MAX_STEP)
    edits = fields.get("edits")
    several = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    first = several[0] if several else fields
    old, new = _text(first, _OLD), _text(first, _NEW)
    more = f" and {len(several) - 1} more" if len(several) > 1 else ""
    if old or new:
        return cut_to(f"edited {_named(paths)}: {_change(*_different(old, new))}{more}", MAX_STEP)
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
    return f"`{cut_to(text, 80)}`"


def _named(paths: tuple[str, ...]) -> str:
    """Return paths as they can stand in a fix: of an absolute one the last two parts."""
    shown = ["/".join(path.split("/")[-2:]) if path.startswith("/") else path for path in paths[:3]]
    return cut_to(", ".join(shown), 100) or "a file"


# Other tools.


def _identity(tool: str, value: Any) -> str:
    """Return the purpose of a call: tool and values, whatever their names, order and types."""
    leaves = sorted(" ".join(str(leaf)[:MAX_VALUE].split()) for leaf in _leaves(value, 6))  # agents reorder arguments
    return f"tool: {tool.lower()[:80]} {trace_call('', msgspec.json.encode(leaves)).masked.hex()}"


def _leaves(value: Any, depth: int) -> Iterator[Any]:
    if isinstance(value, dict) and depth:
        for key, item in value.items():
            if key not in DISPLAY:  # how an agent explains its call differs at every try
                yield from _leaves(item, depth - 1)
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _leaves(item, depth - 1)
    else:
        yield value


def _arguments(fields: dict[str, Any]) -> dict[str, str]:
    return {
        cut_to(key, 40): cut_to(item if isinstance(item, str) else msgspec.json.encode(item).decode(), 80)
        for key, item in list(fields.items())[:12]
        if key not in DISPLAY
    }


# Solving.


def is_retry(trouble: Trouble, made: Made) -> bool:
    """Return whether a call is for the same as one that failed: of the same intent, or with an argument it lacked."""
    if trouble.intent == made.intent:
        return True
    if made.kind != "tool" or trouble.tool != made.tool or not trouble.arguments.items() <= made.arguments.items():
        return False
    return any(key not in trouble.arguments and key in trouble.error_text for key in made.arguments)


def add_steps(trouble: Trouble, seq: int, made: Made) -> None:
    """Add changes to those made since an error; a file that cannot be read or written is not mended by edits."""
    if trouble.settled or (trouble.intent.startswith(("read: ", "write: ")) and made.kind == "file"):
        return
    kept = [step for step in trouble.steps if step.text not in made.steps]  # only the last time counts
    trouble.steps = [*kept, *(FixStep(seq, text) for text in made.steps)][-MAX_STEPS:]


def solve(trouble: Trouble, seq: int, made: Made) -> Solved | None:
    """Return the lesson of an error that a success has solved, ``None`` if there is nothing to be learnt.

    Parameters
    ----------
    trouble : Trouble
        The error.
    seq, made : int, Made
        The successful call and the event that reported its success.
    """
    if trouble.settled:
        steps = trouble.steps
    else:
        own = [FixStep(seq, text) for text in _own_steps(trouble, made)]
        since = trouble.fresh() or ([] if own else trouble.steps)
        steps = own if own and made.kind == "tool" else [*since, *own]  # other calls before it had other purposes
    steps = _telling(steps[-MAX_STEPS:], trouble)
    if not steps:
        return None
    return Solved(
        pattern=trouble.pattern,
        error_text=trouble.error_text,
        fix_text=fix_of([step.text for step in steps]),
        tool=trouble.tool,
        seqs=tuple(sorted({trouble.seq, *(step.seq for step in steps), seq} - {0})),
    )


_BY_NUMBER = lazy_regex(r"ran `sed -i\S* ['\"]?[0-9,$]+d['\"]? \S+`")
_OPAQUE = lazy_regex(r"wrote (.+) \([0-9]+ lines\)")


def _telling(steps: list[FixStep], trouble: Trouble) -> list[FixStep]:
    """Return the steps that tell somebody else what to do.

    That a long file was written tells nothing, unless the error asks for just this file; no more does it to run it,
    that a script was typed in place, or that lines were deleted by their numbers.
    """
    found = [(step, _OPAQUE.fullmatch(step.text)) for step in steps]
    opaque = {basename(match[1]) for _, match in found if match and not _asks_for(trouble, match[1])} | {DOCUMENT}
    return [
        step
        for step, match in found
        if not _BY_NUMBER.fullmatch(step.text)
        and (basename(match[1]) not in opaque if match else not any(name in step.text for name in opaque))
    ]


def _asks_for(trouble: Trouble, path: str) -> bool:
    if basename(path) in trouble.intent:  # the agent had not written its own script yet
        return False
    parts = {part.partition(".")[0] for part in path.split("/")}
    return any(part in parts for slot in trouble.slots for part in re.split(r"[/.\\]", slot) if part)


def _own_steps(trouble: Trouble, made: Made) -> tuple[str, ...]:
    """Return the differences of the successful call itself, nothing if it was the same."""
    if made.kind == "file":
        return ()
    if made.kind == "tool":
        return (_other_call(trouble, made),) if made.doing != trouble.doing else ()
    # An absolute folder is another machine's.
    moved = bool(made.where) and made.where != trouble.where and not made.where.startswith("/")
    if made.doing == trouble.doing and not (moved and not trouble.fresh()):
        return made.prior
    command = f"cd {made.where} && {made.text[5:-1]}" if moved else made.text[5:-1]
    if made.prior and made.prior[-1].startswith("ran `"):
        return (*made.prior[:-1], f"ran `{made.prior[-1][5:-1]} && {command}`"[:MAX_STEP])
    return (*made.prior, f"ran `{command}`")


def _other_call(trouble: Trouble, made: Made) -> str:
    before, now = trouble.arguments, made.arguments
    changed = [
        f"{key}=`{now[key]}`" + (f" instead of `{before[key]}`" if key in before else "")
        for key in now
        if before.get(key) != now[key]
    ]
    gone = [f"without {key}" for key in before if key not in now]
    if not changed and not gone:
        return made.text
    return f"called {made.tool} with {', '.join([*changed, *gone])}"[:MAX_STEP]


def fix_of(texts: list[str]) -> str:
    """Return changes as one line of at most 600 characters; a single shell command stands alone.

    Examples
    --------
    >>> fix_of(["ran `pip install pyyaml`"])
    'pip install pyyaml'
    >>> fix_of(["ran `pip install pyyaml`", "edited app.py: `import yml` -> `import yaml`"])
    'ran `pip install pyyaml`; edited app.py: `import yml` -> `import yaml`'
    """
    if len(texts) == 1 and texts[0].startswith("ran `"):
        return texts[0][5:-1]
    most = (MAX_FIX - 2 * len(texts)) // max(1, len(texts))
    if sum(len(text) + 2 for text in texts) > MAX_FIX:
        texts = [text if len(text) <= most else f"{text[: most - 2]}…`" for text in texts]  # the cut took a backtick
    return "; ".join(texts)
