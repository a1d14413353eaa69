"""A scripted chat model of LangChain, and tools that it calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import StructuredTool

from frameworks.agents import MODEL
from frameworks.model_stub import PER_CALL


class Scripted(BaseChatModel):
    """A model that says what it is told to, and keeps what it was asked."""

    says: Any
    asked: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        if self.asked is not None:
            self.asked.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.says())])

    def _stream(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        whole = self._generate(messages).generations[0].message
        chunk = AIMessageChunk(
            content=whole.content,
            tool_calls=whole.tool_calls,
            usage_metadata=whole.usage_metadata,
            response_metadata=whole.response_metadata,
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=chunk)


def said(text: str, tool: str = "", arguments: Any = None, at: int = 1) -> AIMessage:
    """Return an answer."""
    calls = [{"name": tool, "args": dict(arguments or {}), "id": f"call{at}"}] if tool else []
    used: Any = {
        "input_tokens": PER_CALL["input"],
        "output_tokens": PER_CALL["output"],
        "total_tokens": PER_CALL["input"] + PER_CALL["output"],
        "input_token_details": {"cache_read": PER_CALL["cached"]},
    }
    return AIMessage(text, tool_calls=calls, usage_metadata=used, response_metadata={"model_name": MODEL})


def tool_named(name: str, run: Callable[[], str]) -> StructuredTool:
    """Return a tool of one name that takes any arguments."""

    def called(**arguments: Any) -> str:
        return run()

    schema = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in ("path", "new", "command", "to", "body")},
    }
    return StructuredTool.from_function(
        called, name=name, description="A tool.", args_schema=schema, handle_tool_error=True
    )


def script(*answers: AIMessage) -> Scripted:
    turns = iter(answers)
    return Scripted(says=lambda: next(turns), asked=[])
