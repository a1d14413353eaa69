"""A session of OpenCode: what the plug-in tells in, the lives of agents and answers out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coherence.core.events import Compaction, Fault, Message, ToolCall, ToolResult, Usage
from coherence.fleet.fleet import Fleet
from coherence.integrations.host_session import MAX_CONTEXT
from coherence.integrations.opencode.session import OpenCodeSession

DATA = Path(__file__).parents[2] / "data" / "opencode" / "payloads.jsonl"
PAYLOADS: list[dict[str, Any]] = [json.loads(line) for line in DATA.read_text().splitlines()]
MISSING = "python3: can't open file 'missing.py': [Errno 2] No such file or directory"


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", "hook_event_name": name, **fields}


def call(command: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    asked = {"tool_name": "bash", "tool_input": {"command": command}, "call_id": f"c{number}"}
    return event("tool.execute.before", **asked, **fields)


def result(output: str, number: int = 1, exit: int = 2, **fields: Any) -> dict[str, Any]:
    return event("tool.execute.after", tool_name="bash", call_id=f"c{number}", output=output, exit=exit, **fields)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet(embedder=False) as made:
        yield made


def kinds(fleet: Fleet, agent: str = OpenCodeSession.HOST) -> list[Any]:
    return [record.event for record in reversed(fleet.agent(agent).events())]  # they come newest first


def test_handle_a_recorded_session_is_taken_in(fleet: Fleet) -> None:
    session = OpenCodeSession(fleet, "s1")
    for payload in PAYLOADS:
        json.dumps(session.handle(payload, steers=False))
    found = kinds(fleet)
    said = [(each.role, each.content) for each in found if isinstance(each, Message)]
    asked = ("user", "What is in this folder?")
    words = [("assistant", text) for text in ("I look.", "I fail.", "Done.")]
    assert said == [asked, *words, asked, words[-1]]
    calls = [each for each in found if isinstance(each, ToolCall)]
    results = [each for each in found if isinstance(each, ToolResult)]
    names = ["bash", "bash", "read", "write", "edit", "bash", "invalid", "task"]
    assert sorted(each.tool_name for each in calls) == sorted(names)
    # The missing program, the missing file, the missing tool; the refused call has no result where nothing is refused.
    assert [each.error for each in results].count(True) == 3
    assert sum(isinstance(each, Usage) for each in found) == 9  # one a turn: seven, and two
    (child,) = [monitor.agent for monitor in fleet if monitor.agent != OpenCodeSession.HOST]
    assert child.startswith("opencode/general-")
    assert [each.tool_name for each in kinds(fleet, child) if isinstance(each, ToolCall)] == ["bash"]
    assert fleet.agent(child).state.facts.goal == "Count the files."


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(PAYLOADS),
    st.dictionaries(
        st.sampled_from(sorted({name for payload in PAYLOADS for name in payload} - {"hook_event_name"})),
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.lists(
            st.dictionaries(
                st.sampled_from(["kind", "text", "tokens", "cost", "agent_id"]),
                st.sampled_from(["text", "usage", "shown", "error"]) | st.floats() | st.just({"input": -1, "cache": 7}),
            )
        )
        | st.just({"a": []}),
        max_size=4,
    ),
)
def test_handle_fields_of_any_type_raise_nothing(payload: dict[str, Any], other: dict[str, Any]) -> None:
    with Fleet(embedder=False) as fleet:
        json.dumps(OpenCodeSession(fleet, "s1").handle({**payload, **other}))


def test_handle_a_harmful_call_nobody_asked_for_is_denied_and_again_on_retry(fleet: Fleet) -> None:
    session = OpenCodeSession(fleet, "s1")
    session.handle(event("chat.message", prompt="Tell me what is in this folder."))
    for number in (1, 2):
        answer = session.handle(call("rm -rf ~", number))
        assert answer["decision"] == "deny"
        assert "rm -rf ~" in answer["reason"]
        assert len(answer["reason"]) <= MAX_CONTEXT + 1
        assert session.refuses(answer)
        # The client reports a refused call as one that has failed.
        failed = event("tool.failed", tool_name="bash", call_id=f"c{number}", error=answer["reason"])
        assert session.handle(failed) == {}
    assert not [each for each in kinds(fleet) if isinstance(each, ToolCall | ToolResult)]  # none of them ran


def test_handle_observes_only_where_it_is_told_to(fleet: Fleet) -> None:
    session = OpenCodeSession(fleet, "s1")
    assert session.handle(call("rm -rf ~"), steers=False) == {}
    for number in range(5):
        session.handle(call("python3 missing.py", number), steers=False)
        assert session.handle(result(MISSING, number), steers=False) == {}
    assert fleet.agent(OpenCodeSession.HOST).counters.errors == 5


def test_handle_a_loop_is_told_once_each_and_counts_as_given_once_it_was_shown(fleet: Fleet) -> None:
    session, told = OpenCodeSession(fleet, "s1"), []
    session.handle(event("chat.message", prompt="Run it."))
    for number in range(6):
        session.handle(call("python3 missing.py", number))
        if answer := session.handle(result(MISSING, number)):
            told.append(answer["context"])
            assert not session.refuses(answer)
    assert "returned the same error" in told[0]
    assert len(set(told)) == len(told) >= 2
    assert not [each for each in kinds(fleet) if isinstance(each, Message) and each.firing]
    session.handle(event("session.idle", notes=[{"kind": "shown", "text": told[0]}]))
    assert len([each for each in kinds(fleet) if isinstance(each, Message) and each.firing]) == 1


def test_handle_a_call_that_the_client_could_not_make_ends_with_an_error(fleet: Fleet) -> None:
    session, answers = OpenCodeSession(fleet, "s1"), []
    session.handle(event("chat.message", prompt="Read it."))
    for number in range(4):
        session.handle(
            event("tool.execute.before", tool_name="read", tool_input={"filePath": "a"}, call_id=f"c{number}")
        )
        failed = event("tool.failed", tool_name="read", call_id=f"c{number}", error="File not found: /p/a")
        answers.append(session.handle(failed))
    results = [each for each in kinds(fleet) if isinstance(each, ToolResult)]
    assert [(each.result, each.error) for each in results] == [("File not found: /p/a", True)] * 4
    assert any("context" in answer for answer in answers)


def test_handle_tokens_of_the_cache_count_and_an_unknown_price_is_no_cost(fleet: Fleet) -> None:
    session = OpenCodeSession(fleet, "s1")
    session.handle(event("chat.message", prompt="Hello.", model="claude"))
    tokens = {"input": 10, "output": 4, "reasoning": 3, "cache": {"read": 200, "write": 50}}
    notes = [{"kind": "usage", "tokens": tokens, "cost": 0.5}, {"kind": "usage", "tokens": {}, "cost": 0}]
    session.handle(event("session.idle", notes=notes))
    assert [each for each in kinds(fleet) if isinstance(each, Usage)] == [
        Usage(input_tokens=260, output_tokens=7, cost_usd=0.5, model="claude"),  # 10 + 200 + 50, and 4 + 3
        Usage(input_tokens=None, output_tokens=None, cost_usd=None, model="claude"),
    ]


def test_handle_quotes_that_the_command_line_puts_around_a_prompt_are_taken_off(fleet: Fleet) -> None:
    session = OpenCodeSession(fleet, "s1")
    for prompt in ('"Count the files."\n', '"a" or "b"?'):
        session.handle(event("chat.message", prompt=prompt))
    assert [each.content for each in kinds(fleet) if isinstance(each, Message)] == ["Count the files.", '"a" or "b"?']


def test_handle_a_text_that_is_told_again_is_recorded_once(fleet: Fleet) -> None:
    session = OpenCodeSession(fleet, "s1")
    notes = [{"kind": "text", "id": id, "text": text} for id, text in (("1", "One."), ("1", "One."), ("2", "Two."))]
    session.handle(event("session.idle", notes=notes))
    assert [each.content for each in kinds(fleet) if isinstance(each, Message)] == ["One.", "Two."]


def test_handle_a_fault_of_the_model_is_recorded(fleet: Fleet) -> None:
    session = OpenCodeSession(fleet, "s1")
    session.handle(event("session.idle", notes=[{"kind": "error", "text": "overloaded"}, {"kind": "error"}, 7]))
    assert [each.message for each in kinds(fleet) if isinstance(each, Fault)] == ["overloaded", "unknown"]


def test_handle_what_the_user_wants_is_told_again_once_the_context_was_compacted(fleet: Fleet) -> None:
    session = OpenCodeSession(fleet, "s1")
    for prompt in ("Count the files.", "Only those in src."):
        session.handle(event("chat.message", prompt=prompt))
    answers = []
    for number in range(4):
        notes = [{"kind": "compaction", "text": "Under way."}] if number == 2 else []
        session.handle(call("python3 missing.py", number, notes=notes))
        answers.append(session.handle(result(MISSING, number)).get("context", ""))
    again = "Before the context was compacted, the user asked: Count the files."
    assert [again in answer for answer in answers] == [False, False, True, False]
    assert "The user's newest request was: Only those in src." in answers[2]
    assert "returned the same error" in answers[2]  # the news of that call, too
    session.handle(event("session.idle", notes=[{"kind": "shown", "text": answers[2]}]))
    assert len([each for each in kinds(fleet) if isinstance(each, Message) and each.firing]) == 1
    assert [each.summary for each in kinds(fleet) if isinstance(each, Compaction)] == ["Under way."]
