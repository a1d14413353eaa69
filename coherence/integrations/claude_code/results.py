"""Texts of results, from what the tools of Claude Code return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_REPEATED = frozenset({"originalFile", "structuredPatch", "oldString", "newString", "content"})
"""Fields of an edit that repeat its call, or the file as it was."""


def result_of(response: Any) -> Any:
    r"""Return what the agent gets to see of a tool's response: a text, content blocks, or the data itself.

    Examples
    --------
    >>> result_of({"stdout": "7 passed", "stderr": "1 warning", "interrupted": False})
    '7 passed\n1 warning'
    >>> result_of({"type": "text", "file": {"filePath": "a.py", "content": "print(1)"}})
    'print(1)'
    >>> result_of({"type": "update", "filePath": "a.py", "originalFile": "print(1)"})
    {'type': 'update', 'filePath': 'a.py'}
    """
    if not isinstance(response, Mapping):
        return response
    if "stdout" in response or "stderr" in response:
        parts = (response.get("stdout"), response.get("stderr"))
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    file = response.get("file")
    if isinstance(file, Mapping) and isinstance(file.get("content"), str):
        return file["content"]
    if "filePath" in response:
        return {name: value for name, value in response.items() if name not in _REPEATED}
    return response.get("content", response)
