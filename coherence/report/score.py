"""Score a recorded run: one reading a step."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import TYPE_CHECKING, Literal

import msgspec

from coherence.baseline.runs import risk_of
from coherence.core.cards import band_of
from coherence.core.config import MonitorConfig
from coherence.core.decisions import KINDS, Appraisal, Decision, Finding, worst_kind
from coherence.core.protocols import Embedder
from coherence.core.readings import Band, Evidence, Reading, metric_of, number_of
from coherence.core.redact import Redactor, redact, redact_value
from coherence.core.signs import said
from coherence.core.strip import FROM_BEST as FROM_BEST
from coherence.monitor.monitor import Monitor
from coherence.monitor.steps import record_steps
from coherence.monitor.tick_result import TickResult
from coherence.providers.transcript import Transcript
from coherence.report.ahead import embedded_ahead, measured_texts
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.store import Store

if TYPE_CHECKING:
    import pandas

QUIET = 0.05
"""A risk below which no sign is worth naming."""

STEP_TIMEOUT_S = 60.0
"""Seconds a step may take: nobody's agent waits for a recorded run."""


class ToldStep(msgspec.Struct, frozen=True):
    """Guidance that fired during a step, as it was recorded."""

    step: int
    pattern: str
    """Rule whose finding fired."""
    text: str
    """Words for the agent; empty where they are not kept."""
    fate: str
    """``delivered``, ``not delivered``, or ``withheld, to compare``."""
    effect: str
    """Its effect, in words."""
    seq: int = 0
    """Number of its event."""


class RefusedCall(msgspec.Struct, frozen=True):
    """Call that was refused, as it was recorded."""

    step: int
    """Place of the step after which the agent wanted it, from 0."""
    seq: int
    """Number of its event."""
    tool: str
    call: str
    """Beginning of its arguments, in words."""
    why: str
    """Message of the decision; empty where it is not kept."""
    let_through: bool = False
    """``True`` if somebody ended the block afterwards."""


class ScoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its readings; ``readings[i]`` was measured after step ``i``."""

    transcript: Transcript
    """Steps, goal and outcome."""
    readings: tuple[Reading, ...]
    """One a step."""
    context_steps: tuple[tuple[int, ...], ...]
    """For each step, the steps that its context is made of."""
    appraisals: tuple[Appraisal, ...] = ()
    """One a step: how unusual it was for this run."""
    decisions: tuple[Decision, ...] = ()
    """One a step."""
    inverted: frozenset[str] = frozenset()
    """Names of the metrics whose high values are bad."""
    first_events: tuple[int, ...] = ()
    """For each step, the number of its first event."""
    told: tuple[ToldStep, ...] = ()
    """Guidance of a recorded session, oldest first."""
    refused: tuple[RefusedCall, ...] = ()
    """Calls that were refused, of a recorded session, oldest first."""
    numbers: tuple[int, ...] = ()
    """For each step, the number that it has in ``coherence watch`` and ``serve``: how many results of tools and
    messages of the agent there were when it was complete. Empty for a transcript, whose steps count from 0."""
    earlier: int = 0
    """Steps, counted so, before the first of these."""

    def _repr_html_(self) -> str:
        """Draw a card, for notebooks."""
        from coherence.report.run_card import run_card  # which only a notebook needs

        return run_card(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row for each step: light, index, pressure, decision, active findings, and each metric.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        from coherence.report.frame import frame_of

        return frame_of([self])

    @property
    def recorded(self) -> bool:
        """True for a session that was measured while the agent ran, so that its decisions could be heeded."""
        return bool(self.numbers)

    def number(self, at: int) -> int:
        """Return the number by which people know a step."""
        return self.numbers[at] if self.numbers else at

    def name(self, at: int, event: int = 0) -> str:
        """Name a step: its number and, of a recorded session, that of an event of it; default: its first."""
        return f"step {self.number(at)}" + (f" #{event or self.first_events[at]}" if self.recorded else "")

    def count(self, places: Iterable[int] | None = None) -> int:
        """Return how many steps some places are together, as they are numbered; default: those of the whole run."""
        if places is not None:
            return len({self.number(at) for at in places})
        return max(self.numbers) - self.earlier if self.numbers else len(self.readings)

    @property
    def steps_in_words(self) -> str:
        """Number of steps and, of a long session, of how many they are the newest."""
        whole = number_of(self.earlier + self.count(), "step")
        return f"the newest {self.count():,} of {whole}" if self.earlier else whole

    @property
    def measured(self) -> list[Reading]:
        """Readings at which anything was known."""
        return [reading for reading in self.readings if reading.coherence_index is not None]

    @property
    def last(self) -> Reading | None:
        """The newest reading at which anything was known."""
        return self.measured[-1] if self.measured else None

    @property
    def comparable(self) -> list[Reading]:
        """The readings whose indexes may be compared: of a calibrated index all that are known.

        Those of a classic index begin with the first one with the widest coverage of the run: before it the index is
        made of fewer metrics, and jumps; after it a metric is unknown where it does not apply.
        """
        measured = self.measured
        if any(reading.scale for reading in measured):
            return measured
        widest = max((reading.coverage for reading in measured), default=0.0)
        first = next((at for at, reading in enumerate(measured) if reading.coverage == widest), 0)
        return measured[first:]

    @property
    def lowest(self) -> Reading | None:
        """The first comparable reading with the lowest index."""
        return min(self.comparable, key=index_of, default=None)

    @property
    def bands(self) -> list[Band]:
        """The band after each step, ``unknown`` where nothing was."""
        return [reading.band for reading in self.readings]

    @property
    def risks(self) -> list[float | None]:
        """Risk of each of the agent's own steps, in [0, 1], higher = worse.

        ``None`` after what a user or a tool said: the step before has had its risk. ``None`` too if nothing is known.
        """
        return self.own_steps([risk_of(reading) for reading in self.readings])

    def own_steps(self, values: Sequence[float | None]) -> list[float | None]:
        """Return values, one a step, without those that stand at a user's or a tool's step."""
        steps = self.transcript.steps
        return [value if step.role == "assistant" else None for value, step in zip(values, steps, strict=True)]

    def latency_s(self, at: int) -> float | None:
        """Return how long a step of the agent or of a tool took, in seconds, ``None`` where nothing recorded it.

        That is what the source says, or the time since the step before; of a result, since the agent's call.
        """
        steps = self.transcript.steps
        step = steps[at]
        if step.latency_s is not None or step.role not in ("assistant", "tool"):
            return step.latency_s
        before = at - 1
        while step.role == "tool" and before >= 0 and steps[before].role == "tool":
            before -= 1
        start = steps[before].ts if before >= 0 else None
        return step.ts - start if step.ts is not None and start is not None and step.ts >= start else None

    @property
    def worst_band(self) -> Band:
        """The worst band after any step, ``unknown`` where nothing was ever known."""
        return max(self.bands, key=FROM_BEST.index, default=Band.UNKNOWN)

    @property
    def lights(self) -> list[Band]:
        """The light after each step: the band, or the colour of the decision where that is worse."""
        return [
            max(reading.band, light_of(decision, reading.band), key=FROM_BEST.index)
            for reading, decision in zip(self.readings, self.decisions, strict=True)
        ]

    def finding_steps(self, finding: Finding) -> list[int]:
        """Return the steps whose events a finding names."""
        found = (bisect_right(self.first_events, event) - 1 for event in finding.evidence)
        return sorted({step for step in found if step >= 0})

    @property
    def worst_decision(self) -> Decision | None:
        """The first of the most severe decisions."""
        return max(self.decisions, key=lambda decision: KINDS.index(decision.kind), default=None)

    @property
    def worst_decision_at(self) -> int | None:
        """Place of the step of :attr:`worst_decision`, ``None`` if nothing but ``continue`` was decided."""
        worst = self.worst_decision
        return None if worst is None or worst.kind == "continue" else self.decisions.index(worst)

    @property
    def worst_at(self) -> int | None:
        """Place of the worst step: with the lowest index, or where the decision on a call was worse than any band."""
        lowest = self.lowest
        lights = self.lights if self.decisions else self.bands
        worst = max(range(len(lights)), key=lambda at: FROM_BEST.index(lights[at]), default=None)
        if lowest is None:
            return worst if worst is not None and lights[worst] is not Band.UNKNOWN else None
        if worst is None or FROM_BEST.index(lights[worst]) <= FROM_BEST.index(self.worst_band):
            return lowest.tick_seq
        return worst

    def why_asked(self, at: int) -> str:
        """Say why the decision on a step is worse than its band: a call was refused or warned of; empty if it is not.

        A refused call explains a step whatever its band is, unless that is as bad.
        """
        if not self.decisions or self.lights[at] is self.readings[at].band:
            return ""
        refused = next((each for each in self.refused if each.step == at), None)
        message = self.decisions[at].message
        return f"call of {refused.tool} refused: {refused.why}" if refused is not None else message

    @property
    def highest_pressure(self) -> float | None:
        """The highest pressure of the run."""
        return max((appraisal.pressure for appraisal in self.appraisals), default=None)

    @property
    def scale(self) -> str | None:
        """Version of the scale that made the newest known index, empty for a classic one; ``None`` without one."""
        return None if self.last is None else self.last.scale

    @property
    def warned(self) -> bool:
        """True if the light was orange or red after any step: somebody was warned, or a call refused.

        Of a recorded session any decision but ``continue`` counts, also one on a call alone.
        """
        alarmed = any(band in (Band.ORANGE, Band.RED) for band in self.bands)
        return alarmed or (self.recorded and self.worst_decision_at is not None)

    @property
    def verdict(self) -> str:
        """Verdict on the light where the outcome is known: hit, miss, false alarm, recovered or calm; else empty.

        Nobody could heed the light of a transcript. A recorded session that was warned and ended well has recovered.
        """
        if self.transcript.went_wrong is None:
            return ""
        if self.transcript.went_wrong:
            return "hit" if self.warned else "miss"
        if not self.warned:
            return "calm"
        return "recovered" if self.recorded else "false alarm"

    def why(self, reading: Reading) -> str:
        """Say in words what lowers a reading most, and which step it points at."""
        asked = self.asked(reading)
        if asked is not None:
            return asked.why
        name = reading.worst()
        if name is None or (reading.scale and (reading.risk or 0.0) < QUIET):
            return "nothing stands out"
        evidence = reading.evidence.get(metric_of(name))
        value = reading.metrics.get(name)
        raw = f"{name} {value:.2f}" if value is not None else f"{name} unknown"
        what = said(name) if reading.scale else raw
        return f"{what}: {self.place(reading, evidence)}{evidence}" if evidence is not None else what

    def asked(self, reading: Reading) -> Finding | None:
        """Return the finding whose rule asked for the band, ``None`` where a sign, or nothing, did."""
        # A run may have been scored without decisions.
        if not reading.cause or reading.cause in reading.losses or reading.tick_seq >= len(self.decisions):
            return None
        findings = [finding for finding in self.decisions[reading.tick_seq].findings if finding.active]
        worst = worst_kind([finding.acts for finding in findings])
        # "policy" is the name of no finding: then the most severe one asked for the band.
        wanted = [found for found in findings if found.rule == reading.cause or found.acts == worst]
        return max(wanted, key=lambda found: found.rule == reading.cause, default=None)

    def place(self, reading: Reading, evidence: Evidence | None) -> str:
        """Name the steps that evidence points at, such as ``step 7 `` before a quotation, ``step 7: `` before words.

        Empty if it points at no step.
        """
        steps = self.evidence_steps(reading, evidence)
        if evidence is None or not steps:
            return ""
        numbers = " and ".join(str(self.number(step)) for step in steps)
        return f"step{'s'[: len(steps) > 1]} {numbers}{'' if evidence.texts else ':'} "

    def evidence_steps(self, reading: Reading, evidence: Evidence | None) -> list[int]:
        """Return the steps that a piece of evidence points at."""
        if evidence is None or evidence.kind != "context":
            return []
        steps = self.context_steps[reading.tick_seq]
        return [steps[item] for item in evidence.items if item < len(steps)]


def light_of(decision: Decision, band: Band) -> Band:
    """Return the colour of a decision; ``continue`` has that of its band."""
    return band if decision.kind == "continue" else band_of(decision)


def count_verdicts(runs: Sequence[ScoredRun]) -> str:
    """Say how often the light was right, of the runs whose outcome is known; empty where none is."""
    counts = Counter(run.verdict for run in runs)
    wrong = counts["hit"] + counts["miss"]
    recorded = any(run.recorded for run in runs)
    told = []
    if wrong:
        told.append(f"{number_of(wrong, 'run')} went wrong: {counts['hit']} warned of, {counts['miss']} missed")
    if good := counts["false alarm"] + counts["recovered"] + counts["calm"]:
        falsely = [] if recorded and not counts["false alarm"] else [f"{counts['false alarm']} warned of falsely"]
        warned = [f"{counts['recovered']} recovered after a warning"] if counts["recovered"] else []
        how = ", ".join(warned + falsely)
        told.append(f"{number_of(good, 'run')} went well{f': {how}' if how else ''}")
    return "; ".join(told)


def score_transcript(
    transcript: Transcript,
    *,
    embedder: Embedder | EmbeddingCache | Literal[False] | None = None,
    window: int = 20,
    metrics: Sequence[str] = (),
    config: MonitorConfig | None = None,
    store: Store | None = None,
    on_step: Callable[[int], object] | None = None,
    ahead: int = 0,
) -> ScoredRun:
    """Measure and decide after every step of a run.

    Parameters
    ----------
    transcript : Transcript
        The run.
    embedder : Embedder or EmbeddingCache or False, optional
        Default: the shipped model. ``False``: nothing is embedded, and what compares meanings is unknown.
    window : int
        Messages of context.
    metrics : sequence of str
        Names of registered metrics (scalar ones and vitals too) that count beside those of the settings' weights.
    config : MonitorConfig, optional
        Everything else.
    store : Store, optional
        Where the run is recorded, as a session of its own.
    on_step : callable, optional
        Called with the number of steps done, after each.
    ahead : int
        Threads that embed the texts of later steps meanwhile: by the shipped model, where ``embedder`` is a cache, and
        without a store. No result depends on it.
    """
    config = msgspec.structs.replace(
        config or MonitorConfig(), tick="manual", window=window, metrics=tuple(metrics), timeout_s=STEP_TIMEOUT_S
    )
    if config.redact:
        transcript = without_secrets(transcript)
    results: list[TickResult] = []
    context_steps: list[tuple[int, ...]] = []
    steps_of: dict[int, int] = {}
    first_events: list[int] = []
    monitor = Monitor(
        agent=_agent_of(transcript),
        session=_new_session(store, transcript),
        goal=transcript.goal if transcript.goal.strip() else None,
        store=store,
        embedder=embedder,
        config=config,
        source="replay",
    )
    embedding: AbstractContextManager[None] = nullcontext()
    if ahead > 0 and isinstance(embedder, EmbeddingCache) and store is None:
        embedding = embedded_ahead(measured_texts(transcript, config), embedder, ahead)
    with monitor as m, embedding:
        for at in record_steps(m, transcript):
            m.decide()
            result = m.result
            assert result is not None
            results.append(result)
            # Everything since the tick before was recorded by this step, its own tick included.
            first_events.append(max(steps_of, default=0) + 1)
            for seq in range(first_events[-1], result.appraisal.seq + 1):
                steps_of[seq] = at
            context_steps.append(tuple(steps_of[item.seq] for item in m.state.context))
            if on_step is not None:
                on_step(at + 1)
        inverted = m.inverted
    readings = [result.reading for result in results if result.reading is not None]
    return ScoredRun(
        transcript=transcript,
        readings=tuple(msgspec.structs.replace(reading, tick_seq=at) for at, reading in enumerate(readings)),
        context_steps=tuple(context_steps),
        appraisals=tuple(result.appraisal for result in results),
        decisions=tuple(result.decision for result in results),
        inverted=inverted,
        first_events=tuple(first_events),
    )


def index_of(reading: Reading) -> float:
    """Return the index of a reading, 2 where it is unknown: no other one is as high."""
    return 2.0 if reading.coherence_index is None else reading.coherence_index


def without_secrets(transcript: Transcript) -> Transcript:
    """Return a run whose texts and arguments hold no secrets, for whatever is written of it."""
    redactor = Redactor(hide_secrets=True)
    steps = tuple(
        msgspec.structs.replace(
            step,
            content=redact(redactor.joined(step.role, step.content)),
            tool_calls=tuple(
                msgspec.structs.replace(call, arguments=redact_value(call.arguments)) for call in step.tool_calls
            ),
        )
        for step in transcript.steps
    )
    memories = tuple((since, redact(text)) for since, text in transcript.memories)
    goal, system = redact(transcript.goal), redact(transcript.system)
    return msgspec.structs.replace(transcript, steps=steps, goal=goal, system=system, memories=memories)


def _agent_of(transcript: Transcript) -> str:
    return transcript.id if transcript.id.strip() else "run"


def _new_session(store: Store | None, transcript: Transcript) -> str | None:
    """Return a name that this run has in no session of the store."""
    if store is None:
        return None
    taken = {row.session for row in store.sessions(agent=_agent_of(transcript))}
    return next(name for number in count(1) if (name := f"run-{number}") not in taken)
