"""Calls by which a host tells a watch, in the order of hosts that stream and of hosts that hold no tool back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coherence import Monitor
from coherence.core import events
from coherence.integrations.conversation import Answer, Conversation, Turn
from coherence.integrations.watch import Watch
from coherence.providers.transcript import TranscriptCall

WIPE = {"command": "rm -rf /"}


def answer_with(*calls: TranscriptCall) -> Answer:
    return Answer("I run it.", calls=calls)


def recorded(monitor: Monitor, kind: type[Any]) -> list[Any]:
    """Return the events of one kind, oldest first."""
    monitor.flush()
    return [record.event for record in monitor.events() if isinstance(record.event, kind)][::-1]


def test_watch_records_a_call_once_that_runs_before_its_answer_is_complete() -> None:
    with Monitor(embedder=False) as monitor:
        watch = Watch(monitor)
        assert watch.refusal("c1", "bash", {"command": "ls"}) == ""
        watch.answered(
            answer_with(TranscriptCall("bash", {"command": "ls"}, "c1"), TranscriptCall("bash", {}, "c2")), Turn("")
        )
        assert [call.call_id for call in recorded(monitor, events.ToolCall)] == ["c1", "c2"]


def test_watch_records_a_later_call_that_a_provider_gives_the_same_id() -> None:
    with Monitor(embedder=False) as monitor:
        watch = Watch(monitor)
        call = TranscriptCall("bash", {"command": "ls"}, "c1")
        watch.refusal("c1", "bash", {"command": "ls"})
        watch.answered(answer_with(call), Turn(""))
        watch.answered(answer_with(call), Turn(""))
        assert len(recorded(monitor, events.ToolCall)) == 2


def test_watch_runs_records_a_refused_call_that_no_host_held_back() -> None:
    with Monitor(embedder=False) as monitor:
        watch = Watch(monitor)
        watch.answered(answer_with(TranscriptCall("bash", WIPE, "c1")), Turn(""))
        assert recorded(monitor, events.ToolCall) == []  # it is refused
        watch.runs("c1", "bash", WIPE)
        watch.runs("c1", "bash", WIPE)
        watch.result("c1", "deleted")
        assert [call.call_id for call in recorded(monitor, events.ToolCall)] == ["c1"]
        assert [result.result for result in recorded(monitor, events.ToolResult)] == ["deleted"]


def test_watch_runs_records_nothing_of_a_call_that_may_run() -> None:
    with Monitor(embedder=False) as monitor:
        watch = Watch(monitor)
        watch.answered(answer_with(TranscriptCall("bash", {"command": "ls"}, "c1")), Turn(""))
        watch.runs("c1", "bash", {"command": "ls"})
        assert len(recorded(monitor, events.ToolCall)) == 1


def test_conversation_answered_without_checks_records_what_would_be_refused() -> None:
    with Monitor(embedder=False) as monitor:
        conversation = Conversation(monitor)
        answer = answer_with(TranscriptCall("bash", WIPE, "c1"))
        assert conversation.answered(answer, Turn(""), checks=False) == []
        assert len(recorded(monitor, events.ToolCall)) == 1
        assert len(conversation.answered(answer, Turn(""))) == 1  # with them it is refused


@pytest.mark.parametrize(
    ("broken", "act"),
    [
        ("abandoned", lambda watch: watch.abandoned()),
        ("ran", lambda watch: watch.runs("c1", "bash", WIPE)),
    ],
)
def test_watch_records_a_fault_of_its_own_and_raises_nothing(
    broken: str, act: Callable[[Watch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    with Monitor(embedder=False) as monitor:
        watch = Watch(monitor)
        watch.answered(answer_with(TranscriptCall("bash", WIPE, "c1")), Turn(""))
        monkeypatch.setattr(Conversation, broken, fails)
        act(watch)
        assert [fault.where for fault in recorded(monitor, events.Fault)] == ["wrap"]
