"""The two metrics over a monitor's life: tasks, compaction, sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from coherence.core.readings import Reading
from coherence.metrics import Grounding, UnusedOutput, compute_grounding
from coherence.monitor.monitor import Monitor
from coherence.providers import HashingEmbedder

CONFIG = {"metrics": ["grounding", "unused_output"]}


def latest(m: Monitor) -> Reading:
    m.decide()
    assert m.latest is not None
    return m.latest


def test_grounding_before_anything_is_stated_both_are_unknown_with_a_reason() -> None:
    m = Monitor(goal="Find order 59XX6W", embedder=False, config=CONFIG)
    reading = latest(m)
    assert reading.metrics["grounding"] is None
    assert reading.metrics["unused_output"] is None
    assert Grounding.why_unknown in str(reading.unknown["grounding"])
    assert UnusedOutput.why_unknown in str(reading.unknown["unused_output"])


def test_grounding_metric_the_newest_statement_counts() -> None:
    m = Monitor(goal="Find order 59XX6W", embedder=False, config=CONFIG)
    m.message("assistant", "Order 77ZZ77 it is.")
    assert latest(m).metrics["grounding"] == 0.0
    call = m.tool_call("get", {"id": "59XX6W"})
    assert latest(m).metrics["grounding"] == 1.0  # the call's id came from the goal
    m.tool_result("in Drammen, shelf B17", call=call)
    m.message("assistant", "59XX6W lies in shelf B17.")
    reading = latest(m)
    assert reading.metrics["grounding"] == 1.0
    assert reading.metrics["unused_output"] == 0.0


def test_a_compaction_forgets_nothing_that_was_given_and_gives_nothing() -> None:
    m = Monitor(goal="Find the order", embedder=False, config=CONFIG)
    m.tool_result("order 59XX6W", tool="get")
    m.compaction("The order was 88YY88.")
    m.message("assistant", "59XX6W")
    assert latest(m).metrics["grounding"] == 1.0
    m.message("assistant", "88YY88")
    assert latest(m).metrics["grounding"] == 0.0


def test_grounding_metric_memories_corrections_and_the_system_prompt_are_given() -> None:
    m = Monitor(goal="Find the order", embedder=False, config=CONFIG)
    m.memory("The depot is D-4711.")
    m.correction("No, I mean order 59XX6W.")
    m.message("system", "Complaints go to help@example.org.")
    m.message("assistant", "59XX6W is in D-4711; write to help@example.org.")
    assert latest(m).metrics["grounding"] == 1.0


def test_grounding_metric_a_new_goal_begins_with_unused_output_anew() -> None:
    m = Monitor(goal="What is the weather?", embedder=False, config=CONFIG)
    m.tool_result("heavy showers in Bergen", tool="weather")
    m.message("assistant", "I do not know.")
    assert latest(m).metrics["unused_output"] == 1.0
    m.goal("And who is mayor?")
    assert latest(m).metrics["unused_output"] is None


@pytest.mark.parametrize("session", [None, "second"])
def test_grounding_metric_what_was_given_is_known_after_a_restart(session: str | None, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with Monitor(resume=True, store=path, goal="Find the order", embedder=HashingEmbedder(), config=CONFIG) as m:
        m.tool_result("order 59XX6W", tool="get")
        m.decide()
    with Monitor(resume=True, store=path, embedder=HashingEmbedder(), config=CONFIG, session=session) as m:
        m.message("assistant", "It is order 59XX6W.")
        known = latest(m).metrics["grounding"]
    assert known == (1.0 if session is None else 0.0)  # another session of the agent was given nothing


def test_compute_grounding_the_function_and_the_metric_agree() -> None:
    source, answer = "order 59XX6W: 1200 USD", "59XX6W costs 1300 dollars"
    m = Monitor(goal="What does it cost?", embedder=False, config=CONFIG)
    m.tool_result(source, tool="get")
    m.message("assistant", answer)
    assert latest(m).metrics["grounding"] == compute_grounding(answer, [source]).value == 0.75  # 3 of 3 + 1


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((None, ["a"]), TypeError, "answer must be a str"),
        (("a", None), TypeError, "sources must be a sequence"),
        (("a", "one text"), TypeError, "sources must be a sequence"),
        (("a", [None]), TypeError, "sources must be a sequence"),
    ],
)
def test_compute_grounding_wrong_arguments_are_told(
    arguments: tuple[object, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        compute_grounding(*arguments)  # type: ignore[arg-type]


def test_compute_grounding_an_unknown_extractor_is_told_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="no extractor is named 'nope'; there are urls"):
        compute_grounding("a", [], extractors=("nope",))
    assert compute_grounding("a", (), extractors=("urls",)).value is None
