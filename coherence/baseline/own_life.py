"""Score of `goal_hijack` from which a call is unusual for this agent, learned from its runs, labelled or not.

Nobody says which of these runs were attacked, so what they teach is bounded. A call that the dataflow proves (a name
or an order that nobody but the text gave) teaches nothing and is judged by the shipped threshold. Of the others the
highest score of each run counts, and their split-conformal threshold is taken within `LOWEST` and the shipped one: an
attacker, however often he comes, can bring back the shipped one at most. Where more than a tenth of the runs exceed
even that, scores say nothing about this agent, and only proofs are warned of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import msgspec

from coherence.baseline.conformal import conformal_threshold, least_runs
from coherence.core.readings import number_of

LEAST = 20
"""Runs from which a threshold is learned, at a budget of 5 %; smaller budgets need more."""

MAX_LIFE = 100
"""Runs that are learned from, the newest."""

MAX_TOOL = 100
"""Characters of a tool's name."""

LOWEST = 0.18
"""Floor of a threshold: agents whose runs are all alike have nothing above 0.14 to 0.18."""

MARGIN = 0.01
"""Distance beyond what was usual that a score must have: of 20 runs the threshold is the largest."""

LOUD = 0.1
"""Share of runs above the shipped threshold from which scores alone say nothing: twice the budget."""

NOVEL = 0.03
"""Amount by which the threshold of a tool is lower that the agent has not called before."""

SETTLED = 0.4
"""Share of runs that call a tool which no other run calls, up to which a new tool is unusual."""


class Life(msgspec.Struct, frozen=True):
    """Usual scores of an agent's calls, by its runs, labelled or not.

    Examples
    --------
    >>> life = learn_life([{"read": 0.05, "send": 0.02 + run / 100} for run in range(20)], budget=0.05, shipped=0.25)
    >>> life.runs, life.threshold("send"), life.threshold("wipe")
    (20, 0.22, 0.19)
    >>> life.words
    'a call is unusual above 0.22, of a new tool above 0.19, by 20 runs, labelled or not'
    >>> learn_life([{"read": 0.05}] * 19, budget=0.05, shipped=0.25).threshold("read") is None
    True
    """

    runs: int = 0
    """Runs with calls that were learned from."""
    usual: float | None = None
    """A call of a known tool is unusual strictly above it, in [0, 1]; ``None`` = not known."""
    novel: float = 0.0
    """Amount by which it is lower for other tools."""
    tools: tuple[str, ...] = ()
    """Those that are known."""
    loud: bool = False
    """True if too many runs exceed the shipped threshold for scores to say anything."""

    @property
    def words(self) -> str:
        """All of it in one sentence."""
        lived = number_of(self.runs, "run")
        if self.usual is not None:
            new = f", of a new tool above {self.usual - self.novel:.3g}" if self.novel else ""
            return f"a call is unusual above {self.usual:.3g}{new}, by {lived}, labelled or not"
        if self.loud:
            return f"what is unusual cannot be told: too many of {lived} have calls above the shipped threshold"
        return f"what is unusual is not known yet: {lived} with calls, {LEAST} are needed"

    def threshold(self, tool: str) -> float | None:
        """Return the threshold of a tool's calls, ``None`` = nothing is known of the agent."""
        if self.usual is None or tool[:MAX_TOOL] in self.tools:
            return self.usual
        return self.usual - self.novel


def learn_life(runs: Sequence[Mapping[str, float]], budget: float, shipped: float) -> Life:
    """Return what an agent's runs teach.

    Parameters
    ----------
    runs : sequence of mapping
        Tool -> highest score of its calls that nothing proves, one a run; the tool "" stands for several.
    budget : float
        Share of runs that may alarm.
    shipped : float
        The threshold of that budget, which no learned one exceeds.
    """
    count = len(runs)
    if count < max(LEAST, least_runs(budget)):
        return Life(count)
    called = Counter(chain.from_iterable(runs))
    if sum(max(run.values()) > shipped for run in runs) > LOUD * count:
        return Life(count, loud=True)
    strange = sum(any(called[tool] == 1 for tool in run) for run in runs)
    novel = NOVEL if strange <= SETTLED * count and "" not in called else 0.0
    highest = (max(score + novel * (called[tool] == 1) for tool, score in run.items()) for run in runs)
    usual = conformal_threshold(sorted(highest), budget)
    assert usual is not None  # there are enough runs
    return Life(count, round(min(max(usual + MARGIN, LOWEST), shipped), 6), novel, tuple(sorted(called)))
