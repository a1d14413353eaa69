"""Asking a judge: on its own thread, within a time and a budget, so that a slow or broken one costs its answer only."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

from coherence.core.config import JudgeConfig
from coherence.core.events import Opinion
from coherence.core.protocols import Judge
from coherence.core.readings import excerpt
from coherence.policy.second_opinion import Question

LOG = logging.getLogger("coherence")

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
        self._thread: Thread | None = None
        self.name = str(getattr(judge, "name", "") or type(judge).__name__)[:SHOWN]
        self.spent_s = 0.0
        """Seconds waited so far."""
        self.spent_usd = 0.0
        """US dollars so far, by the judge's own price."""

    def ask(self, question: Question) -> Opinion | None:
        """Return the judge's opinion, or why there is none; waits ``timeout_s`` at most, and raises nothing.

        ``None`` while an earlier question is under way: it may be asked again later.
        """
        if (self._thread is not None and self._thread.is_alive()) or not self._lock.acquire(blocking=False):
            return None
        try:
            refused = self._refused()
            if refused:
                return Opinion(question.key, judge=self.name, why=refused)
            answers: list[float] = []
            failures: list[str] = []
            thread = Thread(
                target=self._answer, args=(question, answers, failures), daemon=True, name="coherence-judge"
            )
            begun = self._clock()
            self._thread = thread
            self.spent_usd += self._price()
            thread.start()
            thread.join(min(self._config.timeout_s, self._config.budget_s - self.spent_s))
            self.spent_s += max(self._clock() - begun, 0.0)
            if answers:
                return Opinion(question.key, answers[0], self.name)
            why = failures[0] if failures else f"no answer within {self._config.timeout_s:g} s"
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

    def _answer(self, question: Question, answers: list[float], failures: list[str]) -> None:
        try:
            answers.append(_probability(_settled(self._judge.judge(question.claim, question.evidence))))
        except Exception as error:  # a judge that fails costs its answer
            LOG.debug("coherence: the judge failed", exc_info=True)
            failures.append(excerpt(f"{type(error).__name__}: {error}", SHOWN))


def _settled(made: Any) -> Any:
    """Return what an ``async`` judge gives; it has a loop of its own."""
    return asyncio.run(_awaited(made)) if inspect.isawaitable(made) else made


async def _awaited(made: Any) -> Any:
    return await made


def _probability(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError("expected a probability, not a bool")
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"expected a probability in [0, 1], not {number!r}")
    return number
