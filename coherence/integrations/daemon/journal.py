"""Files of what the daemon has taken and not yet written, so that a kill loses none of it."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from coherence.core.events import Compaction, Message, ToolCall, ToolResult, decode_event
from coherence.integrations.daemon import hook
from coherence.store.errors import StoreError
from coherence.store.store import Store

LOGGER = logging.getLogger(__name__)

TAKEN = ".taken"
"""Suffix of a file in the spool whose payload a daemon has taken."""

SETTLE_S = 1.0
"""Seconds between two times that everything is written, and the files go."""

MAX_KNOWN = 1_000
"""Events of a session that are known again."""

Key: TypeAlias = tuple[str, str, str]

_KINDS: Mapping[str, tuple[str, str]] = {
    "PreToolUse": ("call", "tool_use_id"),
    "PostToolUse": ("result", "tool_use_id"),
    "PostToolUseFailure": ("result", "tool_use_id"),
    "UserPromptSubmit": ("user", "prompt"),
    "Stop": ("assistant", "last_assistant_message"),
    "SubagentStop": ("assistant", "last_assistant_message"),
    "PostCompact": ("compaction", "compact_summary"),
}
"""Event of a hook -> kind of the event that is recorded for it, and the field by which that is known again."""


class Journal:
    """Keep each payload from before it is handled until it is written.

    Parameters
    ----------
    folder : Path
        State folder.
    """

    def __init__(self, folder: Path) -> None:
        self._spool = folder / hook.SPOOL
        self._handled: list[Path] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def begin(self, raw: bytes) -> Path | None:
        """Keep a request; ``None`` if there is no room for it: it is handled all the same."""
        path = self._spool / f"{time.time_ns():020}-{os.getpid()}-{next(self._numbers)}{TAKEN}"
        try:
            self._spool.mkdir(mode=0o700, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(raw)
        except OSError as error:
            LOGGER.warning("a request is handled, and would be lost if the daemon were killed now: %s", error)
            with suppress(OSError):
                path.unlink()
            return None
        return path

    def done(self, path: Path | None) -> None:
        """Let a request that was handled go once everything is written."""
        if path is not None:
            with self._lock:
                self._handled.append(path)

    def settle(self, write: Callable[[], object]) -> None:
        """Write everything, and let go what was handled before; what cannot be written stays."""
        with self._lock:
            handled, self._handled = self._handled, []
        try:
            if handled:
                write()
        except StoreError:
            with self._lock:
                self._handled += handled
            raise
        for path in handled:
            path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Leave what was handled to the next daemon: some of it could not be written before its session was closed."""
        with self._lock:
            self._handled = []

    def recover(self) -> bool:
        """Put what a daemon that was killed had taken back into the spool; tell whether there was any."""
        self._spool.mkdir(mode=0o700, exist_ok=True)
        found = sorted(self._spool.glob(f"*{TAKEN}"))
        for path in found:
            path.rename(path.with_suffix(".payload"))
        return bool(found)


class Known:
    """Events of one session that are known again if they come a second time.

    Examples
    --------
    >>> known, call = Known(), {"hook_event_name": "PreToolUse", "tool_use_id": "t1"}
    >>> known.takes(call), known.takes(call), known.takes({"hook_event_name": "PostToolBatch"})
    (True, False, True)
    """

    def __init__(self, keys: Iterator[Key] | None = None) -> None:
        self._recorded = frozenset(keys or ())
        self._taken: dict[Key, None] = {}

    def takes(self, payload: Mapping[str, Any]) -> bool:
        """Tell whether an event is new, and know it from now on.

        Texts, which may be said twice, are held against what was recorded before a daemon was killed only.
        """
        kind, _, said = key = _key(payload)
        if not said:
            return True
        if (kind, "", said) in self._recorded:
            return False
        if kind not in ("call", "result"):
            return True
        if key in self._taken:
            return False
        self._taken[key] = None
        if len(self._taken) > MAX_KNOWN:
            del self._taken[next(iter(self._taken))]
        return True

    def forget(self, payload: Mapping[str, Any]) -> None:
        """Take an event for new again: it could not be recorded."""
        self._taken.pop(_key(payload), None)


def _key(payload: Mapping[str, Any]) -> Key:
    kind, field = _KINDS.get(str(payload.get("hook_event_name")), ("", ""))
    said = payload.get(field)
    return kind, str(payload.get("agent_id")), said if isinstance(said, str) else ""


def recorded(store: Store, session: str) -> Iterator[Key]:
    """Yield what is known again of the newest events that a store has of a session."""
    for row in store.sessions():
        if row.session != session:
            continue
        last = store.last_seq(row.id)
        for kept in store.events(row.id, after=max(0, last - MAX_KNOWN)):
            match decode_event(kept.data):
                case ToolCall(call_id=str(call)):
                    yield "call", "", call
                case ToolResult(call_id=str(call)):
                    yield "result", "", call
                case Message(role="user" | "assistant" as role, content=str(text)):
                    yield role, "", text
                case Compaction(summary=str(text)):
                    yield "compaction", "", text
