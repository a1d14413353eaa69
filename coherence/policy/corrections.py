"""What users keep telling an agent to do differently ("procedural memory"): grouped by meaning, fading, forgettable.

A correction is filed twice: under the topic of the request it was given on, and under what it says. A *pattern* is
three corrections on one topic, or one thing said on three topics. The state is plain data, a fold of what was added.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from coherence.core.errors import VectorError
from coherence.core.validation import check_count, check_text, clean
from coherence.core.vectors import Half, to_half, to_unit
from coherence.policy.correction_notes import (
    HALF_LIFE,
    MAX_NOTES,
    Kind,
    Lookup,
    Note,
    Source,
    joined,
    key_of,
    labels_of,
    mass,
)
from coherence.policy.topics import Member, Topics

THRESHOLD = 3
"""Corrections that make a pattern, and topics that make a general preference."""

MAX_TOPICS = 200
"""Topics, and things said, that are kept; the lightest go first."""

MAX_CHARS = 500
"""Characters of a correction or a request that are kept, from its beginning."""

MAX_FORGOTTEN = 4_000
"""Forgotten corrections that are remembered (as hashes), so that a merge cannot bring them back."""

EXAMPLES = 3

Vectors: TypeAlias = Mapping[str, object]
"""Text -> its embedding, of any length and float type."""


class CorrectionPattern(msgspec.Struct, frozen=True):
    """Something that users correct again and again."""

    id: str
    kind: Literal["topic", "preference"]
    """Several corrections on similar requests, or the same one on different requests."""
    words: tuple[str, ...]
    """Beginnings of the words that most of its requests (or corrections) hold."""
    examples: tuple[Note, ...]
    """Newest first, at most three."""
    count: int
    """How often it was said, as far as it is kept."""
    weight: float
    """The same, each time counted by what is left of it: 1, half after 200 steps, a quarter after 400, …"""
    confidence: float
    """In [0, 1): ``1 - 2 ** (-weight / 3)``; three fresh corrections are 0.5, six 0.75."""
    provenance: tuple[tuple[str, int], ...]
    """(session, event number) of each time, oldest first."""


class Corrections(msgspec.Struct, dict=True):
    """The corrections that an agent has been given.

    Steps are counted over the agent's whole life, not per session: they are the clock by which corrections fade.
    Memory is bounded: 200 topics, 20 different corrections a topic, 8 vectors (float16) a group, 500 characters a text.

    Examples
    --------
    >>> kept = Corrections()
    >>> for seq, text in enumerate(["Use metric units", "Celsius, not Fahrenheit", "use metric units!"]):
    ...     topic = kept.add(text, request="What is the weather in Oslo?", session="s", seq=seq, step=seq)
    >>> pattern = kept.relevant("What's the weather in Oslo?", None, step=3)
    >>> pattern.count, [note.text for note in pattern.examples]
    (3, ['use metric units!', 'Celsius, not Fahrenheit'])
    >>> kept.relevant("Write a haiku", None, step=3) is None
    True
    """

    notes: dict[str, Note] = {}
    topics: Topics = msgspec.field(default_factory=Topics)
    sayings: Topics = msgspec.field(default_factory=lambda: Topics(prefix="s", strict=True))
    forgotten: list[str] = []
    """Keys of forgotten sources, sorted."""

    def add(self, text: str, *, request: str, seq: int, session: str, step: int, vectors: Vectors | None = None) -> str:
        """File a correction and return the id of its topic; "" for an empty text and for one that was forgotten.

        The same event a second time changes nothing.

        Parameters
        ----------
        text : str
            The correction.
        request : str
            The user's request that it was given on; "" = unknown, then the correction is a topic of its own.
        seq, session : int, str
            Which event it was.
        step : int
            Steps of the agent so far, 0 or more.
        vectors : mapping of str to vector, optional
            Embeddings of the two texts as they are kept, if they are known already; else see :meth:`pending`.

        Raises
        ------
        TypeError, ValueError
            For an argument of the wrong type, or a negative number.
        VectorError
            For a vector that is zero, not finite, or of another length than those before.
        """
        text, request = _kept(check_text("text", text)), _kept(check_text("request", request))
        source = Source(check_count("step", step), check_count("seq", seq), clean(check_text("session", session), 200))
        key = key_of(source)
        if not text or self._is_forgotten(key):
            return ""
        if key in self._seen.owners:
            return self.notes[self._seen.owners[key]].topic
        about = request or text
        halves = self._halves(vectors or {}, [text, about])
        saying = self._place("saying", Member(key, source.step, text, halves.get(text, b"")))
        topic = self._place("topic", Member(key, source.step, about, halves.get(about, b"")))
        note = self._admit(Note(f"c-{key}", text, request, [source], topic, saying))
        self._bound()
        return note.topic

    def pending(self) -> list[str]:
        """Return the texts whose vectors are not known yet, the newest first."""
        members = [m for groups in (self.topics, self.sayings) for id in groups.groups for m in groups.groups[id]]
        wanting = sorted((m for m in members if not m.vector), key=lambda m: (-m.step, m.key, m.text))
        return list(dict.fromkeys(member.text for member in wanting))

    def settle(self, vectors: Vectors) -> None:
        """File corrections anew, by meaning, whose vectors were :meth:`pending`.

        Raises
        ------
        VectorError
            As :meth:`add`; then nothing has changed.
        """
        halves = self._halves(vectors, self.pending())
        for source in sorted(source for note in self.notes.values() for source in note.sources):
            key = key_of(source)
            says, about = self.sayings.get(key), self.topics.get(key)
            if says is not None and not says.vector and says.text in halves:
                self.sayings.remove(key)
                saying = self._place("saying", msgspec.structs.replace(says, vector=halves[says.text]))
                self._move(source, "saying", saying)
            if about is not None and not about.vector and about.text in halves:
                self.topics.remove(key)
                topic = self._place("topic", msgspec.structs.replace(about, vector=halves[about.text]))
                self._move(source, "topic", topic)
        self._bound()

    def patterns(self, step: int) -> list[CorrectionPattern]:
        """Return all patterns at a step, the heaviest first."""
        kinds: tuple[Kind, ...] = ("topic", "saying")
        found = [self._pattern(kind, id, step) for kind in kinds for id in self._seen.groups[kind]]
        return sorted((p for p in found if p is not None), key=lambda p: (-p.weight, p.id, p.kind))

    def relevant(self, request: str, request_vector: object, step: int) -> CorrectionPattern | None:
        """Return the pattern on a request's topic, else the heaviest general preference, else ``None``.

        Parameters
        ----------
        request : str
            What the agent is asked now.
        request_vector : vector or None
            Its embedding; ``None``: words decide, which finds less.
        step : int
            Steps of the agent so far.

        Raises
        ------
        VectorError
            As :meth:`add`.
        """
        request = _kept(check_text("request", request))
        if not self.may_show():
            return None
        half = self._half(request_vector) if request_vector is not None else None
        topic = self.topics.find(request, None if half is None else to_unit(half)) if request else None
        found = self._pattern("topic", topic, step) if topic is not None else None
        if found is not None:
            return found
        general = [self._pattern("saying", id, step) for id in self._seen.groups["saying"]]
        return min((p for p in general if p is not None), key=lambda p: (-p.weight, p.id), default=None)

    def edit(self, id: str, text: str) -> None:
        """Replace the text of a correction; its topic and provenance stay.

        Raises
        ------
        KeyError
            If there is no such correction.
        ValueError
            If the text is empty.
        """
        if id not in self.notes:
            raise KeyError(f"no correction {id!r}")
        note = self.notes[id]
        text = _kept(check_text("text", text, empty=False))
        self._detach(note)
        for source in note.sources:
            self.sayings.remove(key_of(source))
        newest = note.sources[-1]
        note.text, note.edits = text, note.edits + 1
        note.saying = self._place("saying", Member(key_of(newest), newest.step, text))
        self._admit(note)
        self._bound()

    def forget(self, id: str) -> int:
        """Forget a correction, or all of a topic or pattern, for good; return how many different ones there were."""
        gone = [note for note in self.notes.values() if id in (note.id, note.topic, note.saying)]
        for note in gone:
            self.forgotten = sorted({*self.forgotten, *map(key_of, note.sources)})[-MAX_FORGOTTEN:]
            self._drop(note)
        self._bound()
        return len(gone)

    def merge(self, other: Corrections) -> Corrections:
        """Return the corrections of both; neither changes, their order does not matter, what both have counts once.

        What one of them has forgotten is gone; of two versions of a correction the one edited more often stays.

        Raises
        ------
        ValueError
            If their vectors differ in length.
        """
        lengths = {t.dimensions for each in (self, other) for t in (each.topics, each.sayings)} - {0}
        if len(lengths) > 1:
            raise ValueError(f"vectors must have one length to be merged, not {sorted(lengths)}")
        gone = frozenset([*self.forgotten, *other.forgotten])
        pairs = [
            (self.notes[id], other.notes[other._seen.owners[key]])
            for key, id in self._seen.owners.items()
            if key in other._seen.owners
        ]
        topics, topic = self.topics.united(other.topics, [(a.topic, b.topic) for a, b in pairs], gone)
        said = [(a.saying, b.saying) for a, b in pairs if a.saying and b.saying]
        sayings, saying = self.sayings.united(other.sayings, said, gone)
        merged = Corrections(topics=topics, sayings=sayings, forgotten=sorted(gone)[-MAX_FORGOTTEN:])
        notes = []
        for note in [*self.notes.values(), *other.notes.values()]:
            sources = [source for source in note.sources if key_of(source) not in gone]
            labels = {"topic": topic[note.topic], "saying": saying.get(note.saying, "")}
            notes.append(msgspec.structs.replace(note, sources=sources, **labels))
        for note in sorted(
            notes, key=lambda each: (each.id, each.edits, each.text, each.request, each.saying, each.sources)
        ):
            if note.sources:
                merged._admit(note)
        merged._seen.emptied |= dict.fromkeys(("topic", id) for id in topics.groups)
        merged._seen.emptied |= dict.fromkeys(("saying", id) for id in sayings.groups)
        merged._bound()
        return merged

    def _is_forgotten(self, key: str) -> bool:
        at = bisect_left(self.forgotten, key)
        return at < len(self.forgotten) and self.forgotten[at] == key

    @cached_property
    def _seen(self) -> Lookup:
        seen = Lookup()
        for note in self.notes.values():
            seen.attach(note)
        return seen

    def _place(self, kind: Kind, member: Member) -> str:
        """File a text in a group; what groups it unites on the way get one name."""
        groups = self.topics if kind == "topic" else self.sayings
        placed = groups.place(member)
        for old, new in placed.renamed.items():
            for id in list(self._seen.groups[kind].get(old, ())):
                if id in self.notes:  # else its twin has taken it in just now
                    note = self.notes[id]
                    self._detach(note)
                    setattr(note, kind, new)
                    self._admit(note)
        return placed.id

    def _move(self, source: Source, kind: Kind, group: str) -> None:
        """Take one source of a correction over to another group."""
        note = self.notes[self._seen.owners[key_of(source)]]
        if getattr(note, kind) == group:
            return
        self._detach(note)
        if kind == "topic" and len(note.sources) > 1:
            rest = [each for each in note.sources if each != source]
            self._admit(msgspec.structs.replace(note, sources=rest, id=f"c-{key_of(rest[0])}"))
            note = msgspec.structs.replace(note, sources=[source], id=f"c-{key_of(source)}")
        setattr(note, kind, group)
        self._admit(note)

    def _admit(self, note: Note) -> Note:
        """Take in a correction, or add it to the one on its topic that says the same."""
        while (twin := self._seen.twin(note, self.notes)) is not None:
            self._detach(twin)
            newer = max(
                note, twin, key=lambda each: (each.edits, each.sources[-1], each.text, each.request, each.saying)
            )
            sources = joined(note.sources, twin.sources)
            self._seen.emptied |= dict.fromkeys((*labels_of(note), *labels_of(twin)))
            note = msgspec.structs.replace(newer, id=min(note.id, twin.id), sources=sources)
        while note.id in self.notes:  # of a source that has been dropped since
            note.id += "+"
        self.notes[note.id] = note
        self._seen.attach(note)
        return note

    def _detach(self, note: Note) -> None:
        del self.notes[note.id]
        self._seen.detach(note)

    def _drop(self, note: Note) -> None:
        self._detach(note)
        for key in map(key_of, note.sources):
            self.topics.remove(key)
            self.sayings.remove(key)

    def _bound(self) -> None:
        """Give up the lightest of what is too much, and groups that nothing belongs to any more."""
        seen = self._seen
        for topic in list(seen.crowded):
            while len(notes := seen.groups["topic"].get(topic, {})) > MAX_NOTES:
                self._drop(min((self.notes[id] for id in notes), key=lambda note: (mass(note.sources), note.id)))
        seen.crowded.clear()
        while len(seen.groups["topic"]) > MAX_TOPICS:
            for id in list(seen.groups["topic"][self._lightest("topic")]):
                self._drop(self.notes[id])
        while len(seen.groups["saying"]) > MAX_TOPICS:
            for id in list(seen.groups["saying"][self._lightest("saying")]):
                note = self.notes[id]
                self._detach(note)
                note.saying = ""
                self._admit(note)
        for kind, group in seen.emptied:
            if group not in seen.groups[kind]:
                (self.topics if kind == "topic" else self.sayings).drop(group)
        seen.emptied.clear()

    def _lightest(self, kind: Kind) -> str:
        masses = self._seen.masses(kind, self.notes)
        return min(zip(masses.values(), masses, strict=True))[1]

    def may_show(self) -> bool:
        """Tell whether any group is large enough to be a pattern: mostly none is, and nothing need be compared."""
        topics, sayings = self.topics.groups.values(), self._seen.groups["saying"].values()
        return any(len(members) >= THRESHOLD for members in topics) or any(len(ids) >= THRESHOLD for ids in sayings)

    def _pattern(self, kind: Kind, group: str, step: int) -> CorrectionPattern | None:
        ids = self._seen.groups[kind].get(group, {})
        if kind == "saying" and len(ids) < THRESHOLD:
            return None
        notes = sorted((self.notes[id] for id in ids), key=lambda note: (note.sources[-1], note.id), reverse=True)
        count = sum(len(note.sources) for note in notes)
        if count < THRESHOLD or (kind == "saying" and len({note.topic for note in notes}) < THRESHOLD):
            return None
        weight = min(float(count), 2.0 ** min(self._seen.masses(kind, self.notes)[group] - step / HALF_LIFE, 60.0))
        if weight < THRESHOLD / 2:
            return None
        sources = sorted(source for note in notes for source in note.sources)
        return CorrectionPattern(
            id=group,
            kind="topic" if kind == "topic" else "preference",
            words=(self.topics if kind == "topic" else self.sayings).words(group),
            examples=tuple(msgspec.structs.replace(note, sources=note.sources[:]) for note in notes[:EXAMPLES]),
            count=count,
            weight=weight,
            confidence=1.0 - 2.0 ** (-weight / THRESHOLD),
            provenance=tuple((source.session, source.seq) for source in sources),
        )

    def _halves(self, vectors: Vectors, texts: list[str]) -> dict[str, bytes]:
        halves = {text: self._half(vectors[text]).astype("<f2").tobytes() for text in texts if text in vectors}
        lengths = sorted({len(half) // 2 for half in halves.values()})
        if len(lengths) > 1:
            raise VectorError(f"returned vectors of {lengths} dimensions, expected one length")
        return halves

    def _half(self, vector: object) -> Half:
        return to_half(vector, self.topics.dimensions or self.sayings.dimensions or None)


def _kept(text: str) -> str:
    text = clean(text[: 4 * MAX_CHARS]).strip()
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
