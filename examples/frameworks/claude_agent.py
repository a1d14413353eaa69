"""Watch an agent of the Claude Agent SDK; needs a key of Anthropic, or a server in ANTHROPIC_BASE_URL."""

from __future__ import annotations

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from coherence import CoherenceBlocked
from coherence.frameworks.claude_agent_sdk import CoherenceHooks


async def main(prompt: str) -> None:
    """Run the agent on one prompt."""
    with CoherenceHooks(guide=True, budget={"calls": 50}) as watch:
        options = watch.options(ClaudeAgentOptions(allowed_tools=["Bash"]))
        try:
            async for message in watch.messages(query(prompt=prompt, options=options)):
                if isinstance(message, ResultMessage):
                    print(f"result: {message.result}")
        except CoherenceBlocked as error:
            print(f"stopped: {error}")
        for monitor in watch.agents.fleet:
            print(monitor.agent, monitor.decide(), monitor.latest)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What is in this folder?"))
