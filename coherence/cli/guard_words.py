"""Patches, decisions and spans of time in plain words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from coherence.core.readings import excerpt, number_of
from coherence.guard.bounds import merged
from coherence.guard.patch_events import Decision

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
    >>> decision_in_words(Decision("restore_failed", why="the adapter returned False"))
    'the configuration before the patch could not be restored: the adapter returned False'
    """
    if step.kind == "asked":
        return f"{number_of(step.failures, 'failure')} called for a patch: the strategy is asked"
    if step.kind == "proposed":
        return f"a patch waits: {patch_in_words(step.patch, None)} ({step.why})"
    if step.kind == "trial_wanted":
        return f"a person wants a patch on trial: {patch_in_words(step.patch, None)} ({step.why})"
    if step.kind == "accepted":
        return f"a patch goes on trial for {step.share:.0%} of calls: {patch_in_words(step.patch, step.backup)}"
    if step.kind == "ending" and step.pause:
        return f"{'a slice ends' if step.why == 'slice' else step.why}: the configuration before is to be restored"
    if step.kind == "decayed":
        return f"{step.why}; " + ("the configuration before is to be restored" if step.returns else "an alert only")
    head = _HEADS.get(step.kind, step.kind.replace("_", " "))
    return f"{head}: {step.why}" if step.why else head


_HEADS: dict[str, str] = {
    "declined": "no patch",
    "approval_wanted": "a person approves the patch that waits",
    "approved": "the approved patch is taken up",
    "withheld": "the approved patch does not go on trial",
    "refused": "a person declines the patch that waits",
    "rollback_wanted": "a person wants the patch rolled back",
    "serving": "the patch is in force",
    "not_applied": "the patch could not be applied",
    "ending": "the patch is to be rolled back",
    "retrying": "restoring the configuration before the patch is tried again",
    "restore_failed": "the configuration before the patch could not be restored",
    "restored": "the configuration before the patch is in force again",
    "late": "the configuration was changed by a process whose claim had been taken over",
    "resuming": "the patch is to be applied again",
    "confirmed": "the patch stays",
    "dropped": "the patch is given up while it is not in force",
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
