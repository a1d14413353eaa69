"""Ranking of the steps and agents of a failed run by their part in its end, after the fact and without a model."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from coherence.core.readings import excerpt, number_of
from coherence.core.redact import redact, redact_value
from coherence.core.validation import call_text
from coherence.detect.assumption import TOTAL, AssumedStep, AssumptionFacts, is_english
from coherence.detect.text_analysis import TextAnalysis, mass, tokens
from coherence.providers.transcript import Step, Transcript

ORIGIN_WEIGHT = 0.5 / TOTAL
"""Largest gain of a step in which the content of the stated final answer first appears."""

TEMPERATURE = 0.2
"""Speed at which shares fall with the score; the one number that was fitted, by likelihood of the labelled steps."""

DECIDED = 0.35
"""Least share of a first step that is named."""

STANDS_OUT = 2.0
"""Least ratio of the likelihood of a first step that is named to that of the other steps on average, or of an empty
step where there is no other. In a short run every step has a large share."""

RIGHT, RIGHT_BELOW = 0.5, 0.2
"""Share of labelled runs in which the first step was the labelled one: where it was decided, and where not."""

SHORT = 10
"""Steps of agents up to which a step can be decided. Of 24 longer labelled runs no step that stood out was the right
one."""

STEP_ONE = (0.26, 0.37)
"""Share of short labelled runs in which step 1 is right, and of others that were kept apart; where a tool or a user has
step 1, a step is drawn."""

Verdict: TypeAlias = Literal["decided", "undecided", "not failed"]
"""``decided``: one step stands out. ``undecided``: the evidence is thin. ``not failed``: there is nothing to blame."""

_ANSWER = re.compile(r"\bfinal answer(?: is)?\s{0,3}:[ \t]{0,8}([^\n]{1,400})", re.IGNORECASE)
_UNNAMED = "agent"


class BlamedStep(msgspec.Struct, frozen=True):
    """One step of the agents and its part in the failure."""

    step: int
    """Its index in the transcript."""
    agent: str
    """Name of the agent."""
    score: float
    """In [0, 1.2]; comparable within a run."""
    share: float
    """Chance that it is the decisive one, in [0, 1]; all steps of a run sum to 1."""
    reasons: tuple[str, ...]
    """Reasons in words, the strongest first."""
    quote: str = ""
    """The words that the first reason points at."""


class BlamedAgent(msgspec.Struct, frozen=True):
    """One agent and its part in the failure."""

    agent: str
    """Name of the agent."""
    step: int
    """Its likeliest step."""
    share: float
    """The sum of the shares of its steps."""
    steps: int
    """Its steps in the run."""


class Blame(msgspec.Struct, frozen=True):
    """Steps and agents of one run, ranked by the evidence that they decided its end."""

    run: str
    """Id of the run."""
    verdict: Verdict
    """``decided``, ``undecided`` or ``not failed``."""
    why: str
    """The verdict in one sentence."""
    right: float | None
    """Share of labelled runs with a verdict like this in which the first step was right; ``None`` if not failed, or
    without a step."""
    as_likely: int | None
    """A step that is as likely as the first one by its place alone: step 1 of a short run that is not decided."""
    steps: tuple[BlamedStep, ...]
    """Every step of the agents, the most likely first."""
    agents: tuple[BlamedAgent, ...]
    """In the order of their likeliest steps: an agent with many steps has many small shares."""


def blame(transcript: Transcript, *, success: bool | None = None) -> Blame:
    """Rank the steps and agents of a failed run by how much speaks for their having decided its end.

    A step's score is its :class:`~coherence.metrics.UnsupportedAssumption` value - assumed in place of evidence, new
    material, code - plus, where the run states a final answer ("FINAL ANSWER: …"), what of that answer first appears in
    the step. Where in the run a step stands plays no part. Shares are ``exp(score / 0.2)``, made to sum to 1.

    Parameters
    ----------
    transcript : Transcript
        The run, from :func:`~coherence.providers.readers.read_transcripts` or made by hand.
    success : bool, optional
        How the run ended. Default: as the transcript tells; if it does not, the run counts as failed.

    Raises
    ------
    TypeError
        If it is given no transcript.

    Examples
    --------
    >>> from coherence.providers.transcript import Step, Transcript
    >>> run = Transcript(id="museum", goal="What does the annual pass of the museum cost?", steps=(
    ...     Step(role="assistant", agent="planner", content="Let's look at the price list."),
    ...     Step(role="tool", content="404 not found", is_error=True),
    ...     Step(role="assistant", agent="clerk", content="Let's assume an estimate: adults pay $129, children $64, "
    ...          "under the 2023 tariff with a family discount of 15%."),
    ...     Step(role="assistant", agent="planner", content="FINAL ANSWER: $129")))
    >>> found = blame(run)
    >>> found.verdict, found.steps[0].step, found.agents[0].agent
    ('decided', 2, 'clerk')
    >>> found.steps[0].reasons[0]
    'puts an assumption in the place of evidence'
    """
    if not isinstance(transcript, Transcript):
        raise TypeError(f"transcript must be a Transcript, not {type(transcript).__name__}")
    texts = [_text(step) for step in transcript.steps]
    judged = _judged(transcript, texts)
    origins = _origins(transcript, texts)
    scores = {at: step.value + ORIGIN_WEIGHT * origins.get(at, 0.0) for at, step in judged.items()}
    shares = _shares(scores)
    steps = [
        BlamedStep(
            at,
            transcript.steps[at].agent or _UNNAMED,
            scores[at],
            shares[at],
            (*step.reasons(), *_origin_in_words(origins.get(at, 0.0))),
            excerpt(step.phrase),
        )
        for at, step in judged.items()
    ]
    steps.sort(key=lambda step: (-step.score, step.step))
    english = is_english("\n".join(texts[at][0] for at in judged))
    verdict, why, right = _verdict(steps, judged, english, transcript.success if success is None else success)
    as_likely = 1 if verdict == "undecided" and 1 in judged and len(steps) <= SHORT and steps[0].step != 1 else None
    if as_likely is not None:
        why = f"{why}; step {as_likely} is as likely"
    return Blame(transcript.id, verdict, why, right, as_likely, tuple(steps), _agents(steps))


def _text(step: Step) -> tuple[str, str]:
    """Return what a step says and what it calls, without secrets."""
    calls = (call_text(call.name, redact_value(call.arguments)) for call in step.tool_calls)
    return redact(step.content), "\n".join(calls)


def _judged(transcript: Transcript, texts: Sequence[tuple[str, str]]) -> dict[int, AssumedStep]:
    facts = AssumptionFacts()
    if transcript.goal.strip():
        facts.ask(TextAnalysis(redact(transcript.goal)))
    if transcript.system.strip():
        facts.read(TextAnalysis(redact(transcript.system)))
    found: dict[int, AssumedStep] = {}
    memories = sorted(transcript.memories)
    for at, (step, (said, called)) in enumerate(zip(transcript.steps, texts, strict=True)):
        while memories and memories[0][0] <= at:
            facts.read(TextAnalysis(redact(memories.pop(0)[1])))
        if step.role == "user":
            facts.ask(TextAnalysis(said), anew=False)
        elif step.role == "tool":
            facts.read(TextAnalysis(said))
        else:
            facts.say(at, TextAnalysis(said))
            if called:
                facts.call(at, TextAnalysis(called))
            assert facts.step is not None
            found[at] = facts.step
    return found


def _origins(transcript: Transcript, texts: Sequence[tuple[str, str]]) -> dict[int, float]:
    """Return the share of the stated final answer's content that appears first in each step of an agent."""
    stated = [
        _ANSWER.search(said)
        for step, (said, _) in zip(transcript.steps, texts, strict=True)
        if step.role == "assistant"
    ]
    answers = [found[1] for found in stated if found is not None]
    if not answers:
        return {}
    # Words of the goal come from no step; of several answers the last one was meant.
    left = set(tokens(answers[-1]) - tokens(transcript.goal))
    whole = mass(left)
    found: dict[int, float] = {}
    for at, (step, (said, called)) in enumerate(zip(transcript.steps, texts, strict=True)):
        here = left & (tokens(said) | tokens(called))
        left -= here
        if here and step.role == "assistant":
            found[at] = mass(here) / whole
    return found


def _origin_in_words(share: float) -> list[str]:
    if not share:
        return []
    return [
        "the stated final answer first appears here"
        if share > 0.5
        else "a part of the stated answer appears first here"
    ]


def _shares(scores: dict[int, float]) -> dict[int, float]:
    highest = max(scores.values(), default=0.0)
    raw = {at: math.exp((score - highest) / TEMPERATURE) for at, score in scores.items()}
    whole = math.fsum(raw.values())
    return {at: each / whole for at, each in raw.items()}


def _agents(steps: Sequence[BlamedStep]) -> tuple[BlamedAgent, ...]:
    of: dict[str, list[BlamedStep]] = {}
    for step in steps:
        of.setdefault(step.agent, []).append(step)
    return tuple(
        BlamedAgent(agent, own[0].step, math.fsum(step.share for step in own), len(own)) for agent, own in of.items()
    )


def _verdict(
    steps: Sequence[BlamedStep], judged: dict[int, AssumedStep], english: bool, success: bool | None
) -> tuple[Verdict, str, float | None]:
    if success:
        return "not failed", "the run is marked as a success, not as failed; the steps are those that assume most", None
    unknown = "" if success is False else " (the run is not marked as failed; it is taken for that)"
    if not steps:
        return "undecided", f"no step of an agent in the run{unknown}", None
    foreign = sum(not step.english for step in judged.values())
    if english and 2 * foreign <= len(judged) and judged[steps[0].step].english:
        return _standing(steps, judged, unknown)
    told = f"{foreign} of {number_of(len(judged), 'step')}" if foreign else "the steps taken together"
    verb = "is" if foreign == 1 else "are"
    return "undecided", f"{told} {verb} not in English, as the cues are{unknown}", RIGHT_BELOW


def _standing(
    steps: Sequence[BlamedStep], judged: dict[int, AssumedStep], unknown: str
) -> tuple[Verdict, str, float | None]:
    """Tell whether the first step stands out: by what it shows, and from the others."""
    first = steps[0]
    if not any(judged[step.step].shows_cue for step in steps):
        return "undecided", f"no step shows a cue{unknown}", RIGHT_BELOW
    likely = [math.exp(step.score / TEMPERATURE) for step in steps[1:]] or [1.0]
    times = math.exp(first.score / TEMPERATURE) * len(likely) / math.fsum(likely)
    if first.share < DECIDED or times < STANDS_OUT or not judged[first.step].shows_cue:
        return "undecided", f"no step stands out: the first has a share of {first.share:.0%}{unknown}", RIGHT_BELOW
    told = f"step {first.step} of {excerpt(first.agent, 40)} stands out{unknown}"
    if len(steps) > SHORT:
        return "undecided", f"{told}, which says little in a run of more than {SHORT} steps", RIGHT_BELOW
    return "decided", told, RIGHT
