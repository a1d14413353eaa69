"""Unsupported assumption: how much the agent's newest step rests on what nobody told or showed it."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.core.errors import UnknownSourceError
from coherence.core.readings import Evidence, excerpt
from coherence.detect.assumption import AssumedStep
from coherence.state.reducer import AgentState


@dataclass(frozen=True)
class UnsupportedAssumption:
    """Degree to which the newest step rests on assumption in place of evidence.

    ``(f / (f + 1) + 2 n / (n + 50) + 0.25 c) / 3.25``, where *f* counts phrases that put something in the place of
    evidence (assume, simulate, mock, placeholder, estimate, alternative, …; an inability that the step works around by
    code or a call is one more), *n* is the weight of tokens that occur nowhere before (in no request, result, memory or
    earlier step; names, numbers and addresses weigh more), and *c* is 1 with a code block. A step is a message of the
    agent and its calls. One that only quotes the whole task hands it on and counts 0.

    Range [0, 1], inverted: 0 = nothing new, nothing assumed. Compare steps of one run: a long first answer or a program
    reaches 0.5 without any assumption. ``None`` before the first step, for one without a word or a call, and for one
    that is not in English: the phrases are English, see :func:`~coherence.detect.assumption.is_english`. ``None`` too
    for a provider that is no monitor's state: it does not tell who said what.

    Parameters
    ----------
    state : AgentState
        The agent.

    Examples
    --------
    >>> from coherence.core.events import Goal, Message
    >>> state = AgentState()
    >>> state.fold(1, 0.0, Goal("Find the price of the annual pass."))
    >>> state.fold(2, 1.0, Message("assistant", "Let's assume it costs $1,290."))
    >>> metric = UnsupportedAssumption(state)
    >>> round(metric.compute(), 2)
    0.2
    >>> print(metric.explain())
    “Let's assume it costs $1,290.” puts an assumption in the place of evidence; nowhere before: 1,290
    """

    state: AgentState
    name = "unsupported_assumption"
    inverted = True
    in_place = True
    why_unknown = "no step of the agent yet"

    def compute(self) -> float | None:
        """Return the value of the newest step."""
        step = self._step()
        if step is not None and step.silent:
            raise UnknownSourceError("the newest step has neither a word nor a call")
        if step is not None and not step.english:
            raise UnknownSourceError("the newest step is not in English, as the phrases are that are looked for")
        return None if step is None else step.value

    def explain(self) -> Evidence | None:
        """Quote the phrase, and name what is new."""
        step = self._step()
        if step is None or not step.value:
            return None
        items = tuple(at for at, item in enumerate(self.state.context) if item.seq == step.seq > 0)
        return Evidence("; ".join(step.reasons()), "context", items, (excerpt(step.phrase),) if step.phrase else ())

    def _step(self) -> AssumedStep | None:
        return self.state.assumption.data.step if isinstance(self.state, AgentState) else None
