"""A model and tools of the OpenAI Agents SDK, which must be installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import agents
import openai
from agents import FunctionTool

from frameworks.agents import MODEL


class Telling:
    """A model of the SDK, before one server, that tells when it is asked."""

    def __init__(self, url: str, asked: Callable[[], object] = lambda: None) -> None:
        self.client = openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
        self.is_asked = asked
        super().__init__(MODEL, self.client)  # type: ignore[call-arg]

    async def get_response(self, *given: Any, **named: Any) -> Any:
        self.is_asked()
        return await super().get_response(*given, **named)  # type: ignore[misc]

    async def stream_response(self, *given: Any, **named: Any) -> Any:
        self.is_asked()
        async for event in super().stream_response(*given, **named):  # type: ignore[misc]
            yield event


class Real(Telling, agents.OpenAIResponsesModel):
    """The SDK's model of Responses."""


def tool_named(name: str, run: Callable[[], str]) -> FunctionTool:
    """Return a tool of one name that takes any arguments."""

    async def invoke(context: Any, arguments: str) -> str:
        return run()

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    return FunctionTool(name, "A tool.", schema, invoke, strict_json_schema=False)
