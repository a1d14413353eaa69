"""What rules look back at beside the last actions: failures by kind, files, judgements, spending."""

from __future__ import annotations

import re
from posixpath import basename
from typing import Any

from coherence.core.lazy import lazy_regex
from coherence.detect.fingerprints import CallTrace
from coherence.state.data import Action, Facts, Failure, Rated, Spending

RECENT = 30
"""Tool results, messages and model calls that are remembered one by one."""

MAX_FAILURES = 32
MAX_FAILURE_EVENTS = 8
MAX_FILES = 200
MAX_QUALITIES = 20
MAX_FOUND = 50
"""Files of one search result that count as seen."""

EDITS = lazy_regex(r"edit|replace|patch|insert|update|modify|append", re.IGNORECASE)
"""Tools that change a file which is there already, by name."""

OVERWRITTEN = lazy_regex(r"\b(?:updated|overwr(?:itten|ote)|replaced|modified)\b", re.IGNORECASE)
"""What a tool says that has written to a file which was there."""

FOUND = lazy_regex(r"^([^\s:]{1,300}):\d+", re.MULTILINE)
"""A line of a search result that shows a file's content: ``src/a.py:12: ...``."""


def push(items: list[Any], item: Any, most: int) -> None:
    """Append to a bounded list."""
    items.append(item)
    if len(items) > most:
        del items[:-most]


def renew(items: dict[str, Any], key: str, item: Any, most: int) -> None:
    """Put an item last into a bounded table; the one that was put there longest ago leaves."""
    items.pop(key, None)
    items[key] = item
    if len(items) > most:
        del items[next(iter(items))]


def note_failure(facts: Facts, action: Action) -> None:
    """Count a failed action with others of its kind."""
    key = f"{action.tool[:64]} {action.came.masked.hex()}"
    failure = facts.failures.get(key) or Failure(action.tool, action.came.first_line)
    failure.count += 1
    failure.first_line = action.came.first_line
    if action.turn not in failure.turns[-1:]:
        push(failure.turns, action.turn, MAX_FAILURE_EVENTS)
    push(failure.seqs, action.seq, MAX_FAILURE_EVENTS)
    renew(facts.failures, key, failure, MAX_FAILURES)


def blind_target(facts: Facts, tool: str, made: CallTrace, result: str) -> str:
    """Return the existing file that a call writes to although it was never read, empty if there is none.

    Only what the events show counts: a tool that edits needs a file that is there; one that writes a whole file
    overwrites if the file was named in the context, or the result says so.
    """
    if made.access != "write":
        return ""
    edits = EDITS.search(tool) is not None or OVERWRITTEN.search(result[:500]) is not None
    for path in made.paths:
        if path not in facts.files and (edits or _was_named(facts, path)):
            return path
    return ""


def _was_named(facts: Facts, path: str) -> bool:
    name = basename(path)
    pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    return bool(name) and any(item.role == "tool" and pattern.search(item.text) for item in facts.context)


def note_files(facts: Facts, action: Action, result: str) -> None:
    """Remember the files that an action read or wrote."""
    if action.error:
        return
    paths = list(action.made.paths)
    if action.made.access in ("search", "shell"):
        paths += [match[1] for match, _ in zip(FOUND.finditer(result[:20_000]), range(MAX_FOUND), strict=False)]
    for path in paths:
        renew(facts.files, path, action.seq, MAX_FILES)


def note_quality(facts: Facts, seq: int, score: float) -> None:
    """Remember a judgement in [-1, 1]."""
    push(facts.qualities, Rated(seq, facts.turn, (score + 1.0) / 2.0), MAX_QUALITIES)


def note_spending(facts: Facts, seq: int, tokens: int, cost_usd: float | None) -> None:
    """Remember what a model call used up."""
    push(facts.spending, Spending(seq, tokens, cost_usd), RECENT)


def is_same(one: Action, other: Action) -> bool:
    """Tell whether two actions are the same call with the same result."""
    return (one.made.exact, one.came.exact, one.error) == (other.made.exact, other.came.exact, other.error)
