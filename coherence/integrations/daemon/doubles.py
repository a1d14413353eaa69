"""Events that a client reports twice, since its settings and a plug-in both have hooks of this package."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import msgspec

MAX_KNOWN = 256
"""Newest events of a session that are known again."""

Answer = dict[str, Any]


class Doubles:
    """Know the newest events of one session again.

    Two reports are of one event if all that they say is the same, and they name the prompt that the agent works on:
    each call has a name of its own, too. What the client says more than once in these words, such as that a session
    starts, names no prompt.

    Examples
    --------
    >>> doubles, event = Doubles(), {"hook_event_name": "Stop", "prompt_id": "p1"}
    >>> doubles.answer_to(event), doubles.add(event, {}), doubles.answer_to(event)
    (None, None, {})
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()

    def answer_to(self, payload: Mapping[str, Any]) -> Answer | None:
        """Return the answer to an event that was reported before, ``None`` if it is new."""
        return self._answers.get(_key(payload)) if self._answers else None

    def add(self, payload: Mapping[str, Any], answer: Answer) -> None:
        """Keep what is answered if an event is reported again: a refusal, or nothing."""
        if isinstance(payload.get("prompt_id"), str):
            self._answers[_key(payload)] = answer
            if len(self._answers) > MAX_KNOWN:
                self._answers.popitem(last=False)


def _key(payload: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(payload)).digest()
