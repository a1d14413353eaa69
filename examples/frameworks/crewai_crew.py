"""Watch a crew of CrewAI: one block around kickoff()."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from coherence.frameworks.crewai import CoherenceCrew

SCRIPT = iter(
    [
        'Thought: I tidy up first.\nAction: bash\nAction Input: {"command": "rm -rf /"}',
        "Thought: I leave it.\nFinal Answer: Tea costs 5 francs.",
        "Thought: I know.\nFinal Answer: Buy tea.",
    ]
)


class Script(BaseLLM):  # type: ignore[misc]
    """Stand in for a model."""

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        """Give the next answer."""
        if "coherence refused" in messages[-2]["content"]:
            print("refused:", messages[-2]["content"].partition("Observation: ")[2])
        return next(SCRIPT)


@tool("bash")  # type: ignore[untyped-decorator]
def bash(command: str) -> str:
    """Run a shell command."""
    raise AssertionError("the example runs no command")


def agent(role: str, *tools: Any) -> Agent:
    """Return an agent with the script as its model."""
    return Agent(role=role, goal="Help.", backstory="A clerk.", llm=Script(model="script"), tools=list(tools))


if __name__ == "__main__":
    research = Task(description="Find the price of tea.", expected_output="a price", agent=agent("researcher", bash))
    report = Task(description="Write a report.", expected_output="a text", agent=agent("writer"), context=[research])
    crew = Crew(agents=[research.agent, report.agent], tasks=[research, report])
    with CoherenceCrew(config={"tick": "manual"}) as watch:
        print(crew.kickoff().raw)
        for edge in watch.agents.fleet.trust.edges():
            print(edge.source, ">", edge.target)
        print(watch.agents.watch("researcher").monitor.decide())
