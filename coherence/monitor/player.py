"""Recorded runs, told to monitors again in real time, several at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from threading import Event
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Decision
from coherence.core.protocols import Embedder
from coherence.core.readings import Reading
from coherence.core.validation import check_number
from coherence.monitor.monitor import Monitor
from coherence.monitor.steps import record_steps
from coherence.providers.transcript import Step, Transcript
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.store import Store

RHYTHM_S = 20.0
"""Seconds from one step to the next where no run has times: about what a model and a tool take."""

LONGEST_PAUSE_S = 120.0
"""Longest pause between two steps, in seconds: nobody watches an agent whose user has gone home."""

STEP_TIMEOUT_S = 60.0
"""Seconds that a measurement may take: no agent waits for a recorded run."""

SLOWEST, FASTEST = 1.0, 100.0
"""Bounds of the speed."""


class Part(msgspec.Struct, frozen=True):
    """A run, and the name of the agent as which it is told."""

    agent: str
    run: Transcript


class Turn(msgspec.Struct, frozen=True, order=True):
    """A step, and when it is told."""

    at: float
    """Seconds after the beginning, at speed 1."""
    part: int
    step: int


class Told(msgspec.Struct, frozen=True):
    """A step that was told, and the answers to it."""

    at: float
    """Seconds after the beginning, at speed 1."""
    agent: str
    step: int
    steps: int
    """Steps of the whole run."""
    decision: Decision
    reading: Reading | None
    """Measurement after it; ``None`` where monitoring is switched off."""
    refused: tuple[Decision, ...]
    """Decisions that refused a call of this step before it was made."""
    taken: int = 0
    """Steps that the agent has taken: its messages, and the results of its calls."""
    in_all: int = 0
    """Steps that it takes in the whole run."""

    @property
    def is_last(self) -> bool:
        """True if the run has ended."""
        return self.step + 1 == self.steps


def schedule(runs: Sequence[Transcript]) -> tuple[Turn, ...]:
    """Return when each step of each run is told, in order.

    All runs begin at once. Where two steps have times, the second comes as long after the first as it did, at most
    :data:`LONGEST_PAUSE_S`. Other steps keep a steady rhythm: a run without any time takes as long as the longest one,
    so that all are seen together.

    Examples
    --------
    >>> run = Transcript(id="a", steps=(Step(role="user", ts=5.0), Step(role="assistant", ts=7.5)))
    >>> other = Transcript(id="b", steps=(Step(role="user"), Step(role="assistant"), Step(role="assistant")))
    >>> [(turn.at, turn.part, turn.step) for turn in schedule([run, other])]
    [(0.0, 0, 0), (0.0, 1, 0), (2.5, 0, 1), (20.0, 1, 1), (40.0, 1, 2)]
    """
    longest = max((sum(_pauses(run.steps, RHYTHM_S)) for run in runs), default=0.0)
    turns: list[Turn] = []
    for part, run in enumerate(runs):
        untimed = len(run.steps) > 1 and all(step.ts is None for step in run.steps)
        at = 0.0
        for step, pause in enumerate(_pauses(run.steps, longest / (len(run.steps) - 1) if untimed else RHYTHM_S)):
            at += pause
            turns.append(Turn(at, part, step))
    return tuple(sorted(turns))


def _pauses(steps: Sequence[Step], rhythm: float) -> Iterator[float]:
    """Yield the seconds before each step."""
    for at, step in enumerate(steps):
        before = steps[at - 1].ts if at else None
        if at == 0:
            yield 0.0
        elif step.ts is None or before is None:
            yield rhythm
        else:
            yield min(max(step.ts - before, 0.0), LONGEST_PAUSE_S)


class Player:
    """Tell recorded runs to monitors, each step when its turn comes.

    Each run has a monitor of its own, which records into one store, is asked before each call, and decides after each
    step; its readings are those of :func:`~coherence.report.score.score_transcript`. It gives guidance and refuses
    calls as it would in a live agent. A recorded agent hears nothing of it and goes on as it did: no guidance counts as
    delivered, and a refused call is told all the same.

    Parameters
    ----------
    parts : sequence of Part
        The runs; no two agents have one name.
    store : Store, optional
        Where they are recorded, each as a new session.
    speed : float
        How many times faster than they were, 1 to 100.
    embedder : Embedder or EmbeddingCache or False, optional
        Default: the shipped model.
    config : MonitorConfig, optional
        All other settings of the monitors.

    Raises
    ------
    ValueError
        For a speed out of bounds, and for two agents of one name.

    Examples
    --------
    >>> run = Transcript(id="a", goal="What is 2+2?", steps=(Step(role="assistant", content="4"),))
    >>> with Player([Part("adder", run)], embedder=False) as player:
    ...     player.play(Event(), lambda told: print(told.agent, told.step, told.decision.kind))
    adder 0 continue
    True
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        store: Store | None = None,
        speed: float = 1.0,
        embedder: Embedder | EmbeddingCache | Literal[False] | None = None,
        config: MonitorConfig | None = None,
    ) -> None:
        self.speed = check_number("speed", speed, least=SLOWEST, most=FASTEST)
        if len({part.agent for part in parts}) < len(parts):
            raise ValueError("every part needs an agent of a name of its own")
        self.parts = tuple(parts)
        self.turns = schedule([part.run for part in parts])
        """Steps that are told, in order."""
        self.done = 0
        """Number of turns that are over."""
        self._settings = msgspec.structs.replace(config or MonitorConfig(), tick="manual", timeout_s=STEP_TIMEOUT_S)
        self._store, self._embedder = store, embedder
        self._voices: list[_Voice] = []
        self._open = ExitStack()

    @property
    def seconds(self) -> float:
        """Seconds that playing takes, at this speed."""
        return self.turns[-1].at / self.speed if self.turns else 0.0

    def play(self, stop: Event, on_step: Callable[[Told], object] | None = None) -> bool:
        """Tell what has not been told yet; return ``False`` if stopped before the end.

        Parameters
        ----------
        stop : threading.Event
            Ends it between two steps, from any thread.
        on_step : callable, optional
            Called after each step, on this thread.
        """
        waiting = self.turns[self.done :]
        begin = time.monotonic() - (waiting[0].at / self.speed if waiting else 0.0)
        for turn in waiting:
            if stop.wait(max(begin + turn.at / self.speed - time.monotonic(), 0.0)):
                return False
            told = self._voices[turn.part].tell(turn)
            self.done += 1
            if on_step is not None:
                on_step(told)
        return True

    def __enter__(self) -> Self:
        with self._open:
            for part in self.parts:
                monitor = Monitor(
                    agent=part.agent,
                    goal=part.run.goal if part.run.goal.strip() else None,
                    store=self._store,
                    embedder=self._embedder,
                    config=self._settings,
                )
                self._voices.append(_Voice(part, self._open.enter_context(monitor)))
            self._open = self._open.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()


class _Voice:
    """One run, told to its monitor step by step."""

    def __init__(self, part: Part, monitor: Monitor) -> None:
        self._part, self._monitor = part, monitor
        self._refused: list[Decision] = []
        self._steps = record_steps(monitor, part.run, before_call=self._ask)

    def _ask(self, tool: str, arguments: Any) -> None:
        answer = self._monitor.check(tool, arguments)
        if not answer:
            self._refused.append(answer)

    def tell(self, turn: Turn) -> Told:
        """Tell the next step, and what its agent's labels say of its end after the last one."""
        self._refused.clear()
        step = next(self._steps)
        decision = self._monitor.decide()
        run = self._part.run
        told = Told(
            turn.at,
            self._part.agent,
            step,
            len(run.steps),
            decision,
            self._monitor.latest,
            tuple(self._refused),
            _taken(run.steps[: step + 1]),
            _taken(run.steps),
        )
        if told.is_last:
            self._monitor.outcome(run.success, text=run.outcome)
        self._monitor.flush()  # whoever looks at the store sees a step at once
        return told


def _taken(steps: Sequence[Step]) -> int:
    return sum(step.role in ("assistant", "tool") for step in steps)
