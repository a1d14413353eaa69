"""Metrics that only vitals are made of: the index leaves them out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log2
from typing import ClassVar

import numpy as np

from coherence.core.errors import UnknownSourceError
from coherence.core.readings import Kind, MetricInput
from coherence.state.reducer import AgentState


@dataclass(frozen=True)
class ContextExhaustion:
    """The tokens of the newest model call over the size of the model's context window, at most 1.

    Range [0, 1], inverted: 1 = full. ``None`` without a configured size or before the first usage.

    Parameters
    ----------
    state : AgentState
        The agent; ``config.context_tokens`` is the size.
    """

    state: AgentState
    name = "context_exhaustion"
    inverted = True
    in_place = True
    why_unknown = "no usage yet"

    def compute(self) -> float | None:
        """Return the share."""
        size = self.state.config.context_tokens
        used = self.state.facts.context_used
        if size is None:
            raise UnknownSourceError("the context window's size is not configured (context_tokens)")
        return None if used is None else min(max(used / size, 0.0), 1.0)


RECENT_MESSAGES = 5
RECENT_RESULTS = 10
BEHAVIOUR = 0.3
"""Share of the behaviour in the drift."""


@dataclass(frozen=True)
class Drift:
    r"""Distance of recent text and behaviour from the session's intent.

    ``0.7 text + 0.3 behaviour``. *Text* is one minus the mean, over the last five messages, of the highest cosine with
    a goal. *Behaviour* is the Jensen-Shannon divergence between the tools of the last ten results and those of the
    whole session, 0 until there are twenty.

    Range [0, 1], inverted: 0 = on course. ``None`` without goals or context.

    Parameters
    ----------
    state : AgentState
        The agent.

    Notes
    -----
    The level is mostly topic; only its change against the agent's own baseline means something.

    References
    ----------
    J. Lin, "Divergence measures based on the Shannon entropy", 1991.
    """

    state: AgentState
    name = "drift"
    inverted = True
    in_place = True
    steady = True
    reads: ClassVar[tuple[Kind, ...]] = ("goals", "context")

    def compute(self, data: MetricInput) -> float | None:
        """Return the drift."""
        cosines = data.cosines("goals", "context")
        if not cosines.size:
            return None
        nearest: list[float] = [max(column) for column in zip(*cosines[:, -RECENT_MESSAGES:].tolist(), strict=True)]
        text = 1.0 - sum(nearest) / len(nearest)
        return (1.0 - BEHAVIOUR) * min(max(text, 0.0), 1.0) + BEHAVIOUR * self._behaviour()

    def _behaviour(self) -> float:
        facts = self.state.facts
        if facts.results < 2 * RECENT_RESULTS:
            return 0.0
        recent = Counter(action.tool for action in facts.actions[-RECENT_RESULTS:])
        return _divergence(recent, facts.tools)


def _divergence(left: dict[str, int], right: dict[str, int]) -> float:
    """Return the Jensen-Shannon divergence of two histograms, in [0, 1]."""
    sums = sum(left.values()), sum(right.values())
    total = 0.0
    for name in sorted({*left, *right}):
        p, q = left.get(name, 0) / sums[0], right.get(name, 0) / sums[1]
        middle = (p + q) / 2
        total += sum(share * log2(share / middle) for share in (p, q) if share) / 2
    return min(max(total, 0.0), 1.0)


@dataclass(frozen=True)
class GoalCoherence:
    """The cosine of the mean vector of the last five messages with the mean vector of the goals, at least 0.

    Range [0, 1], not inverted: 1 = about the goal. ``None`` without goals or context.

    Examples
    --------
    >>> import numpy as np
    >>> goal = np.array([[1, 0]], dtype=np.float32)
    >>> said = np.array([[0, 1], [0.6, 0.8]], dtype=np.float32)
    >>> data = MetricInput(goals=goal, goals_texts=["g"], context=said, context_texts=["a", "b"])
    >>> round(GoalCoherence().compute(data), 3)
    0.316
    """

    name = "goal_coherence"
    inverted = False
    in_place = True
    pure = True
    reads: ClassVar[tuple[Kind, ...]] = ("goals", "context")

    def compute(self, data: MetricInput) -> float | None:
        """Return the coherence."""
        if not data.goals.size or not data.context.size:
            return None
        goal = data.goals.sum(axis=0, dtype=np.float64)
        recent = data.context[-RECENT_MESSAGES:].sum(axis=0, dtype=np.float64)
        scale = float(np.vecdot(goal, goal)) * float(np.vecdot(recent, recent))
        return min(max(float(np.vecdot(goal, recent)) / scale**0.5, 0.0), 1.0) if scale > 0 else None


REPEATED_WITHIN = 10


@dataclass(frozen=True)
class Repetition:
    """The share of the last ten results, or of the last ten messages, that repeat an earlier one of them.

    A result repeats another if tool, arguments and result are equal, a message if its text is, or if it is monotonous
    (the same few characters over and over). The higher share counts.

    Range [0, 1], inverted: 0 = nothing twice. Where there are fewer than ten, the missing ones count as new. ``None``
    before the second result or message.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    name = "repetition"
    inverted = True
    in_place = True
    steady = True
    why_unknown = "fewer than two results or messages"

    def compute(self) -> float | None:
        """Return the share."""
        return self.compute_since(0)

    def compute_since(self, seq: int) -> float | None:
        """Return the share over what happened from event number ``seq`` on."""
        actions = [action for action in self.state.facts.actions[-REPEATED_WITHIN:] if action.seq >= seq]
        said = [message for message in self.state.facts.said[-REPEATED_WITHIN:] if message.seq >= seq]
        shares = []
        if len(actions) > 1:
            shares.append(
                (len(actions) - len({(action.made.exact, action.came.exact) for action in actions})) / REPEATED_WITHIN
            )
        if len(said) > 1:
            fresh = {message.digest for message in said if not message.monotonous}
            shares.append((len(said) - len(fresh)) / REPEATED_WITHIN)
        return max(shares, default=None)


UNSURE_WITHIN = 3
TURNS = 3
"""Comparisons over which hesitation is taken; where there are fewer, the missing ones count as none."""

ENOUGH_MESSAGES = 5
"""Messages before their form is known."""

USUAL_FORM = 0.6
"""Share of the messages that must have a form for it to be the usual one."""


@dataclass(frozen=True)
class Uncertainty:
    """Uncertainty in an agent's words and acts.

    ``0.40 hedging + 0.25 hesitation + 0.20 retries + 0.15 form``, where *hedging* is the mean hedge density of the last
    three messages, *hesitation* how much the agent turns back in meaning (each message is compared with the two before:
    nearer to the one before last than to the last is to and fro), *retries* the share of repeated failed calls among
    the last ten results, and *form* whether the newest message has another form (JSON, code, list, prose) than it
    should.

    Range [0, 1], inverted: 0 = sure. ``None`` before the first message or result.

    Parameters
    ----------
    state : AgentState
        The agent.

    Notes
    -----
    The words are English; hesitation, retries and form work in any language.
    """

    state: AgentState
    name = "uncertainty"
    inverted = True
    in_place = True
    steady = True
    reads: ClassVar[tuple[Kind, ...]] = ("context",)

    def compute(self, data: MetricInput) -> float | None:
        """Return the uncertainty."""
        facts = self.state.facts
        if not facts.said and not facts.actions:
            return None
        return self.in_words() + 0.25 * self._hesitation(data)

    def in_words(self) -> float:
        """Return what of it needs no vectors, at most 0.75."""
        facts = self.state.facts
        recent = facts.said[-UNSURE_WITHIN:]
        hedging = sum(said.hedging for said in recent) / max(len(recent), 1)
        results = facts.actions[-RECENT_RESULTS:]
        retries = sum(action.retry for action in results) / max(len(results), 1)
        return 0.40 * hedging + 0.20 * retries + 0.15 * self._deviates()

    def _hesitation(self, data: MetricInput) -> float:
        said = [at for at, item in enumerate(self.state.context) if item.role == "assistant"][-TURNS - 2 :]
        # The places of both agree only as long as no text has been left out for want of a vector.
        if len(said) < 3 or len(data.context_texts) != len(self.state.context):
            return 0.0
        cosines = data.cosines("context", "context")
        back = [
            max(float(cosines[third, first]) - float(cosines[third, second]), 0.0)
            for first, second, third in zip(said, said[1:], said[2:], strict=False)
        ]
        return min(2.0 * sum(back) / TURNS, 1.0)

    def _deviates(self) -> bool:
        facts = self.state.facts
        if not facts.said:
            return False
        wanted: str | None = self.state.config.output_format
        total = sum(facts.shapes.values())
        if wanted is None and total >= ENOUGH_MESSAGES:
            shape, count = max(facts.shapes.items(), key=lambda pair: pair[1])
            wanted = shape if shape != "empty" and count >= USUAL_FORM * total else None
        return wanted is not None and facts.said[-1].shape != wanted


@dataclass(frozen=True)
class WordedUncertainty:
    """The uncertainty without an embedder: hedging, retries and form, over the weight of these three.

    Range [0, 1], inverted: 0 = sure. ``None`` before the first message or result. See :class:`Uncertainty`.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    name = "uncertainty"
    inverted = True
    in_place = True
    steady = True
    why_unknown = "no message or result yet"

    def compute(self) -> float | None:
        """Return the uncertainty."""
        facts = self.state.facts
        return Uncertainty(self.state).in_words() / 0.75 if facts.said or facts.actions else None


@dataclass(frozen=True)
class Unmeasured:
    """A metric that is always unknown, because what it needs is not there.

    Parameters
    ----------
    name : str
        The metric it stands for.
    why : str
        What is missing.
    inverted : bool
        Direction of the metric it stands for.
    """

    name: str
    why: str
    inverted: bool = True
    in_place = True
    steady = True

    def compute(self) -> float | None:
        """Raise, which makes the metric unknown with this reason."""
        raise UnknownSourceError(self.why)
