"""The patch that serves the call that runs now, for adapters that serve two configurations at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_PATCH: ContextVar[dict[str, Any] | None] = ContextVar("coherence_guard_patch", default=None)


def current_patch() -> dict[str, Any] | None:
    """Return the patch on trial that serves the guarded call under way, to be laid over the configuration, or None.

    Examples
    --------
    >>> current_patch() is None
    True
    """
    return _PATCH.get()


@contextmanager
def serving(patch: dict[str, Any] | None) -> Iterator[None]:
    """Let a patch serve what runs inside."""
    if patch is None and _PATCH.get() is None:  # nearly always: nothing is to be set and set back
        yield
        return
    token = _PATCH.set(patch)
    try:
        yield
    finally:
        _PATCH.reset(token)
