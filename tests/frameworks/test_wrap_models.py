"""LiteLLM, clients of Bedrock and of google-genai, wrapped, before servers on the loopback device."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import pytest
from hosts.messages_stub import Fail, Step, Text, Tool, Wait

import coherence
from coherence import CoherenceBlocked, Monitor
from coherence.core.events import Event, Fault, Feedback, Message, ToolCall, ToolResult, Usage
from frameworks.agents import CASES, Ask, by_hand, run
from frameworks.cloud_agents import (
    ask_arouter,
    ask_converse,
    ask_gemini,
    ask_gemini_chat,
    ask_litellm,
    ask_router,
    closable,
)
from frameworks.cloud_stub import CloudStub
from frameworks.model_stub import ModelStub

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks for the newest one

# the packages warn about themselves: types that pydantic does not know, a class that aiohttp wants nobody to inherit
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]

litellm = pytest.importorskip("litellm")
boto3 = pytest.importorskip("boto3")
genai = pytest.importorskip("google.genai")


async def _closing(asked: Any) -> Any:
    """Return what is awaited, and close the clients that LiteLLM keeps, which belong to this loop."""
    try:
        return await asked
    finally:
        await litellm.close_litellm_async_clients()
        litellm.in_memory_llm_clients_cache.flush_cache()
        gc.collect()


def router_of(url: str) -> Any:
    params = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "k"}
    return litellm.Router(model_list=[{"model_name": "openai/m", "litellm_params": params}], num_retries=0)


def bedrock_of(url: str) -> Any:
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "k", "region_name": "us-east-1"}
    return boto3.client("bedrock-runtime", endpoint_url=url, **keys)


def gemini_of(url: str) -> Any:
    return genai.Client(api_key="k", vertexai=False, http_options={"base_url": url})


class Kind(NamedTuple):
    """A way to ask: what is wrapped, before which server, and how an agent uses it."""

    stub: Callable[..., Any]
    bare: Callable[[str], Any]
    ask: Ask
    used: Callable[[Any, str], Any] = lambda client, url: client
    """Gives the wrapped thing the settings that name the server."""


def _closable(client: Any, url: str) -> Any:
    return closable(partial(client, api_base=f"{url}/v1", api_key="k"))


def _aio(client: Any, url: str) -> Any:
    return type("Aio", (), {"models": client.aio.models, "chats": client.aio.chats, "close": client.aio.aclose})


KINDS = {
    "litellm": Kind(ModelStub, lambda url: litellm.completion, ask_litellm, _closable),
    "async litellm": Kind(ModelStub, lambda url: litellm.acompletion, ask_litellm, _closable),
    "router": Kind(ModelStub, router_of, ask_router, lambda client, url: _with_close(client)),
    "async router": Kind(ModelStub, router_of, ask_arouter, lambda client, url: _with_close(client)),
    "bedrock": Kind(CloudStub, bedrock_of, ask_converse),
    "gemini": Kind(CloudStub, gemini_of, ask_gemini),
    "gemini with ids": Kind(partial(CloudStub, has_ids=True), gemini_of, ask_gemini),
    "async gemini": Kind(CloudStub, gemini_of, ask_gemini, _aio),
    "gemini chat": Kind(CloudStub, gemini_of, ask_gemini_chat),
    "async gemini chat": Kind(CloudStub, gemini_of, ask_gemini_chat, _aio),
}


def _with_close(router: Any) -> Any:
    return type("Closable", (), {"completion": router.completion, "acompletion": router.acompletion, "close": int})


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(CASES))
def test_wrap_tells_the_monitor_what_a_user_would_tell_it_by_hand(name: str, kind: str, streamed: bool) -> None:
    case, made = CASES[name], KINDS[kind]
    expected = by_hand(case)
    with made.stub(case.steps()) as stub, case.monitor() as monitor:
        client = coherence.wrap(made.bare(stub.url), monitor=monitor)

        async def go() -> Any:
            return await run(case, made.ask, made.used(client, stub.url), monitor, streamed=streamed)

        told, was_blocked = asyncio.run(_closing(go()))
    assert told == expected
    assert was_blocked == (name in {"injected", "over budget"})


HELLO = [{"role": "user", "content": "Hello"}]
CONVERSE = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hello"}]}]}
GEMINI = {"model": "m", "contents": "Hello"}
WIPE: Step = (Text("I clean up."), Tool("bash", {"command": "rm -rf /"}))


def _named(url: str) -> dict[str, Any]:
    return {"model": "openai/m", "messages": HELLO, "api_base": f"{url}/v1", "api_key": "k"}


async def _arun(asked: Any, *, streamed: bool) -> Any:
    return [chunk async for chunk in await asked] if streamed else await asked


def _async(ask: Callable[[Any, str], Any], *, streamed: bool) -> Callable[[Any, str], Any]:
    """Return a way to ask in a loop of its own."""

    async def go(client: Any, url: str) -> Any:
        return await _arun(ask(client, url), streamed=streamed)

    return lambda client, url: asyncio.run(_closing(go(client, url)))


class Style(NamedTuple):
    """A way to ask "Hello" once."""

    stub: Callable[..., AbstractContextManager[Any]]
    bare: Callable[[str], Any]
    ask: Callable[[Any, str], Any]


STYLES = {
    "litellm": Style(ModelStub, lambda url: litellm.completion, lambda ask, url: ask(**_named(url))),
    "litellm stream": Style(
        ModelStub, lambda url: litellm.completion, lambda ask, url: list(ask(**_named(url), stream=True))
    ),
    "async litellm": Style(
        ModelStub, lambda url: litellm.acompletion, _async(lambda ask, url: ask(**_named(url)), streamed=False)
    ),
    "async litellm stream": Style(
        ModelStub,
        lambda url: litellm.acompletion,
        _async(lambda ask, url: ask(**_named(url), stream=True), streamed=True),
    ),
    "router": Style(ModelStub, router_of, lambda router, url: router.completion("openai/m", HELLO)),
    "router stream": Style(
        ModelStub, router_of, lambda router, url: list(router.completion("openai/m", HELLO, stream=True))
    ),
    "router chat": Style(
        ModelStub, router_of, lambda router, url: router.chat.completions.create(messages=HELLO, model="openai/m")
    ),
    "async router": Style(
        ModelStub, router_of, _async(lambda router, url: router.acompletion("openai/m", HELLO), streamed=False)
    ),
    "converse": Style(CloudStub, bedrock_of, lambda client, url: client.converse(**CONVERSE)),
    "converse stream": Style(
        CloudStub, bedrock_of, lambda client, url: list(client.converse_stream(**CONVERSE)["stream"])
    ),
    "gemini": Style(CloudStub, gemini_of, lambda client, url: client.models.generate_content(**GEMINI)),
    "gemini stream": Style(
        CloudStub, gemini_of, lambda client, url: list(client.models.generate_content_stream(**GEMINI))
    ),
    "gemini chat": Style(
        CloudStub, gemini_of, lambda client, url: client.chats.create(model="m").send_message("Hello")
    ),
    "async gemini": Style(
        CloudStub, gemini_of, _async(lambda client, url: client.aio.models.generate_content(**GEMINI), streamed=False)
    ),
    "async gemini stream": Style(
        CloudStub,
        gemini_of,
        _async(lambda client, url: client.aio.models.generate_content_stream(**GEMINI), streamed=True),
    ),
}


def watched(style: str, url: str, **options: Any) -> tuple[Any, Any, Monitor, Callable[[Any], Any]]:
    """Return what a style asks, wrapped and bare, the monitor, and how it asks."""
    options.setdefault("monitor", Monitor(embedder=False, config={"tick": "manual"}, source="wrap"))
    bare = STYLES[style].bare(url)
    client = coherence.wrap(bare, **options)
    return client, bare, coherence.monitor_of(client), lambda client: STYLES[style].ask(client, url)


def events_of(monitor: Monitor, *kinds: type) -> list[Any]:
    """Return what was recorded of some kinds, oldest first."""
    monitor.flush()
    seen: list[Event] = [record.event for record in reversed(monitor.events())]
    return [event for event in seen if isinstance(event, kinds)]


def said(monitor: Monitor) -> list[tuple[str, str]]:
    return [(each.role, each.content) for each in events_of(monitor, Message)]


@pytest.mark.parametrize("style", list(STYLES))
def test_wrap_records_the_answer_once_and_gives_what_the_sdk_gives_and_changes_no_byte_of_a_request(
    style: str,
) -> None:
    with STYLES[style].stub([(Text("Hello you."),)] * 2) as stub:
        client, bare, monitor, ask = watched(style, stub.url)
        expected, got = ask(bare), ask(client)
        assert said(monitor) == [("user", "Hello"), ("assistant", "Hello you.")]
        assert type(got) is type(expected)
        theirs, ours = stub.asked
        assert (ours.path, ours.raw) == (theirs.path, theirs.raw)
        # of Bedrock, these two differ from request to request, and the signature covers them
        drawn = ("amz-sdk-invocation-id", "X-Amz-Date", "Authorization")
        kept = [[header for header in each.headers if header[0] not in drawn] for each in (ours, theirs)]
        assert kept[0] == kept[1]


@pytest.mark.parametrize("style", list(STYLES))
def test_wrap_raises_for_a_call_that_must_not_run_in_each_style(style: str) -> None:
    with STYLES[style].stub([WIPE, (Text("Good."),)]) as stub:
        client, _, monitor, ask = watched(style, stub.url)
        with pytest.raises(CoherenceBlocked) as caught:
            ask(client)
        assert caught.value.tools == ("bash",)
        assert (caught.value.answer is None) == ("stream" in style)
        assert events_of(monitor, ToolCall, Fault) == []
        # of a stream of LiteLLM, nobody has asked for the tokens
        assert len(events_of(monitor, Usage)) == (0 if "litellm stream" in style or style == "router stream" else 1)
        ask(client)
        expected = ["Hello", "I clean up.", "Good."]
        assert [text for _, text in said(monitor)] == expected


@pytest.mark.parametrize("style", list(STYLES))
def test_wrap_sends_nothing_once_a_budget_is_used_up(style: str) -> None:
    with STYLES[style].stub([]) as stub:
        client, _, monitor, ask = watched(
            style, stub.url, monitor=Monitor(embedder=False, config={"tick": "manual"}, budget={"tokens": 1000})
        )
        monitor.usage(tokens_in=1050)
        with pytest.raises(CoherenceBlocked, match=r"1,050 of 1,000 tokens.*not sent"):
            ask(client)
        assert stub.asked == []


@pytest.mark.parametrize("style", list(STYLES))
def test_wrap_with_guide_tells_the_agent_and_never_changes_what_the_caller_gave(
    style: str,
) -> None:
    with STYLES[style].stub([]) as stub:
        client, _, monitor, ask = watched(style, stub.url, guide=True)
        for _ in range(3):
            monitor.tool_call("bash", {"command": "pytest -q"})
            monitor.tool_result("ImportError: no module named yaml", error=True)
        assert [each for each in events_of(monitor, Message) if each.firing] == []
        ask(client)
        assert "bash returned the same error 3 times" in stub.asked[0].raw.decode()
        assert len([each for each in events_of(monitor, Message) if each.firing]) == 1
        # the agent is told; the user's own question counts as what it is
        assert [text for role, text in said(monitor) if role == "user"] == ["Hello"]
    assert HELLO == [{"role": "user", "content": "Hello"}]
    assert CONVERSE["messages"] == [{"role": "user", "content": [{"text": "Hello"}]}]


def test_wrap_with_guide_adds_the_hint_behind_the_results_of_tools() -> None:
    result = {"toolResult": {"toolUseId": "1", "content": [{"text": "no module named yaml"}], "status": "error"}}
    with CloudStub([]) as stub:
        client, _, monitor, _ = watched("converse", stub.url, guide=True)
        for _ in range(3):
            monitor.tool_call("bash", {"command": "pytest -q"})
            monitor.tool_result("ImportError: no module named yaml", error=True)
        client.converse(modelId="m", messages=[{"role": "user", "content": [result]}])
        client, _, monitor, _ = watched("gemini", stub.url, guide=True)
        for _ in range(3):
            monitor.tool_call("bash", {"command": "pytest -q"})
            monitor.tool_result("ImportError: no module named yaml", error=True)
        part = genai.types.Part.from_function_response(name="bash", response={"error": "no module named yaml"})
        client.models.generate_content(model="m", contents=[part])
        first, second = (asked.body for asked in stub.asked)
    assert [list(block) for block in first["messages"][0]["content"]] == [["toolResult"], ["text"]]
    assert [list(part) for part in second["contents"][0]["parts"]] == [["functionResponse"], ["text"]]


@pytest.mark.parametrize("style", ["litellm", "converse", "gemini"])
def test_wrap_hands_a_chunk_on_as_soon_as_it_is_there_and_records_what_was_said_before_a_close(style: str) -> None:
    with STYLES[style].stub([(Text("Hello."), Wait(0.6), Text("Bye."))]) as stub:
        client, _, monitor, _ = watched(style, stub.url)
        began = time.monotonic()
        stream: Any
        if style == "litellm":
            stream = client(**_named(stub.url), stream=True)
        elif style == "converse":
            stream = client.converse_stream(**CONVERSE)["stream"]
        else:
            stream = client.models.generate_content_stream(**GEMINI)
        for _ in range(2):  # a first half; before it, the role, but for Gemini
            next(stream)
        assert time.monotonic() - began < 0.5  # the stub waits 0.6 s before it says more
        stream.close()
        expected = "Hello." if style == "gemini" else "Hel"
        assert said(monitor) == [("user", "Hello"), ("assistant", expected)]
        assert "abandoned" in events_of(monitor, Feedback)[0].text


@pytest.mark.parametrize("style", list(STYLES))
def test_wrap_goes_on_if_an_answer_cannot_be_read(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a fault of ours")

    from coherence.integrations import converse_wire, gemini_wire, openai_wire

    for wire in (openai_wire.ChatWire, converse_wire.ConverseWire, gemini_wire.GeminiWire):
        for name in ("answer", "items", "guided"):
            monkeypatch.setattr(wire, name, broken)
    with STYLES[style].stub([]) as stub:
        client, bare, monitor, ask = watched(style, stub.url, guide=True)
        for _ in range(3):
            monitor.tool_call("bash", {"command": "pytest -q"})
            monitor.tool_result("ImportError: no module named yaml", error=True)
        assert type(ask(client)) is type(ask(bare))
        assert {each.where for each in events_of(monitor, Fault)} == {"wrap"}


def test_wrap_records_the_error_that_is_raised_and_how_often_boto3_has_asked() -> None:
    busy: Step = (Fail(503, "ServiceUnavailableException", "busy"),)
    with CloudStub([busy, (Text("Hi."),), (Fail(400, "ValidationException", "no such model"),)]) as stub:
        client, _, monitor, ask = watched("converse", stub.url)
        ask(client)
        assert [each.text for each in events_of(monitor, Feedback)] == ["the model was asked 2 times"]
        with pytest.raises(Exception, match="no such model"):
            ask(client)
        (fault,) = events_of(monitor, Fault)
        assert (fault.where, "no such model" in fault.message) == ("model", True)


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("is_chat", [False, True], ids=["models", "chat"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_wrap_sees_the_functions_that_google_genai_calls_itself_and_none_runs_that_is_refused(
    is_async: bool, is_chat: bool, streamed: bool
) -> None:
    ran: list[str] = []

    def bash(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return f"ran {command}"

    async def go(client: Any) -> None:
        config = {"tools": [bash]}
        client = client.aio if is_async else client
        if is_chat:
            chat = client.chats.create(model="m", config=config)
            asked = (chat.send_message_stream if streamed else chat.send_message)("Hello")
        else:
            models = client.models
            ask = models.generate_content_stream if streamed else models.generate_content
            asked = ask(**GEMINI, config=config)
        asked = await asked if is_async else asked
        if streamed and is_async:
            _ = [chunk async for chunk in asked]
        elif streamed:
            list(asked)

    two = (Text("I look."), Tool("bash", {"command": "ls a"}), Tool("bash", {"command": "ls b"}))
    with CloudStub([WIPE, (Text("Done."),), two, (Text("Done."),), WIPE]) as stub:
        client, bare, monitor, _ = watched("gemini", stub.url)
        asyncio.run(go(bare))
        assert ran == ["rm -rf /"]  # without us, it runs
        ran.clear()
        asyncio.run(go(client))
        assert ran == ["ls a", "ls b"]
        calls, results = events_of(monitor, ToolCall), events_of(monitor, ToolResult)
        # the calls had no ids, and each has its own result
        told = [(each.call_id, each.result) for each in results]
        assert told == [(calls[0].call_id, "ran ls a"), (calls[1].call_id, "ran ls b")]
        assert [text for _, text in said(monitor)] == ["Hello", "I look.", "Done."]
        with pytest.raises(CoherenceBlocked, match="rm -rf"):
            asyncio.run(go(client))
        assert ran == ["ls a", "ls b"]


@pytest.mark.parametrize("style", ["litellm", "async litellm", "router", "converse", "gemini"])
def test_unwrap_gives_back_what_was_wrapped_and_it_is_never_watched(style: str) -> None:
    with STYLES[style].stub([]) as stub:
        client, bare, monitor, ask = watched(style, stub.url)
        assert coherence.unwrap(client) is bare
        assert isinstance(client, bare.__class__)
        ask(bare)
        assert said(monitor) == []
        with pytest.raises(ValueError, match="wrapped already"):
            coherence.wrap(client)
        with pytest.raises(ValueError, match="not wrapped"):
            coherence.monitor_of(bare)


def test_wrap_sets_attributes_where_they_are_read_and_closes_what_was_wrapped() -> None:
    with ModelStub([]) as stub:
        router, bare, _, _ = watched("router", stub.url)
        router.num_retries = 7
        assert bare.num_retries == 7
    with CloudStub([]) as stub:
        client, _, monitor, ask = watched("gemini", stub.url)
        with client as entered:
            ask(entered)
        assert said(monitor) == [("user", "Hello"), ("assistant", "ok")]
        with pytest.raises(Exception, match="closed"):
            ask(client)


def test_wrap_of_something_else_names_all_that_it_knows() -> None:
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "k", "region_name": "us-east-1"}
    for stranger in (litellm, litellm.embedding, boto3.client("sts", **keys), genai.Client(api_key="k").models):
        with pytest.raises(TypeError) as caught:
            coherence.wrap(stranger)
        for known in ("openai.OpenAI", "anthropic.Anthropic", "litellm.completion", "bedrock-runtime", "genai.Client"):
            assert known in str(caught.value)


def test_wrap_imports_no_package_that_is_not_used() -> None:
    seen = "[name for name in ('litellm', 'boto3', 'botocore', 'google.genai', 'openai') if name in sys.modules]"
    code = f"import sys, coherence\ntry: coherence.wrap(object())\nexcept TypeError: print({seen})"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
