"""What a monitor knows of earlier corrections, and how it puts them into a prompt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from coherence.column import ENDING
from coherence.config import MonitorConfig
from coherence.decide.corrections import CorrectionPattern
from coherence.decide.quoting import LIMIT, inject
from coherence.engine import Engine
from coherence.events import Correction, Event
from coherence.evidence.rows import Verdict
from coherence.findings import Decision
from coherence.plain import check_count, check_text, shown
from coherence.recording import Recording


class Procedural(Recording):
    """Recording, and reading back what users have corrected."""

    _engine: Engine
    config: MonitorConfig

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
        >>> from coherence.monitor import Monitor
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
        >>> from coherence.monitor import Monitor
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
