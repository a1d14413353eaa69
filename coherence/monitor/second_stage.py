"""Questions to a judge, within a time and a budget, so that a slow or broken one costs its answer only."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from coherence.core.calls import Breaker, PluginCall
from coherence.core.config import JudgeConfig
from coherence.core.events import Opinion
from coherence.core.plugin_calls import run_calls
from coherence.core.protocols import Judge
from coherence.core.readings import excerpt
from coherence.policy.second_opinion import Question

SHOWN = 200
"""Characters of an error in an opinion."""


class SecondStage:
    """A judge, and what may still be spent on it.

    Parameters
    ----------
    judge : Judge
        Who is asked.
    config : JudgeConfig
        Seconds and US dollars.
    clock : callable
        Returns seconds that never go back.

    Raises
    ------
    TypeError
        If it has no method ``judge``.
    """

    def __init__(self, judge: Judge, config: JudgeConfig, clock: Callable[[], float] = time.monotonic) -> None:
        if isinstance(judge, type) or not callable(getattr(judge, "judge", None)):
            raise TypeError(f"judge must be an object with a method judge, not {judge!r}")
        self._judge = judge
        self._config = config
        self._clock = clock
        self._lock = Lock()
        self._breaker = Breaker()
        self.name = str(getattr(judge, "name", "") or type(judge).__name__)[:SHOWN]
        self.spent_s = 0.0
        """Seconds waited so far."""
        self.spent_usd = 0.0
        """US dollars so far, by the judge's own price."""

    def ask(self, question: Question) -> Opinion | None:
        """Return the judge's opinion, or why there is none; waits ``timeout_s`` at most, and raises nothing.

        ``None`` while an earlier question is under way: it may be asked again later.
        """
        if self._breaker.running or not self._lock.acquire(blocking=False):
            return None
        try:
            refused = self._refused()
            if refused:
                return Opinion(question.key, judge=self.name, why=refused)
            ask = partial(self._judge.judge, question.claim, question.evidence)
            call = PluginCall("judge", ask, self._breaker, _probability)
            begun = self._clock()
            # Before the answer: a call that fails or is late costs as much.
            self.spent_usd += self._price()
            run_calls([call], min(self._config.timeout_s, self._config.budget_s - self.spent_s))
            self.spent_s += max(self._clock() - begun, 0.0)
            if call.failure is None:
                return Opinion(question.key, call.value, self.name)
            why = excerpt(f"{call.failure.kind}: {call.failure.message}", SHOWN)
            return Opinion(question.key, judge=self.name, why=why)
        finally:
            self._lock.release()

    def _refused(self) -> str:
        """Return why nobody is asked now, empty where somebody is."""
        if self.spent_s >= self._config.budget_s:
            return f"the budget of {self._config.budget_s:g} s is used up"
        most = self._config.budget_usd
        if most is not None and self.spent_usd + self._price() > most:
            return f"the budget of {most:g} US dollars is used up"
        return ""

    def _price(self) -> float:
        price = getattr(self._judge, "cost_usd", 0.0)
        return float(price) if isinstance(price, int | float) and price > 0 else 0.0


def _probability(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError("expected a probability, not a bool")
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"expected a probability in [0, 1], not {number!r}")
    return number
