"""Check whether what hooks say reaches the agent: a canary is planted, and looked for in the client's transcript."""

from __future__ import annotations

import time
from contextlib import chdir
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from coherence.core.files import open_input
from coherence.core.readings import excerpt, span
from coherence.integrations.added_lines import object_in
from coherence.integrations.claude_code.transcript_tail import entries_of
from coherence.integrations.daemon.canary import Canary, plant, read_canary, uproot
from coherence.integrations.daemon.folder import enter

AGAIN = "coherence doctor --delivery"

LOOK_S = 0.5
"""Seconds between two looks while a session is waited for."""


class _Seen(NamedTuple):
    """Trace of a canary in a transcript."""

    at: float | None
    """Unix time of the entry that shows it; ``None`` = no entry does."""
    went_on: bool
    """True if the agent has answered since it was told."""


def check_delivery(state: Path, wait_s: float = 0.0) -> tuple[Literal["OK", "WARN", "FAIL"], str, str]:
    """Return the status of the delivery, what was found, and what to do next.

    Without a canary one is planted: the next session is told it. With the result, the canary is removed.

    Parameters
    ----------
    state : Path
        State folder of the daemon; made if it is missing.
    wait_s : float
        Seconds to wait for a session that shows the canary.
    """
    with chdir("."):  # which entering changes
        enter(state)
    canary = read_canary(state)
    is_new = canary is None
    canary = canary or plant(state)
    until = time.monotonic() + wait_s
    seen = look(canary)
    while seen.at is None and (left := until - time.monotonic()) > 0.0:
        time.sleep(min(LOOK_S, left))
        canary = read_canary(state) or canary
        seen = look(canary)
    if canary.told is None:
        found = "planted now" if is_new else f"planted {span(time.time() - canary.planted)} ago"
        return "WARN", f"{found}, and no session has taken it since: begin one and look again", AGAIN
    session = f"session {excerpt(canary.session, 60)}"
    if seen.at is not None:
        uproot(state)
        return "OK", f"delivered in {session} after {max(seen.at - canary.told, 0.0):.1f} s", ""
    ago = span(time.time() - canary.told)
    if not seen.went_on:
        return "WARN", f"{session} was told {ago} ago, and has not gone on since", AGAIN
    uproot(state)
    where = canary.transcript or "which names no transcript"
    return "FAIL", f"{session} was told {ago} ago and has gone on, and its transcript does not show it: {where}", AGAIN


def look(canary: Canary) -> _Seen:
    """Look for a canary in the transcript of the session that was told."""
    went_on = False
    if canary.told is None or not canary.transcript.endswith(".jsonl"):
        return _Seen(None, canary.told is not None)
    try:
        with open_input(Path(canary.transcript)) as file:
            file.seek(canary.offset)
            for line in file:
                if canary.token.encode() in line and any(
                    entry.kind == "context" and canary.token in entry.value for entry in entries_of(line)
                ):
                    return _Seen(_time_of(line) or time.time(), went_on)
                went_on = went_on or any(entry.kind in ("text", "call") for entry in entries_of(line))
    except OSError:  # it is not there yet
        pass
    return _Seen(None, went_on)


def _time_of(line: bytes) -> float | None:
    """Return when a line of a transcript was written."""
    try:
        return datetime.fromisoformat(object_in(line)["timestamp"]).timestamp()
    except (ValueError, KeyError, TypeError):
        return None
