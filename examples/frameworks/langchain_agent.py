"""Watch a LangChain agent: one middleware. The model is scripted: nothing is paid."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall

from coherence.frameworks.langchain import CoherenceMiddleware


class Scripted(GenericFakeChatModel):
    """Stand-in for a model that can call tools."""

    def bind_tools(self, tools: object, **options: object) -> Scripted:
        """Return the same model: its calls are in the script."""
        return self


def call(command: str, id: str) -> AIMessage:
    """Return an answer that calls the shell."""
    return AIMessage("I look.", tool_calls=[ToolCall(name="bash", args={"command": command}, id=id)])


def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


if __name__ == "__main__":
    watch = CoherenceMiddleware("tidy", guide=True, budget={"calls": 50})
    model = Scripted(messages=iter([call("ls notes", "1"), call("rm -rf /", "2"), AIMessage("I leave it as it is.")]))
    agent = create_agent(model, tools=[bash], middleware=[watch])
    for message in agent.invoke({"messages": [("user", "List my notes.")]})["messages"]:
        print(f"{message.type}: {message.text}")
    print(watch.monitor.decide(), watch.monitor.latest)
    watch.close()
