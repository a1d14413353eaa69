"""Watch two agents of a LangGraph graph. Their models are scripted, so that nothing is paid."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

from coherence.frameworks.langgraph import CoherenceGraph


def call(command: str, id: str) -> AIMessage:
    """Return an answer that calls the shell."""
    return AIMessage("I look.", tool_calls=[ToolCall(name="bash", args={"command": command}, id=id)])


def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


researching = GenericFakeChatModel(
    messages=iter([call("ls sales", "1"), call("rm -rf /", "2"), AIMessage("The shop sold 40 cups of tea in May.")])
)
writing = GenericFakeChatModel(messages=iter([AIMessage("Tea sells.")]))


def researcher(state: MessagesState) -> dict[str, Any]:
    """Find out what was sold."""
    return {"messages": [researching.invoke(state["messages"])]}


def writer(state: MessagesState) -> dict[str, Any]:
    """Write the report."""
    return {"messages": [writing.invoke(state["messages"])]}


if __name__ == "__main__":
    watch = CoherenceGraph(goal="Write a report on the shop.", guide=True, budget={"calls": 50})
    graph = StateGraph(MessagesState).add_node("researcher", watch.watched(researcher))
    graph.add_node("writer", watch.watched(writer)).add_node("tools", watch.tool_node([bash]))
    graph.add_edge(START, "researcher").add_edge("tools", "researcher").add_edge("writer", END)
    graph.add_conditional_edges("researcher", tools_condition, {"tools": "tools", END: "writer"})
    asked: Any = {"messages": [("user", "Write a report on the shop.")]}
    for message in graph.compile().invoke(asked)["messages"]:
        print(f"{message.type}: {message.text}")
    for edge in watch.agents.fleet.trust.edges():
        print(edge.source, ">", edge.target)
    watch.close()
