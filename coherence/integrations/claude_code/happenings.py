"""Events of Claude Code that are noted beside an agent's life: questions to the person, settings, a resumed session."""

from __future__ import annotations

from collections.abc import Callable

from coherence.core.readings import excerpt, one_line
from coherence.integrations.host_session import Payload, text_of

MAX_NOTE = 300
"""Characters of a note."""


def _permission(payload: Payload) -> str:
    return f"the user is asked whether a call of {text_of(payload, 'tool_name')} may run"


def _config(payload: Payload) -> str:
    return f"settings changed: {text_of(payload, 'source')} {text_of(payload, 'file_path')}".strip()


def _notification(payload: Payload) -> str:
    kind = text_of(payload, "notification_type")
    # The request for a permission has an event of its own, which names the tool.
    return "" if kind == "permission_prompt" else f"the user was notified: {kind}: {text_of(payload, 'message')}"


def _start(payload: Payload) -> str:
    source = text_of(payload, "source")
    return {"resume": "the session was resumed", "clear": "the user cleared the conversation"}.get(source, "")


NOTES: dict[str, Callable[[Payload], str]] = {
    "PermissionRequest": _permission,
    "ConfigChange": _config,
    "Notification": _notification,
    "SessionStart": _start,
}
"""Event -> what is noted of it, empty for nothing."""


def note_of(payload: Payload) -> str:
    """Return what is to be noted of an event, empty for nothing.

    Examples
    --------
    >>> note_of({"hook_event_name": "PermissionRequest", "tool_name": "Bash"})
    'the user is asked whether a call of Bash may run'
    """
    make = NOTES.get(text_of(payload, "hook_event_name"))
    return excerpt(one_line(make(payload)), MAX_NOTE) if make is not None else ""
