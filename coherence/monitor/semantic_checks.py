"""Comparison of texts by meaning: the newest answer with its task, corrections with requests like theirs."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from coherence.core.decisions import Finding
from coherence.core.events import Correction
from coherence.core.lazy import lazy_regex
from coherence.core.vectors import cosine
from coherence.detect.detector import EventDetector, Observed
from coherence.policy.correction_words import is_implicit
from coherence.policy.corrections import Corrections
from coherence.policy.regulator import RegulatorMemory
from coherence.policy.scope import ScopeDrift, nearest_drift, procedural_finding, scope_finding
from coherence.sensor.embedding_cache import EmbeddingCache, embed_now
from coherence.state.data import Answer
from coherence.state.reducer import AgentState

AT_ONCE = 8
"""Corrections that are filed anew at one tick: each may have to be embedded."""


_MULTILINGUAL = lazy_regex(
    r"multilingual|bge-m3|labse|qwen3-embed|embeddinggemma|jina-embeddings-v[3-9]|embed-text-v2|embed-l-v2",
    re.IGNORECASE,
)
"""Part of the fingerprint of an embedder of many languages; it is recorded, so a replay sees the same."""


class SemanticChecks(EventDetector[Corrections]):
    """Compares the texts of one agent, with the embedder's vectors where there are any, else by words.

    Parameters
    ----------
    state : AgentState
        The agent.
    memory : RegulatorMemory
        Knows how old the agent is.
    cache : EmbeddingCache, optional
        The embedder.
    session : str
        The session's name, for the provenance of corrections.
    """

    name, data_type = "corrections", Corrections

    def __init__(self, state: AgentState, memory: RegulatorMemory, cache: EmbeddingCache | None, session: str) -> None:
        super().__init__()
        self.state = state
        self._memory = memory
        self.cache = cache
        self.eager = False
        """``True`` if texts are embedded when they are needed here; else the sensor has done so at this tick."""
        self.session = session
        self.until: float | None = None
        """Time (monotonic) by which the tick under way is to be done."""
        self._drift: tuple[Answer, tuple[str, ...], tuple[str, ...], ScopeDrift] | None = None
        self._told = 0
        """Count of what the state had been told when that was found."""

    def restore(self, data: Corrections) -> None:
        """Go on with what was remembered elsewhere."""
        super().restore(data)
        self._drift = None

    @property
    def step(self) -> int:
        """Steps over the agent's whole life, by which corrections fade."""
        return self._memory.data.born + self.state.facts.steps

    def on_message(self, observed: Observed) -> None:
        """File what the user says as a correction, if it is one of what the agent has done for the request before."""
        facts = self.state.facts  # as they were before the message
        said, request = observed.event.content, facts.request
        asked = self.state.config.implicit_corrections and observed.event.role == "user" and bool(request)
        if asked and facts.step_seq > facts.request_seq and is_implicit(said, request):
            self._file(said, observed.seq)

    def on_correction(self, observed: Observed) -> None:
        """File, change or forget a correction."""
        event: Correction = observed.event
        if event.id is None:
            self._file(event.text, observed.seq)
        elif event.removed:
            self.data.forget(event.id)
        elif event.id in self.data.notes and event.text.strip():
            self.data.edit(event.id, event.text)

    def _file(self, text: str, seq: int) -> None:
        request = self.state.facts.request
        self.data.add(text, request=request, seq=seq, session=self.session, step=self.step)

    def findings(self, state: Any, reading: Any, appraisal: Any) -> list[Finding]:
        """Return what the newest answer and the present request say."""
        found = (self._scope(), self._procedural())
        return [finding for finding in found if finding is not None]

    def _vectors(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the vectors of those texts that are goals or context now.

        These were embedded for this tick, live, after a restart and in a replay. What else the cache may hold, from
        other agents or from before, must not count, or a replay would see something else.
        """
        cache = self.cache
        if cache is None or not self._recordable():
            return {}
        if self.eager:
            return self._embedded(texts)
        present = {*self.state.get_goals(), *self.state.get_recent_context()}
        found: dict[str, Any] = {}
        cache.find([text for text in texts if text in present], found)
        return _usable(found)

    def _recordable(self) -> bool:
        """Tell whether vectors can be recorded, or need not be: others could not be had in a replay."""
        return self.eager or isinstance(getattr(self.cache and self.cache.embedder, "fingerprint", None), str)

    def _speaks_many(self) -> bool:
        """Tell whether the embedder speaks more than English, by its fingerprint."""
        fingerprint = getattr(self.cache and self.cache.embedder, "fingerprint", None)
        return isinstance(fingerprint, str) and _MULTILINGUAL.search(fingerprint) is not None

    def embed(self, text: str) -> Any:
        """Return the vector of a text, ``None`` if there is no embedder or it fails; nothing of the state changes."""
        return self._embedded([text]).get(text)

    def _embedded(self, texts: Sequence[str]) -> dict[str, Any]:
        if self.cache is None:
            return {}
        most = self.state.config.timeout_s
        left = most if self.until is None else max(self.until - time.monotonic(), 0.0)
        return dict(embed_now(self.cache, texts, min(most, left)))

    def settle(self) -> None:
        """File corrections anew whose vectors are known by now."""
        kept = self.data
        if self.cache is not None and kept.notes and (pending := kept.pending()):
            vectors = self._embedded(pending[:AT_ONCE]) if self._recordable() else {}
            if vectors:
                kept.settle(vectors)

    def drift(self, *, asked: bool = False) -> ScopeDrift | None:
        """Return how far the newest answer is from what was asked, ``None`` if there is none to judge.

        ``asked``: as if the host asked for a decision now, which makes the newest message an answer.
        """
        facts = self.state.facts
        answer = facts.answer
        if answer is None or not (answer.final or asked) or not answer.text.strip():
            return None
        if self._drift is not None and self._told == self.state.told:
            return self._drift[3]
        tasks = dict.fromkeys(text for text in (answer.request, facts.goal) if text)
        if not tasks:
            return None
        embedded = tuple(tasks)
        if not self.eager:  # then only what the sensor embeds at every tick may count
            shown = any(item.seq == answer.seq and item.text == answer.text for item in facts.context)
            goals = self.state.get_goals() if shown else ()
            embedded = tuple(text for text in tasks if text in goals)
        if self._drift is None or self._drift[:3] != (answer, tuple(tasks), embedded):
            known = self._vectors([answer.text, *embedded]) if embedded else {}
            given = known.get(answer.text)
            cosines = [cosine(known[text], given) for text in embedded if given is not None and text in known]
            nearest = max(cosines, default=None)
            found = nearest_drift(list(tasks), answer.text, nearest, self._speaks_many())
            if self.cache is not None and embedded and nearest is None:
                return found  # a vector is late
            self._drift = (answer, tuple(tasks), embedded, found)
        self._told = self.state.told
        return self._drift[3]

    def _scope(self) -> Finding | None:
        drift, answer = self.drift(), self.state.facts.answer
        return scope_finding(drift, answer.seq) if drift is not None and answer is not None else None

    def _procedural(self) -> Finding | None:
        """Return what earlier corrections say about the present request; ``None`` without any."""
        kept, request = self.data, self.state.facts.request
        if not kept.notes or not request:
            return None
        if not kept.may_show():
            return procedural_finding(None, self.session)
        vector = self._vectors([request]).get(request)
        return procedural_finding(kept.relevant(request, vector, self.step), self.session)


def _usable(found: dict[str, Any]) -> dict[str, Any]:
    """Return the vectors of what was found; a text in place of one says why there is none."""
    return {text: vector for text, vector in found.items() if not isinstance(vector, str)}
