"""Dumps of one run by the real packages, as their users write them: the files in tests/data/dumps.

``python tests/frameworks/dumps.py FOLDER`` writes them; needs langchain-core, pydantic-ai-slim, smolagents, inspect-ai.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SYSTEM = "You fix tests."
ASKED = "Find why the login test fails and fix it."
SAID = "I run the login test first."
FAILED = "FAILED test_login.py::test_token - KeyError: 'exp'"
FOUND = "The token has no expiry. I add it in auth.py."
DENIED = "auth.py is read-only"
DONE = "auth.py cannot be written; the token needs an exp claim."
RUN = {"path": "test_login.py"}
EDIT = {"path": "auth.py"}
PIXEL = bytes.fromhex("89504e470d0a1a0a")


def write_langchain(folder: Path) -> None:
    from langchain_core.load import dumpd
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
        messages_to_dict,
    )

    def answer(text: str, tokens: int, *calls: Any) -> AIMessage:
        usage: Any = {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20}
        return AIMessage(text, tool_calls=list(calls), usage_metadata=usage)

    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    messages: list[BaseMessage] = [
        SystemMessage(SYSTEM),
        HumanMessage([{"type": "text", "text": ASKED}, image]),
        answer(SAID, 100, {"name": "run_tests", "args": RUN, "id": "c1", "type": "tool_call"}),
        ToolMessage(FAILED, tool_call_id="c1", name="run_tests"),
        answer(FOUND, 150, {"name": "edit", "args": EDIT, "id": "c2", "type": "tool_call"}),
        ToolMessage(DENIED, tool_call_id="c2", status="error"),
        answer(DONE, 200),
    ]
    (folder / "langchain_dict.json").write_text(json.dumps(messages_to_dict(messages)))
    (folder / "langchain_dumpd.json").write_text(json.dumps({"messages": dumpd(messages)}))
    (folder / "langchain_model_dump.jsonl").write_text(
        "".join(json.dumps(message.model_dump(mode="json")) + "\n" for message in messages)
    )


def write_pydantic_ai(folder: Path) -> None:
    from pydantic_ai import Agent, BinaryContent, ModelRetry
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.usage import RequestUsage

    script: list[Any] = [
        [TextPart(SAID), ToolCallPart("run_tests", RUN, "c1")],
        [TextPart(FOUND), ToolCallPart("edit", json.dumps(EDIT), "c2")],
        [TextPart(DONE)],
    ]

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        at = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(script[at], usage=RequestUsage(input_tokens=100 + 50 * at, output_tokens=20))

    agent = Agent(FunctionModel(answer), system_prompt=SYSTEM)

    @agent.tool_plain
    def run_tests(path: str) -> str:
        return FAILED

    @agent.tool_plain
    def edit(path: str) -> str:
        raise ModelRetry(DENIED)

    run = agent.run_sync([ASKED, BinaryContent(PIXEL, media_type="image/png")])
    (folder / "pydantic_ai.json").write_bytes(run.all_messages_json())


def write_smolagents(folder: Path) -> None:
    from smolagents import ChatMessage, CodeAgent, MessageRole, Model, TokenUsage, ToolCallingAgent, tool
    from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

    @tool
    def run_tests(path: str) -> str:
        """Run tests.

        Args:
            path: The file.
        """
        return FAILED

    @tool
    def edit(path: str) -> str:
        """Edit a file.

        Args:
            path: The file.
        """
        raise PermissionError(DENIED)

    class Scripted(Model):
        def __init__(self, answers: list[Any]) -> None:
            super().__init__(model_id="scripted")
            self.answers = answers
            self.at = 0

        def generate(self, messages: Any, **_: Any) -> ChatMessage:
            text, call = self.answers[self.at]
            usage = TokenUsage(input_tokens=100 + 50 * self.at, output_tokens=20)
            self.at += 1
            calls = None
            if call is not None:
                function = ChatMessageToolCallFunction(name=call[0], arguments=call[1])
                calls = [ChatMessageToolCall(function=function, id=f"c{self.at}", type="function")]
            return ChatMessage(role=MessageRole.ASSISTANT, content=text, tool_calls=calls, token_usage=usage)

    called = [(SAID, ("run_tests", RUN)), (FOUND, ("edit", EDIT)), ("", ("final_answer", {"answer": DONE}))]
    agent = ToolCallingAgent(tools=[run_tests, edit], model=Scripted(called), instructions=SYSTEM, verbosity_level=0)
    agent.run(ASKED)
    (folder / "smolagents_full_steps.json").write_text(json.dumps(agent.memory.get_full_steps()))

    def code(text: str, line: str) -> str:
        return f"{text}\n<code>\n{line}\n</code>"

    written = [
        (code(SAID, "print(run_tests(path='test_login.py'))"), None),
        (code(FOUND, "edit(path='auth.py')"), None),
        (code("I stop here.", f"final_answer({DONE!r})"), None),
    ]
    coder = CodeAgent(tools=[run_tests, edit], model=Scripted(written), verbosity_level=0, return_full_result=True)
    (folder / "smolagents_run_result.json").write_text(json.dumps(coder.run(ASKED).dict()))


def write_inspect(folder: Path) -> None:
    os.environ["INSPECT_DISPLAY"] = "none"
    from inspect_ai import Task
    from inspect_ai import eval as run_eval
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, system_message, use_tools
    from inspect_ai.tool import Tool, ToolCall, ToolError, tool

    @tool
    def run_tests() -> Tool:
        async def execute(path: str) -> str:
            """Run tests.

            Args:
                path: The file.
            """
            return FAILED

        return execute

    @tool
    def edit() -> Tool:
        async def execute(path: str) -> str:
            """Edit a file.

            Args:
                path: The file.
            """
            raise ToolError(DENIED)

        return execute

    def answer(at: int, text: str, *calls: ToolCall) -> ModelOutput:
        output = ModelOutput.from_message(ChatMessageAssistant(content=text, tool_calls=list(calls) or None))
        output.usage = ModelUsage(input_tokens=100 + 50 * at, output_tokens=20, total_tokens=120 + 50 * at)
        return output

    def answers() -> list[ModelOutput]:
        return [
            answer(0, SAID, ToolCall(id="c1", function="run_tests", arguments=RUN)),
            answer(1, FOUND, ToolCall(id="c2", function="edit", arguments=EDIT)),
            answer(2, DONE),
        ]

    task = Task(
        name="login",
        dataset=[Sample(id="token", input=ASKED, target="exp claim"), Sample(id="rights", input=ASKED, target="done")],
        solver=[system_message(SYSTEM), use_tools(run_tests(), edit()), generate()],
        scorer=includes(),
    )
    model = get_model("mockllm/model", custom_outputs=[*answers(), *answers()])
    [log] = run_eval(task, model=model, log_dir=str(folder / "logs"), display="none", max_samples=1, max_tasks=1)
    log = read_eval_log(log.location)
    for file in (folder / "logs").iterdir():
        file.unlink()
    (folder / "logs").rmdir()
    # nothing of the machine and of the checkout belongs in a file that is kept
    log.eval = log.eval.model_copy(update={"packages": {}, "revision": None, "task_file": None, "model_args": {}})
    write_eval_log(log, str(folder / "inspect.json"))
    write_eval_log(log, str(folder / "inspect.eval"))


WRITERS: dict[str, Callable[[Path], None]] = {
    "langchain": write_langchain,
    "pydantic-ai": write_pydantic_ai,
    "smolagents": write_smolagents,
    "inspect": write_inspect,
}

if __name__ == "__main__":
    target = Path(sys.argv[1])
    for name in sys.argv[2:] or WRITERS:
        WRITERS[name](target)
