"""Prompts that a person means for this package: the plug-in's slash commands.

A hook for ``UserPromptSubmit`` has such a prompt as it was typed. It fires for what a person enters, and not if the
agent starts a command itself.
"""

from __future__ import annotations

STATUS, UNBLOCK = "status", "unblock"
"""Commands of the plug-in."""

PREFIX = "/coherence:"
"""Beginning of each of them, as the client has it for a plug-in of this name."""


def is_command(prompt: str) -> bool:
    """Tell whether a prompt is one of the plug-in's commands, and so no request to the agent.

    Examples
    --------
    >>> is_command("/coherence:status"), is_command("What does /coherence:status do?")
    (True, False)
    """
    return prompt.startswith(PREFIX)


def unblock_reason(prompt: str) -> str | None:
    """Return the reason with which a person ends a block, ``None`` if the prompt says something else.

    Examples
    --------
    >>> unblock_reason("/coherence:unblock I looked at it"), unblock_reason("/coherence:unblock")
    ('I looked at it', '')
    """
    words = prompt.split(maxsplit=1)
    return "".join(words[1:]).strip() if words[:1] == [PREFIX + UNBLOCK] else None
