"""Runs in this package's own format, one JSON object each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

import msgspec

from coherence.core.readings import Counters, excerpt
from coherence.providers.readers.detect import objects
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import check_depth, seconds_of
from coherence.providers.transcript import Role, Step, Transcript, TranscriptCall

EXPECTED = (
    "runs {id, goal, steps: [{role: user, assistant, tool or system, content, tool_calls?, tool_result?, usage?}]}, "
    "one a line"
)


LABELS = (
    "success",
    "hijacked",
    "attacked",
    "injection_step",
    "hijack_step",
    "error_step",
    "error_agent",
    "derailed",
    "onset_step",
)
"""Labels of a run that this package reads."""

ALIKE = 0.8
"""From which likeness on the name of a label that is not read is taken for a slip, 1 = the same."""


MAX_LABELS = 100
"""Labels of a run whose names are looked at."""


class _Call(msgspec.Struct):
    name: str
    arguments: Any = None
    id: str | None = None

    def __post_init__(self) -> None:
        check_depth(self.arguments)


class _Usage(msgspec.Struct):
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


class _Step(msgspec.Struct):
    role: Role
    content: str | None = None
    agent: str | None = None
    tool_calls: list[_Call] | None = None
    tool_name: str | None = None
    tool_result: str | None = None
    is_error: bool | None = None
    usage: _Usage | None = None
    ts: Any = None
    latency_s: Any = None

    def to_step(self) -> Step:
        result = self.tool_result if self.role == "tool" else None
        return Step(
            role=self.role,
            content=(self.content or "") if result is None else result,
            tool_calls=tuple(TranscriptCall(call.name, call.arguments, call.id) for call in self.tool_calls or ()),
            tool_name=self.tool_name,
            is_error=bool(self.is_error),
            agent=self.agent,
            usage=Counters(**msgspec.structs.asdict(self.usage)) if self.usage is not None else None,
            ts=seconds_of(self.ts),
            latency_s=seconds_of(self.latency_s),
        )


class _Run(msgspec.Struct):
    steps: list[_Step]
    id: str | int | None = None
    group: Any = None
    goal: str | None = None
    system: str | None = None
    memories: list[str] | None = None
    labels: Any = None

    def task(self) -> str:
        """Return the name of its task; empty where the run does not name one."""
        named = isinstance(self.group, str | int) and not isinstance(self.group, bool)
        return str(self.group) if named else ""

    def success(self) -> bool | None:
        found = self.labels.get("success") if isinstance(self.labels, dict) else None
        return found if isinstance(found, bool) else None

    def ending(self) -> tuple[str, bool | None, int | None]:
        """Return how it ended, in words, whether it went wrong, and from which step on; nothing where no label says."""
        labels = self.labels if isinstance(self.labels, dict) else {}
        for name, at in (("hijacked", "hijack_step"), ("derailed", "onset_step")):
            if labels.get(name) is True:
                return f"{name}{_place(labels.get(at))}", True, self.step(labels.get(at))
        success, error = self.success(), labels.get("error_step")
        if success is False or isinstance(error, int):
            return f"failed{_place(error)}", True, self.step(error)
        if success or labels.get("derailed") is False:
            return "good", False, None
        return "", None, None

    def step(self, label: object) -> int | None:
        """Return a label that names a step of the run; ``None`` where it does not."""
        if isinstance(label, bool) or not isinstance(label, int):
            return None
        return label if 0 <= label < len(self.steps) else None

    def slips(self) -> list[str]:
        """Say which labels look as if they were to be read and are not."""
        if not isinstance(self.labels, dict):
            return [] if self.labels is None else ["labels is no object; nothing of it is read"]
        found = []
        if not isinstance(self.labels.get("success"), bool | None):
            given = excerpt(repr(self.labels["success"]), 40)
            found.append(f"labels.success is {given}, neither true nor false; not read")
        for name in islice(self.labels, MAX_LABELS):
            alike = [] if name in LABELS else get_close_matches(name[:40].lower(), LABELS, 1, ALIKE)
            if alike:
                found.append(f"labels.{excerpt(name, 40)} is not read; {alike[0]} is")
        return found


class RunsReader:
    """Runs in this package's own format."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for an object with steps."""
        return any("steps" in value and "messages" not in value for value in objects(documents))

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each run."""
        return read_runs(source)


def read_runs(source: Source) -> Iterator[Transcript]:
    """Yield each run; of its labels only how it ended is read. No score uses it or the task. Slips become warnings."""
    for document in source.documents:
        run = source.convert(document, _Run, EXPECTED)
        steps = (step.to_step() for step in run.steps)
        memories = [(0, memory) for memory in run.memories or ()]
        transcript = source.transcript(
            steps,
            line=document.line,
            id=run.id,
            goal=run.goal,
            system=run.system,
            memories=memories,
            warnings=run.slips(),
        )
        outcome, went_wrong, off_course = run.ending()
        yield msgspec.structs.replace(
            transcript,
            group=run.task(),
            success=run.success(),
            outcome=outcome,
            went_wrong=went_wrong,
            off_course=off_course,
        )


def _place(step: object) -> str:
    return f" at step {step}" if isinstance(step, int) and not isinstance(step, bool) else ""
