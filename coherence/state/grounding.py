"""From events to the account of where an agent's statements come from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import isfinite
from typing import Any

import msgspec

from coherence.core.events import Correction, Event, Goal, Memory, Message, Outcome, Ticked, ToolCall, ToolResult
from coherence.core.protocols import Extractor
from coherence.core.readings import MOST_CLAIMS, Claim
from coherence.core.registry import create_extractor
from coherence.core.validation import shown
from coherence.detect.grounding_state import begin_task, note_call, note_given, note_message, note_result
from coherence.state.data import Facts


class Accountant:
    """Keep the account of an agent; a stranger's extractor that fails is named in it and finds nothing.

    Parameters
    ----------
    names : sequence of str
        Extractors, see :class:`~coherence.core.config.GroundingConfig`.

    Raises
    ------
    PluginError
        If nobody offers a name.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._named = [(name, create_extractor(name)) for name in names]

    def note(self, facts: Facts, seq: int, event: Event, arguments: Any = None) -> None:
        """Take in an event, before the facts have; ``arguments`` are those of a call, decoded."""
        account, extractors = facts.grounds, self._extractors(facts)
        if isinstance(event, ToolResult):
            note_result(account, seq, event.call_id, event.result, extractors, error=event.error)
        elif isinstance(event, ToolCall):
            note_call(account, seq, event.call_id, event.tool_name, arguments, extractors)
        elif isinstance(event, Message):
            if event.role == "assistant":
                note_message(account, seq, event.content, extractors)
            elif event.role == "tool":
                note_result(account, seq, "", event.content, extractors, error=False)
            elif event.content.strip():
                if account.ended and event.role == "user":
                    begin_task(account)
                note_given(account, seq, event.content, extractors)
        elif isinstance(event, Goal):
            if account.ended or event.text.strip() != facts.goal:
                begin_task(account)
            note_given(account, seq, event.text, extractors)
        elif isinstance(event, Correction | Memory):
            if not event.removed:
                note_given(account, seq, event.text, extractors)
        elif isinstance(event, Outcome):
            account.ended = True
        elif isinstance(event, Ticked) and event.reason == "decide" and facts.answer is not None:
            account.asked_seq = facts.answer.seq

    def _extractors(self, facts: Facts) -> list[Extractor]:
        return [_guarded(name, extractor, facts) for name, extractor in self._named]


_COPY = msgspec.msgpack.Decoder(list[Claim])


def _guarded(name: str, extractor: Extractor, facts: Facts) -> Extractor:
    def find(text: str) -> Sequence[Claim]:
        try:
            return _checked(list(islice(extractor(text), MOST_CLAIMS)), len(text))
        except Exception as error:
            failed = facts.grounds.failed
            failed[name] = f"{type(error).__name__}: {error}"[:200]
            return ()

    return find


def _checked(claims: Sequence[Claim], length: int) -> list[Claim]:
    """Return claims of a text of that length, or raise for one that is of no use, or that could not be stored."""
    found = _COPY.decode(msgspec.msgpack.encode(claims))
    for claim in found:
        if not claim.forms or not 0 <= claim.start <= length:
            raise ValueError(f"a claim needs forms, and a place in the text: {shown(claim)}")
        if not (isfinite(claim.value or 0.0) and isfinite(claim.grain)):
            raise ValueError(f"the number of a claim must be finite: {shown(claim)}")
    return found
