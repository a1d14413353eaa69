"""Watch a team of AutoGen: one call an agent. The model is replayed, so that nothing is paid; use yours."""

from __future__ import annotations

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from coherence.frameworks.autogen import CoherenceAutogen

INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "family": "unknown",
    "structured_output": False,
}


def call(command: str) -> CreateResult:
    """Return an answer that calls the shell."""
    made = FunctionCall(id=command, name="bash", arguments=f'{{"command": "{command}"}}')
    return CreateResult(finish_reason="function_calls", content=[made], usage=RequestUsage(9, 1), cached=False)


async def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


async def main() -> None:
    """Run a planner and a writer."""
    plans = ReplayChatCompletionClient([call("ls notes"), call("rm -rf /"), "The plan: write one page."], INFO)
    writes = ReplayChatCompletionClient(["One page."], INFO)
    with CoherenceAutogen(guide=True, budget={"calls": 50}) as watch:
        planner = AssistantAgent("planner", **watch.watched("planner", plans, [bash]), max_tool_iterations=5)
        writer = AssistantAgent("writer", **watch.watched("writer", writes))
        team = RoundRobinGroupChat([planner, writer], max_turns=2)
        async for message in watch.messages(team.run_stream(task="Write a page about the shop.")):
            print(f"{getattr(message, 'source', 'end')}: {getattr(message, 'content', '')}")
        for monitor in watch.agents.fleet:
            print(monitor.agent, monitor.decide(), monitor.latest)
        print([(edge.source, edge.target) for edge in watch.agents.fleet.trust.edges()])


if __name__ == "__main__":
    asyncio.run(main())
