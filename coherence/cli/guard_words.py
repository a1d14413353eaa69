"""Patches, decisions and spans of time in plain words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from coherence.core.readings import excerpt, number_of
from coherence.guard.bounds import merged
from coherence.guard.patch_events import (
    Accepted,
    ApprovalWanted,
    Approved,
    Asked,
    Confirmed,
    Decayed,
    Decision,
    Declined,
    Dropped,
    Ending,
    Late,
    NotApplied,
    Proposed,
    Refused,
    Restored,
    RestoreFailed,
    Resuming,
    Retrying,
    RollbackWanted,
    Serving,
    TrialWanted,
    Withheld,
    kind_of,
)

NOT_SET = "not set"

MAX_CHANGES = 200
"""Keys that are shown of a patch."""

VALUE = 60
"""Characters of a value that are shown; ``--json`` gives all of it."""

_MISSING = object()


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what differs between two configurations: dotted path, value before, value after.

    Examples
    --------
    >>> changes({"retry": {"limit": 3}, "model": "a"}, {"retry": {"limit": 4}, "model": "a", "top": 1})
    [('retry.limit', '3', '4'), ('top', 'not set', '1')]
    """
    found: list[tuple[str, str, str]] = []
    _compare("", before, after, found)
    return found[:MAX_CHANGES]


def _compare(path: str, before: Mapping[str, Any], after: Mapping[str, Any], found: list[tuple[str, str, str]]) -> None:
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key, _MISSING), after.get(key, _MISSING)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            _compare(f"{path}{key}.", old, new, found)
        elif type(old) is not type(new) or old != new:
            name = excerpt(path + key, VALUE)
            found.append((name if name.strip() else json.dumps(path + key), _value(old), _value(new)))


def _value(value: object) -> str:
    return NOT_SET if value is _MISSING else excerpt(json.dumps(value, ensure_ascii=False), VALUE)


def patch_in_words(patch: Mapping[str, Any], backup: Mapping[str, Any] | None) -> str:
    """Return what a patch changes; ``backup`` is the configuration before it, if that is known.

    Examples
    --------
    >>> patch_in_words({"retries": 2}, {"retries": 1}), patch_in_words({"retries": 2}, None)
    ('retries 1 -> 2', 'retries 2')
    """
    if backup is not None:
        return ", ".join(f"{key} {old} -> {new}" for key, old, new in changes(backup, merged(backup, patch)))
    return ", ".join(f"{key} {new}" for key, _, new in changes({}, merged({}, patch)))


def decision_in_words(step: Decision) -> str:
    """Return a decision as a sentence; one of a kind that is not known here keeps its name.

    Examples
    --------
    >>> decision_in_words(RestoreFailed(why="the adapter returned False"))
    'the configuration before the patch could not be restored: the adapter returned False'
    """
    if isinstance(step, Asked):
        return f"{number_of(step.failures, 'failure')} called for a patch: the strategy is asked"
    if isinstance(step, Proposed):
        return f"a patch waits: {patch_in_words(step.patch, None)} ({step.why})"
    if isinstance(step, TrialWanted):
        return f"a person wants a patch on trial: {patch_in_words(step.patch, None)} ({step.why})"
    if isinstance(step, Accepted):
        return f"a patch goes on trial for {step.share:.0%} of calls: {patch_in_words(step.patch, step.backup)}"
    if isinstance(step, Ending) and step.pause:
        return f"{'a slice ends' if step.why == 'slice' else step.why}: the configuration before is to be restored"
    if isinstance(step, Decayed):
        return f"{step.why}; " + ("the configuration before is to be restored" if step.returns else "an alert only")
    head = _HEADS.get(type(step), kind_of(step).replace("_", " "))
    why = getattr(step, "why", "")
    return f"{head}: {why}" if why else head


_HEADS: dict[type[Decision], str] = {
    Declined: "no patch",
    ApprovalWanted: "a person approves the patch that waits",
    Approved: "the approved patch is taken up",
    Withheld: "the approved patch does not go on trial",
    Refused: "a person declines the patch that waits",
    RollbackWanted: "a person wants the patch rolled back",
    Serving: "the patch is in force",
    NotApplied: "the patch could not be applied",
    Ending: "the patch is to be rolled back",
    Retrying: "restoring the configuration before the patch is tried again",
    RestoreFailed: "the configuration before the patch could not be restored",
    Restored: "the configuration before the patch is in force again",
    Late: "the configuration was changed by a process whose claim had been taken over",
    Resuming: "the patch is to be applied again",
    Confirmed: "the patch stays",
    Dropped: "the patch is given up while it is not in force",
}


def local_time(at: float) -> str:
    """Return a wall time as clocks here show it, and how far they are from UTC."""
    try:
        return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S%z")
    except (OverflowError, ValueError, OSError):
        return str(at)


def latency(seconds: float | None) -> str:
    """Return a duration of calls.

    Examples
    --------
    >>> [latency(seconds) for seconds in (None, 4e-6, 0.0123, 2.5)]
    ['-', '4 µs', '12.3 ms', '2.5 s']
    """
    if seconds is None:
        return "-"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:,.1f} s"
