"""Runs in this package's own format, one JSON object each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from coherence.providers.readers.source import Source
from coherence.providers.readers.values import check_depth
from coherence.providers.transcript import Role, Step, ToolCall, Transcript

EXPECTED = "runs {id, goal, steps: [{role: user, assistant or tool, content, tool_calls?, tool_result?}]}, one a line"


class _Call(msgspec.Struct):
    name: str
    arguments: Any = None
    id: str | None = None

    def __post_init__(self) -> None:
        check_depth(self.arguments)


class _Step(msgspec.Struct):
    role: Role
    content: str | None = None
    agent: str | None = None
    tool_calls: list[_Call] | None = None
    tool_name: str | None = None
    tool_result: str | None = None
    is_error: bool | None = None

    def to_step(self) -> Step:
        result = self.tool_result if self.role == "tool" else None
        return Step(
            role=self.role,
            content=(self.content or "") if result is None else result,
            tool_calls=tuple(ToolCall(call.name, call.arguments, call.id) for call in self.tool_calls or ()),
            tool_name=self.tool_name,
            is_error=bool(self.is_error),
            agent=self.agent,
        )


class _Run(msgspec.Struct):
    steps: list[_Step]
    id: str | int | None = None
    goal: str | None = None
    memories: list[str] | None = None
    labels: Any = None

    def success(self) -> bool | None:
        found = self.labels.get("success") if isinstance(self.labels, dict) else None
        return found if isinstance(found, bool) else None


def read_runs(source: Source) -> Iterator[Transcript]:
    """Yield each run; of its labels only how it ended is read, and no score uses it."""
    for document in source.documents:
        run = source.convert(document, _Run, EXPECTED)
        steps = (step.to_step() for step in run.steps)
        memories = [(0, memory) for memory in run.memories or ()]
        transcript = source.transcript(steps, line=document.line, id=run.id, goal=run.goal, memories=memories)
        yield msgspec.structs.replace(transcript, success=run.success())
