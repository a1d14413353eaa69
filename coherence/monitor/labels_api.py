"""What a monitor knows of earlier corrections and runs, and how corrections come into a prompt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from coherence.baseline.calibration_history import Calibration
from coherence.baseline.combiner import risk_of
from coherence.core.config import MonitorConfig
from coherence.core.decisions import Decision
from coherence.core.events import Correction, Event
from coherence.core.validation import check_count, check_text, shown
from coherence.monitor.codec import Verdict
from coherence.monitor.event_api import Recording
from coherence.monitor.pipeline import ENDING
from coherence.monitor.session_header import began_as
from coherence.monitor.worker import Engine
from coherence.policy.correction_prompt import LIMIT, inject
from coherence.policy.corrections import CorrectionPattern
from coherence.store.errors import StoreError
from coherence.store.runs import UNCOUNTED, write_label
from coherence.store.store import Store

Label: TypeAlias = Literal["good", "bad"]
"""Whether a run was as it should be; ``bad`` also for one that reached its goal while something else took it over."""


class Procedural(Recording):
    """Recording, and reading back what was learned from corrections and from labelled runs."""

    _engine: Engine
    config: MonitorConfig
    store: Store | None
    agent: str
    session: str
    lenient: bool
    _off: bool

    @abstractmethod
    def _guarded(self, ask: Callable[[], Verdict | None]) -> Verdict | None:
        """Ask the engine, unless it is switched off or closed."""

    def outcome(self, success: bool | None = None, *, score: float | None = None, text: str = "") -> Decision | None:
        """Record how the task ended; with ``config.grounding.gate``, judge its last answer too.

        Parameters
        ----------
        success : bool, optional
            Whether it succeeded, as far as the host knows. This is recorded as it is told.
        score : float, optional
            In [0, 1], 1 = good.
        text : str
            Anything else.

        Returns
        -------
        Decision or None
            ``None`` without a gate. Else the decision of a tick at the end: an active finding ``ungrounded_outcome``
            says that the run counts as failed, whatever was told; ``m.verdict`` holds it, and a replay finds it again.

        Examples
        --------
        >>> from coherence.monitor.monitor import Monitor
        >>> m = Monitor(goal="What does it cost?", embedder=False, config={"grounding": {"gate": 0.9}})
        >>> m.tool_result("price: 1200 USD", tool="shop")
        >>> m.message("assistant", "It costs 1,250 dollars.")
        >>> print(m.outcome(success=True).findings[0].why.partition(";")[0])
        the run counts as failed: grounding 0.00 is below 0.9
        """
        super().outcome(success, score=score, text=text)
        if self.config.grounding.gate is None:
            return None
        verdict = self._guarded(lambda: self._engine.decide(ENDING))
        return verdict.decision if verdict is not None else None

    def label_run(self, label: Label | None) -> None:
        """Say whether the present run, or the one that has just ended, was good; ``None`` takes a label back.

        Thresholds and weights of the agent's later sessions are learned from it. A run is a task: after an outcome the
        next goal, user's message or call begins another. A label counts more than an outcome, the newest label counts.
        Runs of the sources ``test`` and ``replay`` count for nothing.

        Raises
        ------
        ValueError
            If it is no label, or there is no store to keep it in; the latter not with ``lenient``.
        StoreError
            If it cannot be written; not with ``lenient``.
        """
        if label is not None and label not in get_args(Label):
            raise ValueError(f"label must be 'good', 'bad' or None, not {shown(label)}")
        if self._off:
            return
        with self._engine.settled() as column:
            run = column.runs.run.number
        recorder = self._engine.recorder
        try:
            if recorder is None or self.store is None:
                raise ValueError("a label needs a store to be kept in: Monitor(store=...)")
            if recorder.session.source not in UNCOUNTED:
                with self.store.transaction() as transaction:
                    good = None if label is None else label == "good"
                    write_label(transaction, self.agent, began_as(transaction, self.agent, self.session), run, good)
        except (ValueError, StoreError):
            if not self.lenient:
                raise

    @property
    def calibration(self) -> Calibration:
        """From which risks on metrics alarm, and how risks are added up; frozen when the session began."""
        return self._engine.column.calibration

    @property
    def risk(self) -> float | None:
        """The risk at the newest measurement in [0, 1], higher = worse; ``None``: nothing was measured.

        ``1 - coherence_index``, unless the agent's labelled runs have taught other weights.
        """
        with self._engine.settled() as column:
            reading = column.measured.reading if column.measured is not None else None
            if reading is None:
                return None
            return risk_of(reading, column.calibration.combination, column.runs.inverted)

    def corrections(self) -> list[CorrectionPattern]:
        """Return what users have corrected again and again, the heaviest first.

        A pattern is three corrections or more on similar requests, or the same one on different requests; old ones
        fade. ``examples`` are its notes; their ids serve :meth:`edit_correction` and :meth:`forget_correction`.
        """
        self._file_corrections()
        with self._engine.settled() as column:
            return column.standing.corrections.patterns(column.meaning.step)

    def _file_corrections(self) -> None:
        """Have a tick if corrections wait for one, at which they are embedded and grouped."""
        with self._engine.settled() as column:
            waiting = column.changed and bool(column.standing.corrections.pending())
        if waiting and not self._engine.closed:
            self._engine.decide("corrections")
            self._engine.after()

    def edit_correction(self, id: str, text: str) -> None:
        """Change the text of a correction; its id is that of a note of :meth:`corrections`.

        Raises
        ------
        ValueError
            If there is no such correction.
        """

        def make() -> Event:
            edited = Correction(check_text("text", text, empty=False), check_text("id", id, empty=False))
            with self._engine.settled() as column:
                if id not in column.standing.corrections.notes:
                    raise ValueError(f"no correction has the id {shown(id)}: corrections() lists them")
            return edited

        self._record(make)

    def inject_corrections(self, prompt: str, *, limit: int = LIMIT) -> str:
        """Return a prompt with what users corrected on requests like it before it, as quotations, or unchanged.

        Parameters
        ----------
        prompt : str
            What the agent will be asked; it is not recorded here.
        limit : int
            Most characters to put before it.

        Examples
        --------
        >>> from coherence.monitor.monitor import Monitor
        >>> m = Monitor(embedder=False)
        >>> m.message("user", "What is the weather in Oslo?")
        >>> for text in ("Celsius, not Fahrenheit", "no wind speeds", "name the day"):
        ...     m.correction(text)
        >>> print(m.inject_corrections("What is the weather in Oslo today?"))
        <past_corrections>
        Users corrected this agent 3 times on similar requests. Their words, quoted, newest first:
        - "name the day" (session 1, step 0)
        - "no wind speeds" (session 1, step 0)
        - "Celsius, not Fahrenheit" (session 1, step 0)
        </past_corrections>
        <BLANKLINE>
        What is the weather in Oslo today?
        """
        request = check_text("prompt", prompt)
        check_count("limit", limit)
        self._file_corrections()
        with self._engine.settled() as column:
            kept = column.standing.corrections
            if not kept.notes:
                return prompt
            vector = column.meaning.embed(request)
            return inject(prompt, kept.relevant(request, vector, column.meaning.step), limit=limit)
