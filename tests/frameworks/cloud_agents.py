"""Small agents in the style of LiteLLM, Bedrock and google-genai, as :mod:`frameworks.agents` has those of others."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from frameworks.agents import MODEL, SYSTEM, each, now


def closable(function: Any) -> Any:
    """Return a function as a client, as the runs of :mod:`frameworks.agents` close theirs."""
    return SimpleNamespace(ask=function, close=lambda: None)


async def ask_litellm(client: Any, history: list[Any], said: list[Any], streamed: bool) -> list[str]:
    """Ask by ``completion`` or ``acompletion``; the answer is put together by LiteLLM itself."""
    import litellm

    if not history:
        history.append({"role": "system", "content": SYSTEM})
    for kind, *rest in said:
        if kind == "user":
            history.append({"role": "user", "content": rest[0]})
        else:
            history.append({"role": "tool", "tool_call_id": rest[0], "content": rest[1]})
    if streamed:
        more = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = [chunk async for chunk in each_of(await now(client.ask("openai/m", history, **more)))]
        answer: Any = litellm.stream_chunk_builder(chunks)
    else:
        answer = await now(client.ask("openai/m", history))
    history.append(answer.choices[0].message)
    return [call.id for call in answer.choices[0].message.tool_calls or ()]


async def ask_router(client: Any, history: list[Any], said: list[Any], streamed: bool) -> list[str]:
    """Ask by a router."""
    return await ask_litellm(SimpleNamespace(ask=client.completion), history, said, streamed)


async def ask_arouter(client: Any, history: list[Any], said: list[Any], streamed: bool) -> list[str]:
    """Ask by a router in an event loop."""
    return await ask_litellm(SimpleNamespace(ask=client.acompletion), history, said, streamed)


async def each_of(stream: Any) -> Any:
    """Yield the chunks of a stream of LiteLLM, which is of both kinds at once."""
    if hasattr(stream.completion_stream, "__aiter__") and not hasattr(stream.completion_stream, "__next__"):
        async for chunk in stream:
            yield chunk
    else:
        for chunk in stream:
            yield chunk


async def ask_converse(client: Any, history: list[Any], said: list[Any], streamed: bool) -> list[str]:
    """Ask by Converse."""
    content: list[Any] = []
    for kind, *rest in said:
        if kind == "user":
            content.append({"text": rest[0]})
        else:
            status = "error" if rest[2] else "success"
            content.append({"toolResult": {"toolUseId": rest[0], "content": [{"text": rest[1]}], "status": status}})
    history.append({"role": "user", "content": content})
    given = {"modelId": MODEL, "system": [{"text": SYSTEM}], "messages": history}
    if streamed:
        message = assembled(client.converse_stream(**given)["stream"])
    else:
        message = client.converse(**given)["output"]["message"]
    history.append(message)
    return [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]


def assembled(stream: Any) -> dict[str, Any]:
    """Put a message together, as users of ConverseStream do."""
    blocks: dict[int, dict[str, Any]] = {}
    told: dict[int, str] = {}
    for event in stream:
        if (begun := event.get("contentBlockStart")) is not None:
            blocks[begun["contentBlockIndex"]] = {"toolUse": dict(begun["start"]["toolUse"])}
        if (more := event.get("contentBlockDelta")) is not None:
            block = blocks.setdefault(more["contentBlockIndex"], {})
            if "text" in more["delta"]:
                block["text"] = block.get("text", "") + more["delta"]["text"]
            else:
                at = more["contentBlockIndex"]
                told[at] = told.get(at, "") + more["delta"]["toolUse"]["input"]
    for at, raw in told.items():
        blocks[at]["toolUse"]["input"] = json.loads(raw)
    return {"role": "assistant", "content": list(blocks.values())}


async def ask_gemini(client: Any, history: list[Any], said: list[Any], streamed: bool) -> list[Any]:
    """Ask by ``generate_content`` with the SDK's own contents."""
    from google.genai import types

    history.append(_content(types, said))
    given = {"model": MODEL, "contents": history, "config": {"system_instruction": SYSTEM}}
    if streamed:
        parts = []
        async for chunk in each(await now(client.models.generate_content_stream(**given))):
            parts += chunk.candidates[0].content.parts
        history.append(types.Content(role="model", parts=parts))
        return [part.function_call for part in parts if part.function_call]
    answer = await now(client.models.generate_content(**given))
    history.append(answer.candidates[0].content)
    return answer.function_calls or []


async def ask_gemini_chat(client: Any, history: list[Any], said: list[Any], streamed: bool) -> list[Any]:
    """Ask by a chat, which keeps each chunk of an answer as a content of its own."""
    from google.genai import types

    if not history:
        history.append(client.chats.create(model=MODEL, config={"system_instruction": SYSTEM}))
    parts = _content(types, said).parts
    if not streamed:
        answer = await now(history[0].send_message(parts))
        return answer.function_calls or []
    calls: list[Any] = []
    async for chunk in each(await now(history[0].send_message_stream(parts))):
        calls += chunk.function_calls or []
    return calls


def _content(types: Any, said: list[Any]) -> Any:
    parts = []
    for kind, *rest in said:
        if kind == "user":
            parts.append(types.Part(text=rest[0]))
        else:
            call, text, is_error = rest
            told = {"error": text} if is_error else {"output": text}
            response = types.FunctionResponse(id=call.id, name=call.name, response=told)
            parts.append(types.Part(function_response=response))
    return types.Content(role="user", parts=parts)
