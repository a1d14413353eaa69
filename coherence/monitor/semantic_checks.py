"""What texts mean beside each other: the newest answer and its task, corrections and requests like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coherence.core.decisions import Finding
from coherence.core.events import Correction, Message
from coherence.core.vectors import cosine
from coherence.policy.correction_words import is_implicit
from coherence.policy.regulator_state import Standing
from coherence.policy.scope import Drift, nearest_drift, procedural_finding, scope_finding
from coherence.sensor.embedding_cache import EmbeddingCache, embed_now
from coherence.state.data import Answer
from coherence.state.reducer import AgentState

AT_ONCE = 8
"""Corrections that are filed anew at one tick: each may have to be embedded."""


class Meaning:
    """Compares the texts of one agent, with the embedder's vectors where there are any, else by words.

    Parameters
    ----------
    state : AgentState
        The agent.
    standing : Standing
        What is remembered; its corrections are changed by :meth:`correct` and :meth:`settle` only.
    cache : EmbeddingCache, optional
        The embedder.
    session : str
        The session's name, for the provenance of corrections.
    """

    def __init__(self, state: AgentState, standing: Standing, cache: EmbeddingCache | None, session: str) -> None:
        self.state = state
        self.cache = cache
        self.eager = False
        """Whether texts are embedded when they are needed here; else the sensor has done so at this tick."""
        self.session = session
        self.begin(standing)

    def begin(self, standing: Standing) -> None:
        """Go on with what was remembered elsewhere."""
        self.standing = standing
        self._drift: tuple[Answer, tuple[str, ...], tuple[str, ...], Drift] | None = None

    @property
    def step(self) -> int:
        """Steps over the agent's whole life, by which corrections fade."""
        return self.standing.born + self.state.facts.steps

    def correct(self, seq: int, event: Correction | Message, request: str, *, answered: bool) -> None:
        """File, change or forget a correction of what was done for a request, if the event is one.

        A message can only be one if the agent has done or said something since the request.
        """
        kept = self.standing.corrections
        if type(event) is Message:
            asked = self.state.config.implicit_corrections and event.role == "user" and bool(request) and answered
            if asked and is_implicit(event.content, request):
                kept.add(event.content, request=request, seq=seq, session=self.session, step=self.step)
        elif type(event) is Correction:
            if event.id is None:
                kept.add(event.text, request=request, seq=seq, session=self.session, step=self.step)
            elif event.removed:
                kept.forget(event.id)
            elif event.id in kept.notes and event.text.strip():
                kept.edit(event.id, event.text)

    def findings(self) -> list[Finding]:
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

    def embed(self, text: str) -> Any:
        """Return the vector of a text, ``None`` if there is no embedder or it fails; nothing of the state changes."""
        return self._embedded([text]).get(text)

    def _embedded(self, texts: Sequence[str]) -> dict[str, Any]:
        return {} if self.cache is None else dict(embed_now(self.cache, texts, self.state.config.timeout_s))

    def settle(self) -> None:
        """File corrections anew whose vectors are known by now."""
        kept = self.standing.corrections
        if self.cache is not None and kept.notes and (pending := kept.pending()):
            vectors = self._embedded(pending[:AT_ONCE]) if self._recordable() else {}
            if vectors:
                kept.settle(vectors)

    def drift(self) -> Drift | None:
        """Return how far the newest answer is from what was asked, ``None`` if there is none to judge."""
        facts = self.state.facts
        answer = facts.answer
        if answer is None or not answer.final or not answer.text.strip():
            return None
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
            found = nearest_drift(list(tasks), answer.text, nearest)
            if self.cache is not None and embedded and nearest is None:
                return found  # a vector is late
            self._drift = (answer, tuple(tasks), embedded, found)
        return self._drift[3]

    def _scope(self) -> Finding | None:
        drift, answer = self.drift(), self.state.facts.answer
        return scope_finding(drift, answer.seq) if drift is not None and answer is not None else None

    def _procedural(self) -> Finding | None:
        """Return what earlier corrections say about the present request; ``None`` without any."""
        kept, request = self.standing.corrections, self.state.facts.request
        if not kept.notes or not request:
            return None
        if not kept.may_show():
            return procedural_finding(None, self.session)
        vector = self._vectors([request]).get(request)
        return procedural_finding(kept.relevant(request, vector, self.step), self.session)


def _usable(found: dict[str, Any]) -> dict[str, Any]:
    """Return the vectors of what was found; a text in place of one says why there is none."""
    return {text: vector for text, vector in found.items() if not isinstance(vector, str)}
