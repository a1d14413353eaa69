"""A node of a LangGraph graph under guard: a patch of its configuration serves a fifth of the calls until the verdict.

Needs `pip install langgraph`. The model is a stand-in; everything else is real. The node asks a person about refunds:
what LangGraph raises to wait for the answer is no failure.
"""

import asyncio
import random
import tempfile
from collections.abc import Mapping
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from coherence.guard import Bound, Bounds, Guard, current_patch

config: dict[str, Any] = {"model": "small"}
chance = random.Random(1)


class Ticket(TypedDict, total=False):
    """The state of the graph."""

    text: str
    answer: str


class Config:
    """Owns the configuration, and serves both versions at once: it is changed only when a patch is confirmed."""

    serves_both = True

    def get_config(self, *, agent_id: str) -> Mapping[str, Any]:
        return dict(config)

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
        config.update(config_patch)
        return True

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
        config.update(backup_config)


class LargerModel:
    """Proposes the larger model."""

    def analyze(self, **about: Any) -> dict[str, Any]:  # agent_id, traces, before_metrics
        return {"model": "large"}


def answer(state: Ticket) -> Ticket:
    """Answer a ticket; the small model fails at every fourth."""
    model = (config | (current_patch() or {}))["model"]  # what serves this call
    if "refund" in state["text"] and interrupt("pay it back?") != "yes":
        return {"answer": "refused"}
    if model == "small" and chance.random() < 0.25:
        raise ValueError("the model's answer is no JSON")
    return {"answer": f"answered by the {model} model"}


async def aanswer(state: Ticket) -> Ticket:
    """Do the same as an asynchronous node."""
    return answer(state)


def graph(node: Any) -> Any:
    """Return a graph around a node."""
    return StateGraph(Ticket).add_node("answer", node).add_edge(START, "answer").compile(checkpointer=InMemorySaver())


with (
    tempfile.TemporaryDirectory() as folder,
    Guard(
        store=f"{folder}/guard.db",
        strategy=LargerModel(),
        config_adapter=Config(),
        bounds=Bounds({"model": Bound(choices=("small", "large"))}),
        control_flow=GraphBubbleUp,  # interrupts and commands to a parent graph
        notifier=lambda notice: print(f"told: {notice.kind} {notice.patch}"),
    ) as guard,
):
    guarded = guard.wrap(agent="support")
    app, asynchronous = graph(guarded(answer)), graph(guarded(aanswer))  # was: graph(answer), graph(aanswer)

    for number in range(20):
        person: Any = {"configurable": {"thread_id": f"refund {number}"}}
        paused = app.invoke({"text": "I want a refund"}, person)
    print("waits for a person:", paused["__interrupt__"][0].value)
    print("failures:", guard.status("support").failures, "of", guard.status("support").calls)
    print("told no:", app.invoke(Command(resume="no"), person)["answer"])

    for number in range(400):
        try:
            app.invoke({"text": f"ticket {number}"}, {"configurable": {"thread_id": str(number)}})
        except ValueError:
            continue
    last: Any = {"configurable": {"thread_id": "last"}}
    print("ainvoke:", asyncio.run(asynchronous.ainvoke({"text": "the last ticket"}, last))["answer"])
    print("failed:", {trace.error for trace in guard.traces("support", limit=500) if not trace.success})

assert config == {"model": "large"}
