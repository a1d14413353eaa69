"""Little labelled runs."""

from __future__ import annotations

from typing import Any

from coherence.evaluation.runs import LabelledRun, Labels
from coherence.evaluation.systems import Scores, System, of_steps
from coherence.providers.transcript import Step, Transcript, TranscriptCall


def steps_of(shape: str) -> tuple[Step, ...]:
    """Make steps: u = user, a = assistant speaks, c = assistant calls a tool, t = tool result."""
    made = {
        "u": Step(role="user", content="Pay the rent"),
        "a": Step(role="assistant", content="Done"),
        "c": Step(role="assistant", tool_calls=(TranscriptCall("pay", {"to": "landlord"}),)),
        "t": Step(role="tool", content="paid", tool_name="pay"),
    }
    return tuple(made[letter] for letter in shape)


def run(
    id: str,
    shape: str = "uca",
    *,
    group: str | None = None,
    part: str = "here",
    split: str | None = None,
    **labels: Any,
) -> LabelledRun:
    return LabelledRun(
        transcript=Transcript(id=id, steps=steps_of(shape), goal="Pay the rent"),
        labels=Labels(**labels),
        source=part.partition("/")[0],
        part=part,
        group=group or id,
        split=split,
    )


def system(name: str = "mine", *, fitted_on: Any = "none", **scores: Scores) -> System:
    return of_steps(name, scores, fitted_on=fitted_on)
