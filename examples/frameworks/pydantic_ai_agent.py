"""Watch a Pydantic AI agent: one capability. The model is scripted: nothing is paid."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from coherence.frameworks.pydantic_ai import Coherence

SCRIPT = iter(
    [
        [TextPart("I look."), ToolCallPart("bash", {"command": "ls notes"})],
        [TextPart("I tidy up."), ToolCallPart("bash", {"command": "rm -rf /"})],
        [TextPart("I leave it as it is.")],
    ]
)


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a model."""
    for part in messages[-1].parts:
        print(f"{part.part_kind}: {getattr(part, 'content', '')}")
    return ModelResponse(parts=next(SCRIPT))


def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


if __name__ == "__main__":
    watch = Coherence("tidy", guide=True, budget={"calls": 50})
    agent = Agent(FunctionModel(answer), tools=[bash], capabilities=[watch])
    print(agent.run_sync("List my notes.").output)
    print(watch.monitor.decide(), watch.monitor.latest)
    watch.close()
