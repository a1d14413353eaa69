"""Watch a run of the OpenAI Agents SDK. The model is scripted: nothing is paid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from coherence.frameworks.openai_agents import Coherence

set_tracing_disabled(True)


class Scripted(Model):
    """Stand-in for a model."""

    commands = iter(["ls notes", "rm -rf /"])

    async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
        """Call the shell for each command, and stop."""
        for item in named["input"] if "input" in named else given[1]:
            print(item.get("output") or item.get("content") or "")
        command = next(self.commands, None)
        if command is None:
            text = ResponseOutputText(text="I leave it as it is.", type="output_text", annotations=[])
            said = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])
            return ModelResponse([said], Usage(), None)
        arguments = json.dumps({"command": command})
        call = ResponseFunctionToolCall(name="bash", arguments=arguments, call_id=command, type="function_call")
        return ModelResponse([call], Usage(), None)

    def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        """Say that nothing is streamed here."""
        raise NotImplementedError("run it without streaming")


@function_tool
def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


async def main() -> None:
    """Run an agent that wants to delete everything."""
    watch = Coherence(guide=True, budget={"calls": 50})
    agent = watch.guarded(Agent("tidy", tools=[bash], model=Scripted()))
    result = await Runner.run(agent, "List my notes.", hooks=watch.hooks, run_config=watch.run_config())
    print(result.final_output)
    print(watch.monitor.decide(), watch.monitor.latest)
    watch.close()


if __name__ == "__main__":
    asyncio.run(main())
