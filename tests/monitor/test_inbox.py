"""Events that wait to be folded: their order, and the bound on memory."""

from __future__ import annotations

import os
import random
from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coherence.core.events import Message, ToolCall, ToolResult
from coherence.core.validation import to_json
from coherence.monitor.inbox import LONG, OVERHEAD, Inbox, Losses, size_of, without_text


def message(text: str) -> Message:
    return Message("user", text)


def taken(inbox: Inbox) -> list[str]:
    found = []
    while (popped := inbox.pop()) is not None:
        assert isinstance(popped[1], Message)
        found.append(popped[1].content)
    return found


STEPS = st.lists(st.one_of(st.integers(0, 8_000), st.just("pop"), st.just("aside")), max_size=60)


# A text that is nearly as long as all that memory holds comes back from the file before a few short ones.
@example([0, 0, 0, "pop", "pop", "pop", "pop", "aside", 3793, "pop", 0, 0, "pop"])
@given(STEPS)
def test_inbox_with_a_file_gives_everything_back_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    inbox = Inbox(tmp_path_factory.mktemp("inbox"), most=5_000)
    model: deque[str] = deque()
    for number, step in enumerate(steps):
        if step == "pop":
            popped = inbox.pop()
            assert (popped is None) == (not model)
            assert popped is None or popped[1] == message(model.popleft())
        else:
            text = f"{number} {'x' * step}" if isinstance(step, int) else f"{number}"
            (inbox.put if isinstance(step, int) else inbox.put_aside)(float(number), message(text))
            model.append(text)
        assert len(inbox) == len(model)
    assert sorted(taken(inbox)) == sorted(model)


def test_inbox_what_memory_does_not_hold_is_in_a_file_that_nobody_finds(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, most=10_000)
    texts = [f"{number} {'x' * 3_000}" for number in range(20)]
    for number, text in enumerate(texts):
        inbox.put(float(number), message(text))
    assert inbox._bytes <= 10_000
    assert os.name == "nt" or os.listdir(tmp_path) == []
    assert taken(inbox) == texts
    assert inbox.losses() == Losses(0, 0)


def test_inbox_counts_the_bytes_in_memory_whatever_comes_and_goes(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, most=40_000)
    dice = random.Random(3)
    for _ in range(2_000):
        if dice.random() < 0.45:
            inbox.pop()
        else:
            inbox.put(dice.random(), message("x" * dice.choice([10, 3_000])))
        waiting = [*inbox._queue, *inbox._tail]
        assert inbox._bytes == sum(posted.size for posted in waiting) <= 40_000
        assert inbox._long.keys() <= {id(posted) for posted in waiting}
    assert inbox.losses() == Losses(0, 0)
    inbox.close()


def test_inbox_a_text_that_is_no_unicode_comes_back_from_the_file(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, most=1)
    inbox.put(1.0, message("half a \ud83d pair"))
    assert taken(inbox) == ["half a \ud83d pair"]


def test_inbox_without_a_file_the_oldest_texts_are_dropped_and_counted() -> None:
    inbox = Inbox(None, most=4 * (4_000 + OVERHEAD + 100))
    for number in range(10):
        inbox.put(float(number), message(f"{number} {'x' * 4_000}"))
    assert len(inbox) == 10
    assert inbox.losses().texts >= 6  # room is for four of them
    assert inbox.losses() == Losses(0, 0)
    found = taken(inbox)
    assert [text.startswith("[a text of") for text in found[:6]] == [True] * 6
    assert found[-1].startswith("9 ")


def test_inbox_a_folder_that_is_gone_costs_texts_and_no_events(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "gone", most=10_000)
    for number in range(10):
        inbox.put(float(number), message(f"{number} {'x' * 4_000}"))
    assert len(taken(inbox)) == 10
    assert inbox.losses().texts > 0


def test_put_aside_comes_before_what_was_put_later() -> None:
    inbox = Inbox()
    inbox.put(1.0, message("a"))
    inbox.put_aside(2.0, message("b"))
    inbox.put(3.0, message("c"))
    assert taken(inbox) == ["a", "b", "c"]


def test_without_text_says_how_much_is_missing_in_place_of_the_text() -> None:
    call = ToolCall("Write", msgspec.Raw(to_json("arguments", {"content": "x" * LONG})), "1")
    assert without_text(call, size_of(call)).tool_name == "Write"  # type: ignore[union-attr]
    result = without_text(ToolResult("x" * 5_000, error=True), 5_400)
    assert isinstance(result, ToolResult)
    assert result.error
    assert result.result == "[a text of 5,400 bytes was dropped: events came faster than they could be read]"
