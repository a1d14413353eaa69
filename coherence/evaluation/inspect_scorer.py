"""A scorer of inspect_ai: the course of each sample's agent, beside the grade of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from coherence.core.config import MonitorConfig
from coherence.core.protocols import Embedder
from coherence.core.readings import Reading, excerpt
from coherence.providers.readers.inspect_log import InspectReader
from coherence.providers.readers.source import Document, Source
from coherence.providers.transcript import Transcript
from coherence.report.cells import strip_text
from coherence.report.score import FROM_BEST, ScoredRun, index_of, score_transcript

if TYPE_CHECKING:
    from inspect_ai.scorer import Score, Scorer, Target
    from inspect_ai.solver import TaskState


def coherence_scorer(
    *, embedder: Embedder | Literal[False] | None = None, config: MonitorConfig | None = None, window: int = 20
) -> Scorer:
    """Return a scorer for ``Task(scorer=[...])``; its value is the lowest calibrated index of a sample, in [0, 1].

    The score's ``answer`` is the worst light, its ``explanation`` says why, and after which step. ``metadata`` has the
    last index, the lights, the decision and the rules that were active. A sample of which nothing can be measured is
    unscored, as is one that this package fails on: the evaluation goes on.

    Parameters
    ----------
    embedder : Embedder or False, optional
        Default: the shipped model. ``False``: nothing is embedded.
    config : MonitorConfig, optional
        Settings of the monitor that measures.
    window : int
        Messages of context.
    """
    import anyio.to_thread
    from inspect_ai.scorer import Score, mean, scorer, stderr

    def scored(state: TaskState) -> Score:
        try:
            run = score_transcript(_transcript(state), embedder=embedder, config=config, window=window)
        except Exception as error:
            reason = f"the sample could not be measured: {type(error).__name__}: {excerpt(str(error), 300)}"
            return Score(value=float("nan"), answer="unknown", explanation=reason)
        return Score(**_score(run))

    @scorer(metrics=[mean(), stderr()], name="coherence")
    def coherence() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            # it takes seconds, and other samples run on this loop
            return await anyio.to_thread.run_sync(scored, state)

        return score

    return coherence()


def _transcript(state: TaskState) -> Transcript:
    """Return a sample that is just done as its log will be read."""
    messages = [message.model_dump(mode="json", exclude_none=True) for message in state.messages]
    sample = {"id": state.sample_id, "epoch": state.epoch, "messages": messages}
    [run] = InspectReader().read(Source("sample", [Document({"eval": {}, "samples": [sample]}, None)]))
    return run


def _score(run: ScoredRun) -> dict[str, Any]:
    lights = run.lights
    at = max(range(len(lights)), key=lambda step: FROM_BEST.index(lights[step]))
    measured: list[Reading] = run.measured
    known = [index_of(reading) for reading in measured]
    decision = run.worst_decision
    rules = {found.rule: found.why for each in run.decisions for found in each.findings if found.active}
    why = [f"{lights[at]} after step {at} of {len(lights)}: {run.why(run.readings[at])}"]
    why += [f"{rule}: {excerpt(reason, 200)}" for rule, reason in rules.items()]
    if not known:
        why = ["nothing could be measured: the run is too short, or nothing is embedded", *why[1:]]
    return {
        "value": min(known, default=float("nan")),
        "answer": str(lights[at]),
        "explanation": "\n".join(why),
        "metadata": {
            "last_index": known[-1] if known else None,
            "lights": strip_text(lights),
            "decision": decision.kind if decision is not None else "continue",
            "rules": sorted(rules),
            "scale": run.scale,
        },
    }
