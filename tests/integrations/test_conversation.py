"""Requests that repeat a conversation, as events of a monitor; no SDK takes part."""

from __future__ import annotations

from typing import Any

import pytest

from coherence import Monitor
from coherence.core.events import Fault, Feedback, Message, ToolCall, ToolResult, Usage
from coherence.integrations import conversation
from coherence.integrations.anthropic_wire import MessagesWire
from coherence.integrations.conversation import Conversation, Wire, events_of, plain
from coherence.integrations.gemini_wire import GeminiWire
from coherence.integrations.openai_wire import ChatWire, ResponsesWire

CHAT, RESPONSES, MESSAGES = ChatWire(), ResponsesWire(), MessagesWire()


@pytest.fixture
def monitor() -> Monitor:
    return Monitor(embedder=False, config={"tick": "manual"}, source="test")


def told(monitor: Monitor, *kinds: type) -> list[Any]:
    monitor.flush()
    seen = [record.event for record in reversed(monitor.events())]
    return [event for event in seen if isinstance(event, kinds)]


def said(monitor: Monitor) -> list[tuple[str, str]]:
    return [(event.role, event.content) for event in told(monitor, Message)]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calling(*ids: str, name: str = "ls", arguments: str = "{}") -> dict[str, Any]:
    calls = [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def completion(message: dict[str, Any]) -> dict[str, Any]:
    return {"id": "r", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}


def turn(talk: Conversation, wire: Wire, body: dict[str, Any], answer: dict[str, Any]) -> int:
    """Record a request and its answer; return the number of refused calls."""
    taken = talk.take(wire, body)
    return len(talk.answered(wire.answer(answer, taken.begun), taken))


def test_conversation_records_each_message_of_growing_requests_once(monitor: Monitor) -> None:
    talk = Conversation(monitor)
    history: list[Any] = [{"role": "system", "content": "Be brief."}, user("List them."), calling("1", "2")]
    turn(talk, CHAT, {"messages": history[:2]}, completion(history[2]))
    history += [result("1", "a.txt"), result("2", "b.txt"), assistant("Two files.")]
    turn(talk, CHAT, {"messages": history[:5]}, completion(history[5]))
    history += [user("Thanks."), assistant("Welcome.")]
    turn(talk, CHAT, {"messages": history[:7]}, completion(history[7]))
    assert said(monitor) == [
        ("system", "Be brief."),
        ("user", "List them."),
        ("assistant", ""),
        ("assistant", "Two files."),
        ("user", "Thanks."),
        ("assistant", "Welcome."),
    ]
    assert [(each.call_id, each.result, each.tool_name) for each in told(monitor, ToolResult)] == [
        ("1", "a.txt", "ls"),
        ("2", "b.txt", "ls"),
    ]
    assert [each.call_id for each in told(monitor, ToolCall)] == ["1", "2"]


def test_conversation_takes_a_history_that_begins_elsewhere_as_a_whole(monitor: Monitor) -> None:
    history = [user("List them."), calling("1"), result("1", "a.txt"), user("And now?")]
    turn(Conversation(monitor), CHAT, {"messages": history}, completion(assistant("Done.")))
    assert [content for _, content in said(monitor)] == ["List them.", "", "And now?", "Done."]
    assert [each.call_id for each in told(monitor, ToolCall)] == ["1"]
    assert len(told(monitor, ToolResult)) == 1


def test_conversation_takes_examples_before_each_question_once(monitor: Monitor) -> None:
    talk = Conversation(monitor)
    examples = [user("1 + 1?"), assistant("2"), user("2 + 2?"), assistant("4")]
    talk.take(CHAT, {"messages": [*examples, user("3 + 3?")]})
    for question in ("3 + 3?", "4 + 4?"):
        turn(talk, CHAT, {"messages": [*examples, user(question)]}, completion(assistant("Even.")))
    assert [content for _, content in said(monitor)] == [
        *("1 + 1?", "2", "2 + 2?", "4"),
        *("3 + 3?", "Even.", "4 + 4?", "Even."),
    ]


def test_conversation_counts_once_what_requests_without_an_answer_repeat(monitor: Monitor) -> None:
    talk = Conversation(monitor)
    talk.take(CHAT, {"messages": [user("One?")]})
    talk.take(CHAT, {"messages": [user("One?")]})
    turn(talk, CHAT, {"messages": [user("One?"), user("Two?")]}, completion(assistant("Yes.")))
    assert [content for _, content in said(monitor)] == ["One?", "Two?", "Yes."]


def test_conversation_counts_the_same_question_again_once_it_was_answered(monitor: Monitor) -> None:
    talk = Conversation(monitor)
    for _ in range(2):
        turn(
            talk,
            CHAT,
            {"messages": [{"role": "system", "content": "Be brief."}, user("One?")]},
            completion(assistant("Yes.")),
        )
    assert [content for _, content in said(monitor)] == ["Be brief.", "One?", "Yes.", "One?", "Yes."]


def test_conversation_records_a_result_once_if_its_history_is_asked_twice(monitor: Monitor) -> None:
    talk = Conversation(monitor)
    history = [user("List them."), calling("1"), result("1", "a.txt")]
    turn(talk, CHAT, {"messages": history[:1]}, completion(history[1]))
    for text in ("One.", "One file."):
        turn(talk, CHAT, {"messages": history}, completion(assistant(text)))
    assert len(told(monitor, ToolResult)) == 1


def test_conversation_finds_its_answer_in_a_history_whose_beginning_was_cut(monitor: Monitor) -> None:
    talk = Conversation(monitor)
    turn(talk, CHAT, {"messages": [user("One?")]}, completion(assistant("Yes.")))
    turn(talk, CHAT, {"messages": [assistant("Yes."), user("Two?")]}, completion(assistant("No.")))
    assert [content for _, content in said(monitor)] == ["One?", "Yes.", "Two?", "No."]


def test_conversation_names_what_it_cannot_read_and_goes_on(monitor: Monitor) -> None:
    odd: list[Any] = [{"role": "wizard", "content": "x"}, 7, user("Two?")]
    turn(Conversation(monitor), CHAT, {"messages": odd}, completion(assistant("Yes.")))
    assert [content for _, content in said(monitor)] == ["Two?", "Yes."]
    assert [each.where for each in told(monitor, Fault)] == ["wrap", "wrap"]


@pytest.mark.parametrize(
    ("text", "tool", "failed"),
    [
        ("ImportError: no module named yaml", "bash", True),
        ("12 passed in 0.31s", "bash", False),
        ("x = 1\nsh: 1: nope: not found", "read_file", False),
    ],
)
def test_conversation_infers_from_a_result_whether_its_call_failed(
    monitor: Monitor, text: str, tool: str, failed: bool
) -> None:
    history = [user("Go."), calling("1", name=tool, arguments='{"path": "a.py"}'), result("1", text)]
    Conversation(monitor).take(CHAT, {"messages": history})
    assert [each.error for each in told(monitor, ToolResult)] == [failed]


def test_conversation_refuses_a_call_and_keeps_the_others(monitor: Monitor) -> None:
    talk = Conversation(monitor)
    wipe = calling("1", name="bash", arguments='{"command": "rm -rf /"}')
    wipe["tool_calls"] += calling("2")["tool_calls"]
    assert turn(talk, CHAT, {"messages": [user("Go.")]}, completion(wipe)) == 1
    assert [each.call_id for each in told(monitor, ToolCall)] == ["2"]


def test_conversation_records_what_an_abandoned_answer_said_and_none_of_its_calls(monitor: Monitor) -> None:
    talk = Conversation(monitor)
    talk.take(CHAT, {"messages": [user("Go.")]})
    talk.abandoned(CHAT.answer(completion(calling("1") | {"content": "I lo"})))
    assert said(monitor)[-1] == ("assistant", "I lo")
    assert told(monitor, ToolCall) == []
    assert "abandoned" in told(monitor, Feedback)[0].text


def test_conversation_forgets_the_oldest_of_too_much(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "MAX_KEPT", 2)
    talk = Conversation(monitor)
    for text in ("a", "b", "c"):
        turn(talk, CHAT, {"messages": [user(text)]}, completion(assistant(f"{text}!")))
    assert len(talk._answers) == 2
    talk.take(CHAT, {"messages": [user("a"), assistant("a!"), user("again")]})  # forgotten, so told as a whole
    assert [content for _, content in said(monitor)][-3:] == ["a", "a!", "again"]


def test_chat_wire_reads_usage_and_cached_tokens(monitor: Monitor) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}
    turn(Conversation(monitor), CHAT, {"messages": [user("Go.")]}, {**completion(assistant("Yes.")), "usage": usage})
    (used,) = told(monitor, Usage)
    assert (used.input_tokens, used.output_tokens, used.cached_tokens, used.model) == (9, 4, 3, "m")
    assert used.cost_usd is None


def test_chat_wire_puts_chunks_together() -> None:
    def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta, **more}]}

    call = {"index": 0, "id": "1", "function": {"name": "ls", "arguments": ""}}
    chunks = [
        chunk({"role": "assistant", "content": "I "}),
        chunk({"content": "look."}),
        chunk({"tool_calls": [call]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]}),
    ]
    assert not CHAT.answer(CHAT.assemble(chunks)).finished
    end = [chunk({}, finish_reason="tool_calls"), {"choices": [], "usage": {"prompt_tokens": 9}}]
    answer = CHAT.answer(CHAT.assemble([*chunks, *end]))
    assert (answer.text, answer.finished, answer.tokens_in) == ("I look.", True, 9)
    assert [(each.id, each.name, each.arguments) for each in answer.calls] == [("1", "ls", {"a": 1})]


def test_chat_wire_takes_no_word_of_a_text_for_the_end() -> None:
    quoted = rb'data: {"choices":[{"delta":{"content":"say \"finish_reason\":\"stop\" or data: [DONE]"}}]}'
    assert CHAT.END.search(quoted) is None
    assert CHAT.END.search(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}') is not None
    assert CHAT.END.search(b'data: {"choices":[{"delta":{},"finish_reason":null}]}') is None
    assert CHAT.END.search(b"\ndata: [DONE]") is not None


def test_chat_wire_reads_the_calls_of_all_choices() -> None:
    both = [{"message": calling("1"), "finish_reason": "stop"}, {"message": calling("2"), "finish_reason": "stop"}]
    assert [call.id for call in CHAT.answer({"choices": both}).calls] == ["1", "2"]


def test_responses_wire_reads_items_and_leaves_the_providers_own_alone(monitor: Monitor) -> None:
    output = [
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "web_search_call", "id": "ws", "status": "completed"},
        {"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "1", "name": "ls", "arguments": "{}"},
    ]
    answer = {"id": "r1", "model": "m", "status": "completed", "output": output, "usage": {"input_tokens": 9}}
    talk = Conversation(monitor)
    turn(talk, RESPONSES, {"input": "Go.", "instructions": "Be brief."}, answer)
    more = [user("Go."), *output, {"type": "function_call_output", "call_id": "1", "output": "a.txt"}]
    turn(talk, RESPONSES, {"input": more, "instructions": "Be brief."}, {"id": "r2", "output": []})
    assert said(monitor)[:3] == [("system", "Be brief."), ("user", "Go."), ("assistant", "I look.")]
    assert [each.result for each in told(monitor, ToolResult)] == ["a.txt"]
    assert len([role for role, _ in said(monitor) if role == "user"]) == 1


def test_responses_wire_keeps_what_was_said_before_the_end() -> None:
    begun = {"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress", "output": []}}
    delta = {"type": "response.output_text.delta", "delta": "I lo"}
    answer = RESPONSES.answer(RESPONSES.assemble([begun, delta]))
    assert (answer.text, answer.finished, answer.id) == ("I lo", False, "r")


def test_messages_wire_reads_flags_results_and_tokens_of_caches(monitor: Monitor) -> None:
    call = {"type": "tool_use", "id": "1", "name": "ls", "input": {}}
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 4}
    talk = Conversation(monitor)
    body = {"system": [{"type": "text", "text": "Be brief."}], "messages": [user("Go.")]}
    turn(talk, MESSAGES, body, {"content": [call], "usage": usage, "stop_reason": "tool_use"})
    back = {"type": "tool_result", "tool_use_id": "1", "content": "all is well", "is_error": True}
    body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [back]}]
    talk.take(MESSAGES, body)
    (used,) = told(monitor, Usage)
    assert (used.input_tokens, used.cached_tokens) == (10, 3)  # 5 + 2 + 3
    assert [(each.result, each.error) for each in told(monitor, ToolResult)] == [("all is well", True)]
    assert said(monitor)[0] == ("system", "Be brief.")


def test_messages_wire_records_calls_that_the_provider_has_run_and_asks_about_none(monitor: Monitor) -> None:
    call = {"type": "server_tool_use", "id": "1", "name": "bash", "input": {"command": "rm -rf /"}}
    back = {"type": "bash_code_execution_tool_result", "tool_use_id": "1", "content": {"stdout": "gone"}}
    done = {"type": "text", "text": "Done."}
    answer = {"content": [call, back, done], "stop_reason": "end_turn"}
    assert turn(Conversation(monitor), MESSAGES, {"messages": [user("Go.")]}, answer) == 0
    assert [each.call_id for each in told(monitor, ToolCall)] == ["1"]
    assert [each.result for each in told(monitor, ToolResult)] == ['{"stdout":"gone"}']
    assert said(monitor)[1] == ("assistant", "Done.")


@pytest.mark.parametrize(
    ("wire", "body", "last"),
    [
        (CHAT, {"messages": [user("Go.")]}, {"role": "system", "content": "hint"}),
        (RESPONSES, {"input": "Go."}, {"role": "system", "content": "hint"}),
        (
            MESSAGES,
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "1"}, {"type": "text", "text": "hint"}],
            },
        ),
        (
            MESSAGES,
            {"messages": [user("Go.")]},
            {"role": "user", "content": [{"type": "text", "text": "Go."}, {"type": "text", "text": "hint"}]},
        ),
    ],
)
def test_wire_guided_adds_a_text_to_a_copy(wire: Wire, body: dict[str, Any], last: dict[str, Any]) -> None:
    before = str(body)
    made = wire.guided(body, "hint")
    assert (made.get("messages") or made["input"])[-1] == last
    assert str(body) == before


def test_messages_wire_guides_before_the_beginning_of_an_answer() -> None:
    made = MESSAGES.guided({"messages": [user("Go."), assistant("It is ")]}, "hint")
    assert made["messages"][0]["content"][-1] == {"type": "text", "text": "hint"}
    assert made["messages"][1] == assistant("It is ")


def test_plain_reads_objects_of_an_sdk_and_leaves_iterators_alone() -> None:
    class Block:
        def model_dump(self, **_: object) -> dict[str, str]:
            return {"type": "text", "text": "hi"}

    once = iter("ab")
    assert plain({"content": [Block()], "more": once}) == {
        "content": [{"type": "text", "text": "hi"}],
        "more": once,
    }
    assert next(once) == "a"


def test_events_of_skips_an_event_that_was_cut() -> None:
    assert list(events_of(b'data: {"a": 1}\r\n\r\n: ping\n\ndata: {"b":')) == [{"a": 1}]


def test_conversation_gives_results_without_ids_to_the_calls_of_the_same_name_in_order(monitor: Monitor) -> None:
    wire, talk = GeminiWire(), Conversation(monitor)
    calls = [{"function_call": {"name": name, "args": {"n": n}}} for n, name in enumerate(("bash", "read", "bash"))]
    asked = {"role": "user", "parts": [{"text": "Go."}]}
    turn = talk.take(wire, {"contents": [asked]})
    talk.answered(wire.answer({"candidates": [{"content": {"parts": calls}, "finish_reason": "STOP"}]}), turn)
    results = [
        {"function_response": {"name": name, "response": {"output": text}}}
        for name, text in (("bash", "a"), ("bash", "b"), ("read", "c"), ("bash", "late"))
    ]
    talk.take(wire, {"contents": [asked, {"role": "model", "parts": calls}, {"role": "user", "parts": results}]})
    bash, read, again = (call.call_id for call in told(monitor, ToolCall))
    assert [(result.call_id, result.result) for result in told(monitor, ToolResult)] == [
        (bash, "a"),
        (again, "b"),
        (read, "c"),
        (None, "late"),
    ]
