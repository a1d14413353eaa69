"""Real clients of OpenAI and Anthropic, wrapped, before a server on the loopback device."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from hosts.messages_stub import Fail, Step, Text, Tool, Wait

import coherence
from coherence import CoherenceBlocked, Monitor
from coherence.core.events import Event, Fault, Feedback, Message, ToolCall, ToolResult, Usage, text_of
from frameworks.agents import CASES, GOAL, Ask, ask_chat, ask_messages, ask_responses, by_hand, run
from frameworks.model_stub import ModelStub

pytestmark = pytest.mark.frameworks

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

MAKERS: dict[str, Callable[[str], Any]] = {
    "openai": lambda url: openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=2),
    "async openai": lambda url: openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=2),
    "azure": lambda url: openai.AzureOpenAI(api_key="k", azure_endpoint=url, api_version="2025-01-01"),
    "async azure": lambda url: openai.AsyncAzureOpenAI(api_key="k", azure_endpoint=url, api_version="2025-01-01"),
    "anthropic": lambda url: anthropic.Anthropic(api_key="k", base_url=url, max_retries=2),
    "async anthropic": lambda url: anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=2),
}
APIS: dict[str, tuple[str, Ask]] = {
    "chat": ("openai", ask_chat),
    "responses": ("openai", ask_responses),
    "messages": ("anthropic", ask_messages),
}
BLOCKED = {"injected", "over budget"}
WIPE: Step = (Text("I clean up."), Tool("bash", {"command": "rm -rf /"}))


def watched(kind: str, stub: ModelStub, **options: Any) -> tuple[Any, Monitor]:
    """Return a wrapped client and its monitor."""
    options.setdefault("monitor", Monitor(goal=GOAL, embedder=False, config={"tick": "manual"}, source="wrap"))
    client = coherence.wrap(MAKERS[kind](stub.url), **options)
    return client, coherence.monitor_of(client)


def events_of(monitor: Monitor, *kinds: type) -> list[Any]:
    """Return what was recorded of some kinds, oldest first."""
    monitor.flush()
    seen: list[Event] = [record.event for record in reversed(monitor.events())]
    return [event for event in seen if isinstance(event, kinds)]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("api", list(APIS))
@pytest.mark.parametrize("name", list(CASES))
def test_wrap_tells_the_monitor_what_a_user_would_tell_it_by_hand(
    name: str, api: str, sync: bool, streamed: bool
) -> None:
    case, (maker, ask) = CASES[name], APIS[api]
    expected = by_hand(case)
    with ModelStub(case.steps()) as stub, case.monitor() as monitor:
        client, _ = watched(maker if sync else f"async {maker}", stub, monitor=monitor)

        async def go() -> Any:
            return await run(case, ask, client, monitor, streamed=streamed)

        told, was_blocked = asyncio.run(go())
    assert told == expected
    assert was_blocked == (name in BLOCKED)


CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
MESSAGES: dict[str, Any] = {"max_tokens": 9, **CHAT}
RESPONSES: dict[str, Any] = {"model": "m", "input": "Hello"}


def chat_stream(client: Any, read: int = 1000) -> list[Any]:
    """Read some chunks of a stream, as who breaks out of the loop does."""
    seen = []
    with client.chat.completions.create(**CHAT, stream=True) as stream:
        for chunk in stream:
            seen.append(chunk)
            if len(seen) == read:
                break
    return seen


def chat_helper(client: Any) -> Any:
    with client.chat.completions.stream(**CHAT) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def responses_helper(client: Any) -> Any:
    with client.responses.stream(**RESPONSES) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def messages_helper(client: Any) -> Any:
    with client.messages.stream(**MESSAGES) as stream:
        return stream.get_final_message()


def streaming_response(client: Any) -> Any:
    with client.chat.completions.with_streaming_response.create(**CHAT) as response:
        return response.parse()


def lines_of_streaming_response(client: Any) -> Any:
    with client.messages.with_streaming_response.create(**MESSAGES, stream=True) as response:
        return list(response.iter_lines())


STYLES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "chat": ("openai", lambda client: client.chat.completions.create(**CHAT)),
    "chat stream": ("openai", chat_stream),
    "chat helper": ("openai", chat_helper),
    "chat raw": ("openai", lambda client: client.chat.completions.with_raw_response.create(**CHAT)),
    "chat raw stream": (
        "openai",
        lambda client: list(client.chat.completions.with_raw_response.create(**CHAT, stream=True).parse()),
    ),
    "chat streaming response": ("openai", streaming_response),
    "chat parse": ("openai", lambda client: client.chat.completions.parse(**CHAT)),
    "chat of azure": ("azure", lambda client: client.chat.completions.create(**CHAT)),
    "chat with options": ("openai", lambda client: client.with_options(timeout=5).chat.completions.create(**CHAT)),
    "responses": ("openai", lambda client: client.responses.create(**RESPONSES)),
    "responses helper": ("openai", responses_helper),
    "responses raw": ("openai", lambda client: client.responses.with_raw_response.create(**RESPONSES)),
    "messages": ("anthropic", lambda client: client.messages.create(**MESSAGES)),
    "messages stream": ("anthropic", lambda client: list(client.messages.create(**MESSAGES, stream=True))),
    "messages helper": ("anthropic", messages_helper),
    "messages raw": ("anthropic", lambda client: client.messages.with_raw_response.create(**MESSAGES)),
    "messages lines": ("anthropic", lines_of_streaming_response),
    "messages copy": ("anthropic", lambda client: client.copy(max_retries=0).messages.create(**MESSAGES)),
    "beta messages": ("anthropic", lambda client: client.beta.messages.create(**MESSAGES)),
}
"""Name of a style -> its client, and how it asks."""


@pytest.mark.parametrize("style", list(STYLES))
def test_wrap_records_the_answer_once_and_gives_what_the_client_gives_in_each_style(style: str) -> None:
    kind, ask = STYLES[style]
    with ModelStub([(Text("Hello you."),)] * 2) as stub:
        client, monitor = watched(kind, stub)
        got, bare = ask(client), ask(coherence.unwrap(client))
        said = events_of(monitor, Message)
        assert [(each.role, each.content) for each in said] == [("user", "Hello"), ("assistant", "Hello you.")]
        assert type(got) is type(bare)
        client.close()


@pytest.mark.parametrize("style", list(STYLES))
def test_wrap_without_guide_changes_no_byte_of_a_request(style: str) -> None:
    kind, ask = STYLES[style]
    with ModelStub([]) as stub:
        client, _ = watched(kind, stub)
        ask(coherence.unwrap(client))
        ask(client)
        bare, ours = stub.asked
        assert (ours.path, ours.headers, ours.raw) == (bare.path, bare.headers, bare.raw)
        client.close()


@pytest.mark.parametrize("style", list(STYLES))
def test_wrap_raises_for_a_call_that_must_not_run_in_each_style(style: str) -> None:
    kind, ask = STYLES[style]
    with ModelStub([WIPE, (Text("Good."),)]) as stub:
        client, monitor = watched(kind, stub)
        with pytest.raises(CoherenceBlocked) as caught:
            ask(client)
        assert caught.value.tools == ("bash",)
        assert caught.value.decision == "block"
        assert "rm -rf /" in str(caught.value)
        assert "coherence.monitor_of(client)" in str(caught.value)
        assert events_of(monitor, ToolCall) == []
        # the same question again tells nothing twice
        ask(client)
        assert [each.content for each in events_of(monitor, Message)] == ["Hello", "I clean up.", "Good."]
        client.close()


def test_coherence_blocked_carries_the_answer_so_that_the_agent_can_be_told() -> None:
    with ModelStub([WIPE, (Text("I leave it."),)]) as stub:
        client, monitor = watched("openai", stub)
        with pytest.raises(CoherenceBlocked) as caught:
            client.chat.completions.create(**CHAT)
        message = caught.value.answer.choices[0].message
        told = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "refused"}
        client.chat.completions.create(model="m", messages=[*CHAT["messages"], message, told])
        assert [each.result for each in events_of(monitor, ToolResult)] == ["refused"]
        assert len(events_of(monitor, Message)) == 3
        client.close()


@pytest.mark.parametrize("api", list(APIS))
def test_wrap_records_what_was_asked_although_the_caller_changes_it_as_soon_as_the_answer_is_there(api: str) -> None:
    field = "input" if api == "responses" else "messages"
    path = {"chat": "chat.completions", "responses": "responses", "messages": "messages"}[api]
    with ModelStub([[Text("Here.")]]) as stub:
        client, monitor = watched(APIS[api][0], stub)
        end = client
        for name in path.split("."):
            end = getattr(end, name)
        said: list[dict[str, Any]] = [{"role": "user", "content": "Count the files."}]
        more = {"max_tokens": 9} if api == "messages" else {}
        end.create(model="m", **{field: said}, **more)
        said[0]["content"] = "changed"
        said.append({"role": "user", "content": "added"})
        assert [text_of(message) for message in events_of(monitor, Message)] == ["Count the files.", "Here."]


def test_wrap_sends_nothing_once_a_budget_is_used_up() -> None:
    with ModelStub([]) as stub:
        client = coherence.wrap(MAKERS["openai"](stub.url), budget={"tokens": 1000}, config={"tick": "manual"})
        client.chat.completions.create(**CHAT)
        with pytest.raises(CoherenceBlocked, match="1,050 of 1,000 tokens") as caught:
            client.chat.completions.create(**CHAT)
        assert caught.value.tools == ()
        assert "not sent" in str(caught.value)
        assert len(stub.asked) == 1
        monitor = coherence.monitor_of(client)
        monitor.unblock("go on")
        client.chat.completions.create(**CHAT)
        assert len(stub.asked) == 2
        monitor.close()
        client.close()


@pytest.mark.parametrize("api", list(APIS))
def test_wrap_with_guide_tells_the_agent_once_and_counts_it_as_delivered(api: str) -> None:
    kind, ask = APIS[api]
    case = CASES["looping"]
    with ModelStub(case.steps()) as stub, case.monitor() as monitor:
        client, _ = watched(kind, stub, monitor=monitor, guide=True)
        asyncio.run(run(case, ask, client, monitor, streamed=False))
        given = [record.event.firing for record in monitor.events() if isinstance(record.event, Message)]
        bodies = [asked.body for asked in stub.asked]
    delivered = [firing for firing in given if firing]
    told = [_told(body) for body in bodies]
    # 12 requests: the first and the one with the first error need no hint; each other error is one more than before
    assert [bool(text) for text in told] == [False] * 2 + [True] * 10
    assert told[2].startswith('bash returned the same error 2 times for the same command: "ImportError')
    assert 0 < len(delivered) <= 10
    users = [each.content for each in events_of(monitor, Message) if each.role == "user"]
    assert users == [GOAL]


def test_wrap_tells_the_agent_again_what_was_lost_with_a_request() -> None:
    with ModelStub([(Fail(400),)]) as stub:
        client, monitor = watched("openai", stub, guide=True)
        for _ in range(2):
            monitor.tool_call("bash", {"command": "pytest -q"})
            monitor.tool_result("ImportError: no module named yaml", error=True)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(**CHAT)
        assert [each.firing for each in events_of(monitor, Message) if each.firing] == []
        client.chat.completions.create(**CHAT)
        first, second = (_told(asked.body) for asked in stub.asked)
        assert first == second != ""
        assert len([each.firing for each in events_of(monitor, Message) if each.firing]) == 1
        client.close()


def _told(body: dict[str, Any]) -> str:
    """Return what a request has behind the newest result."""
    last: dict[str, Any] = (body["messages"] if "messages" in body else body["input"])[-1]
    if isinstance(last.get("content"), list):
        return last["content"][-1].get("text", "") if len(last["content"]) > 1 else ""
    return last["content"] if last.get("role") == "system" else ""


def test_wrap_never_changes_what_the_caller_gave() -> None:
    case, given = CASES["looping"], [{"role": "user", "content": [{"type": "text", "text": GOAL}]}]
    with ModelStub([]) as stub, case.monitor() as monitor:
        client, _ = watched("anthropic", stub, monitor=monitor, guide=True)
        for _ in range(4):
            monitor.tool_call("bash", {"command": "pytest -q"})
            monitor.tool_result("ImportError: no module named yaml", error=True)
        client.messages.create(model="m", max_tokens=9, messages=given)
        client.close()
    assert given == [{"role": "user", "content": [{"type": "text", "text": GOAL}]}]
    assert len(stub.asked[0].body["messages"][0]["content"]) == 2


@pytest.mark.parametrize("style", ["chat", "messages", "messages stream"])
def test_wrap_counts_attempts_and_records_the_answer_once(style: str) -> None:
    kind, ask = STYLES[style]
    busy: Step = (Fail(429, "rate_limit_error"),)
    with ModelStub([busy, busy, (Text("At last."),)]) as stub:
        client, monitor = watched(kind, stub)
        ask(client)
        assert [each.text for each in events_of(monitor, Feedback)] == ["the model was asked 3 times: 429, 429, 200"]
        assert [each.content for each in events_of(monitor, Message)] == ["Hello", "At last."]
        client.close()


def test_wrap_records_the_error_that_the_client_raises_and_the_same_question_once() -> None:
    with ModelStub([(Fail(400, "invalid_request_error", "no such model"),), (Text("Yes."),)]) as stub:
        client, monitor = watched("openai", stub)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(**CHAT)
        client.chat.completions.create(**CHAT)
        (fault,) = events_of(monitor, Fault)
        assert (fault.where, "no such model" in fault.message) == ("model", True)
        assert [each.content for each in events_of(monitor, Message)] == ["Hello", "Yes."]
        client.close()


def test_wrap_records_that_nobody_answers() -> None:
    monitor = Monitor(embedder=False, source="wrap")
    bare = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:1/v1", max_retries=0)
    client = coherence.wrap(bare, monitor=monitor)
    with pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(**CHAT)
    assert [each.where for each in events_of(monitor, Fault)] == ["model"]
    client.close()


def test_wrap_records_an_abandoned_stream_with_what_was_said_so_far() -> None:
    with ModelStub([(Text("Hello you."), Wait(0.2), Tool("bash", {"command": "ls"}))]) as stub:
        client, monitor = watched("openai", stub)
        chat_stream(client, read=2)
        (said,) = (each for each in events_of(monitor, Message) if each.role == "assistant")
        assert said.content == "Hello"
        assert "abandoned" in events_of(monitor, Feedback)[0].text
        assert events_of(monitor, ToolCall) == []
        client.close()


def test_wrap_takes_a_stream_as_whole_that_is_closed_at_the_reason_of_its_end() -> None:
    with ModelStub([(Text("I look."), Tool("bash", {"command": "ls"}))]) as stub:
        client, monitor = watched("openai", stub)
        with client.chat.completions.create(**CHAT, stream=True) as stream:
            next(chunk for chunk in stream if chunk.choices[0].finish_reason)
        assert [each.tool_name for each in events_of(monitor, ToolCall)] == ["bash"]
        assert events_of(monitor, Feedback) == []
        client.close()


def test_wrap_hands_a_chunk_on_as_soon_as_it_is_there() -> None:
    with ModelStub([(Text("Hello."), Wait(0.5), Text("Bye."))]) as stub:
        client, _ = watched("openai", stub)
        began = time.monotonic()
        with client.chat.completions.create(**CHAT, stream=True) as stream:
            next(chunk for chunk in stream if chunk.choices[0].delta.content)
            assert time.monotonic() - began < 0.4  # the stub waits 0.5 s before it says more
            list(stream)
        client.close()


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_wrap_records_how_long_an_answer_took(streamed: bool) -> None:
    with ModelStub([(Text("Hello."), Wait(0.3), Text("Bye."))]) as stub:
        client, monitor = watched("anthropic", stub)
        began = time.monotonic()
        if streamed:
            list(client.messages.create(**MESSAGES, stream=True))
        else:
            client.messages.create(**MESSAGES)
        took = time.monotonic() - began
        (usage,) = events_of(monitor, Usage)
        assert (0.3 if streamed else 0) <= usage.duration_s <= took  # the stub waits while it streams
        client.close()


@pytest.mark.parametrize("kind", ["async openai", "async azure"])
def test_wrap_of_an_async_client_reads_streams_and_refuses(kind: str) -> None:
    async def go() -> None:
        with ModelStub([(Text("Hello."),), (Text("Hello."),), (Text("Hello."),), WIPE]) as stub:
            client, monitor = watched(kind, stub)
            await client.chat.completions.create(**CHAT)
            async with client.chat.completions.stream(**CHAT) as stream:
                await stream.get_final_completion()
            async with client.with_options(timeout=3).chat.completions.with_streaming_response.create(**CHAT) as got:
                await got.parse()
            with pytest.raises(CoherenceBlocked):
                async for _ in await client.chat.completions.create(**CHAT, stream=True):
                    pass
            said = [each.content for each in events_of(monitor, Message) if each.role == "assistant"]
            assert said == ["Hello.", "Hello.", "Hello.", "I clean up."]
            await client.close()

    asyncio.run(go())


def test_wrap_leaves_all_other_endpoints_alone() -> None:
    with ModelStub([]) as stub:
        client, monitor = watched("openai", stub)
        client.embeddings.create(model="m", input="x", encoding_format="float")
        client.models.list()
        other, more = watched("anthropic", stub)
        params = {"max_tokens": 9, "model": "m", "messages": [{"role": "user", "content": "x"}]}
        other.messages.batches.create(requests=[{"custom_id": "1", "params": params}])
        other.messages.count_tokens(model="m", messages=params["messages"])
        other.models.list()
        assert events_of(monitor, Message, Usage, Fault) == events_of(more, Message, Usage, Fault) == []
        assert len(stub.others) == 5
        client.close()
        other.close()


def test_wrap_follows_a_conversation_that_the_provider_keeps() -> None:
    with ModelStub([(Text("One."),), (Text("Two."),)]) as stub:
        client, monitor = watched("openai", stub)
        first = client.responses.create(model="m", input="Count.")
        client.responses.create(model="m", input="Go on.", previous_response_id=first.id)
        said = [each.content for each in events_of(monitor, Message)]
        assert said == ["Count.", "One.", "Go on.", "Two."]
        client.close()


def test_wrap_knows_an_answer_that_continues_the_beginning_in_its_request() -> None:
    with ModelStub([(Text("42."),), (Text("Gladly."),)]) as stub:
        client, monitor = watched("anthropic", stub)
        asked = [{"role": "user", "content": "What is 6 x 7?"}, {"role": "assistant", "content": "It is "}]
        client.messages.create(model="m", max_tokens=9, messages=asked)
        more = [asked[0], {"role": "assistant", "content": "It is 42."}, {"role": "user", "content": "Thanks."}]
        client.messages.create(model="m", max_tokens=9, messages=more)
        said = [each.content for each in events_of(monitor, Message)]
        assert said == ["What is 6 x 7?", "It is 42.", "Thanks.", "Gladly."]
        client.close()


def test_wrap_reads_messages_that_can_be_read_only_once_and_sends_them() -> None:
    with ModelStub([]) as stub:
        client, monitor = watched("anthropic", stub)
        client.messages.create(model="m", max_tokens=9, messages=(each for each in CHAT["messages"]))
        assert stub.asked[0].body["messages"] == CHAT["messages"]
        assert [each.content for each in events_of(monitor, Message)] == ["Hello", "ok"]
        client.close()


def test_wrap_counts_images_and_keeps_none() -> None:
    data = "A" * 4000
    content = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": f"data:,{data}"}}]
    with ModelStub([]) as stub:
        client, monitor = watched("openai", stub)
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": content}])
        assert events_of(monitor, Message)[0].content == "Look.\n[image]"
        client.close()


def test_unwrap_gives_the_client_back_and_the_original_is_never_watched() -> None:
    with ModelStub([]) as stub:
        bare = MAKERS["openai"](stub.url)
        client = coherence.wrap(bare, monitor=Monitor(embedder=False))
        assert coherence.unwrap(client) is bare
        assert type(client) is openai.OpenAI
        bare.chat.completions.create(**CHAT)
        assert events_of(coherence.monitor_of(client), Message) == []
        other = client.with_options(timeout=7)
        assert coherence.monitor_of(other) is coherence.monitor_of(client)
        plain = coherence.unwrap(other)
        assert plain.timeout == 7
        plain.chat.completions.create(**CHAT)
        assert events_of(coherence.monitor_of(client), Message) == []
        client.close()


def test_wrap_refuses_what_it_does_not_know_and_what_is_wrapped() -> None:
    bare = openai.OpenAI(api_key="k")
    for stranger in (object(), bare.chat, openai):
        with pytest.raises(TypeError, match=r"openai\.OpenAI.*anthropic\.Anthropic"):
            coherence.wrap(stranger)
    client = coherence.wrap(bare, monitor=Monitor(embedder=False))
    with pytest.raises(ValueError, match="wrapped already"):
        coherence.wrap(client)
    with pytest.raises(ValueError, match="not wrapped"):
        coherence.unwrap(bare)
    with pytest.raises(ValueError, match="monitor= alone"):
        coherence.wrap(bare, monitor=Monitor(embedder=False), goal="x")
    client.close()


def test_wrap_goes_on_if_an_answer_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from coherence.integrations.openai_wire import ChatWire

    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    with ModelStub([(Text("Hello you."),)] * 3) as stub:
        client, monitor = watched("openai", stub)
        monkeypatch.setattr(ChatWire, "answer", broken)
        assert client.chat.completions.create(**CHAT).choices[0].message.content == "Hello you."
        assert len(chat_stream(client)) == 4
        monkeypatch.setattr(ChatWire, "items", broken)
        assert client.chat.completions.create(**CHAT).choices[0].message.content == "Hello you."
        assert {each.where for each in events_of(monitor, Fault)} == {"wrap"}
        client.close()


def test_wrap_serves_many_tasks_at_once() -> None:
    async def go() -> None:
        with ModelStub([(Text("Hello."),)] * 20) as stub:
            client, monitor = watched("async openai", stub)
            asked = [[{"role": "user", "content": f"Question {at}"}] for at in range(20)]
            await asyncio.gather(*(client.chat.completions.create(model="m", messages=each) for each in asked))
            said = [each.content for each in events_of(monitor, Message)]
            assert sorted(said) == sorted(["Hello."] * 20 + [f"Question {at}" for at in range(20)])
            await client.close()

    asyncio.run(go())
