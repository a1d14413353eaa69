"""What users keep telling an agent to do differently: notes grouped by meaning, fading, forgettable.

A text joins the group that it is nearest to on average (average linkage), and two groups that have come that near to
each other become one. *Near* is the mean cosine less a part of the mean overlap in words: "Add async batching for
emails" and "async batching of GPU kernels" owe their cosine to the words they share, paraphrases of one request do not.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import blake2b
from itertools import product
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from coherence.core.errors import VectorError
from coherence.core.validation import check_count, check_text, clean
from coherence.core.vectors import Half, Matrix, Vector, dots, to_half, to_unit
from coherence.policy.correction_words import content_words, jaccard, opposed, overlap, stance, wording

HALF_LIFE = 200
"""Steps after which a correction weighs half."""

MAX_NOTES = 20
"""Different corrections kept on one topic, and times that each was said; the lightest go first."""

Kind: TypeAlias = Literal["topic", "saying"]
"""What a group is of."""


class CorrectionSource(msgspec.Struct, frozen=True, array_like=True, order=True):
    """When and where a correction was said."""

    step: int
    seq: int
    """Number of the event within its session."""
    session: str


class Note(msgspec.Struct):
    """A correction, however often it was said."""

    id: str
    text: str
    request: str
    """What it was given on, the newest time."""
    sources: list[CorrectionSource]
    """Oldest first."""
    topic: str
    saying: str
    """The group of corrections that say the same; "" when that has been given up."""
    edits: int = 0


class Lookup:
    """What is looked up in the notes, kept beside them."""

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}
        """Key of a source -> its note."""
        self.groups: dict[Kind, dict[str, dict[str, None]]] = {"topic": {}, "saying": {}}
        """Group -> its notes."""
        self.emptied: dict[tuple[Kind, str], None] = {}
        """Groups that may have no notes any more."""
        self.crowded: dict[str, None] = {}
        """Topics that may have too many notes."""
        self._wordings: dict[str, str] = {}
        self._masses: dict[Kind, dict[str, float]] = {"topic": {}, "saying": {}}
        self._changed: dict[tuple[Kind, str], None] = {}

    def attach(self, note: Note) -> None:
        self.owners.update((key_of(source), note.id) for source in note.sources)
        self._wordings[note.id] = wording(note.text)
        for kind, group in labels_of(note):
            notes = self.groups[kind].setdefault(group, {})
            notes[note.id] = None
            self._changed[kind, group] = None
        if len(self.groups["topic"][note.topic]) > MAX_NOTES:
            self.crowded[note.topic] = None

    def detach(self, note: Note) -> None:
        for source in note.sources:
            self.owners.pop(key_of(source), None)
        del self._wordings[note.id]
        for kind, group in labels_of(note):
            notes = self.groups[kind][group]
            del notes[note.id]
            self._changed[kind, group] = None
            if not notes:
                del self.groups[kind][group]
                self.emptied[kind, group] = None

    def masses(self, kind: Kind, notes: Mapping[str, Note]) -> dict[str, float]:
        """Return the mass of each group, see :func:`mass`."""
        for changed, group in self._changed:
            ids = self.groups[changed].get(group)
            if ids is None:
                self._masses[changed].pop(group, None)
            else:
                self._masses[changed][group] = mass(sorted(s for id in ids for s in notes[id].sources))
        self._changed.clear()
        return self._masses[kind]

    def twin(self, note: Note, notes: Mapping[str, Note]) -> Note | None:
        """Return another note that is the same: by a common source, or by its wording within the topic."""
        own = wording(note.text)
        ids = [self.owners[key] for key in map(key_of, note.sources) if key in self.owners]
        ids += [id for id in self.groups["topic"].get(note.topic, {}) if self._wordings[id] == own]
        return notes[min(ids)] if ids else None


def labels_of(note: Note) -> list[tuple[Kind, str]]:
    """Return the groups of a correction."""
    topic: tuple[Kind, str] = ("topic", note.topic)
    return [topic, ("saying", note.saying)] if note.saying else [topic]


def key_of(source: CorrectionSource) -> str:
    """Return what names a source, short and free of its session's text."""
    return blake2b(f"{source.seq} {source.session}".encode(), digest_size=8).hexdigest()


def joined(a: list[CorrectionSource], b: list[CorrectionSource]) -> list[CorrectionSource]:
    """Return the newest sources of both, oldest first; of one event told with two steps, the earlier."""
    known = {key_of(source): source for source in sorted([*a, *b], reverse=True)}
    return sorted(known.values())[-MAX_NOTES:]


def mass(sources: list[CorrectionSource]) -> float:
    """Return log2 of a weight as it were at step 0; comparing two of them compares the weights at any step."""
    newest = sources[-1].step
    return math.log2(math.fsum(2.0 ** ((source.step - newest) / HALF_LIFE) for source in sources)) + newest / HALF_LIFE


MAX_MEMBERS = 8
"""Texts of a group that are compared with a new one: the newest."""

NEAR = 0.45
"""Least nearness of a text to a group, and of two groups; tuned on one half of ``tests/data/paraphrases.json``."""

SHARED_WORDS = 0.3
"""How much of the cosine a full overlap in words takes away; tuned with :data:`NEAR`."""

SAME_WORDS = 0.6
"""Least share of common words (Jaccard) with one member where vectors are missing: few groups, but no wrong ones."""


class Member(msgspec.Struct, frozen=True):
    """A text of a group."""

    key: str
    step: int
    text: str
    vector: bytes = b""
    """float16, little-endian; empty while it is not known."""


class Placed(msgspec.Struct, frozen=True):
    """Where a text has been filed."""

    id: str
    renamed: dict[str, str] = {}
    """Groups that have become part of others on the way: old id -> new id."""


class Topics(msgspec.Struct, dict=True):
    """Groups of similar texts; plain data, so that it can be kept and taken up again.

    Parameters
    ----------
    groups : dict of str to list of Member
        Group id -> members, oldest first. The id is the least key that ever founded a part of the group.
    prefix : str
        How the ids begin.
    strict : bool
        Whether texts that say the opposite of each other never share a group.
    """

    groups: dict[str, list[Member]] = {}
    prefix: str = "t"
    strict: bool = False

    @property
    def dimensions(self) -> int:
        """Length of the vectors, 0 while there is none."""
        return int(self._index.centroids.shape[1])

    def find(self, text: str, vector: Vector | None = None) -> str | None:
        """Return the group that a text belongs to, ``None`` if it is near to none."""
        words = content_words(text)
        best = self._nearest(vector) if vector is not None else {}
        found = [(self._nearness(id, words, cosine) - NEAR, id) for id, cosine in best.items() if cosine >= NEAR]
        if vector is None or self._index.wordy:
            wordy = self.groups if vector is None else self._index.wordy
            found += [(self._sameness(id, words) - SAME_WORDS, id) for id in wordy]
        found = [(margin, id) for margin, id in found if margin >= 0.0]
        if self.strict and found:
            said = stance(text)
            found = [(margin, id) for margin, id in found if not self._index.opposes(self.groups[id], said)]
        return min(found, key=lambda each: (-each[0], each[1]))[1] if found else None

    def place(self, member: Member) -> Placed:
        """File a text in the nearest group, or in a new one that is named after its key."""
        vectors = _units([member])
        id = self.find(member.text, vectors[0] if len(vectors) else None)
        if id is not None:
            self._set(id, [*self.groups[id], member])
            return self.consolidate(id)
        id = f"{self.prefix}-{member.key}"
        while self.groups.get(id):  # it was founded by this text, which has been taken out since
            id += "+"
        self._set(id, [member])
        return Placed(id)

    def consolidate(self, id: str) -> Placed:
        """Unite a group with those that are near to it."""
        renamed: dict[str, str] = {}
        while (other := self._twin(id)) is not None:
            kept, gone = min(id, other), max(id, other)
            members = self.groups[id] + self.groups[other]
            self.drop(gone)
            self._set(kept, members)
            renamed = {old: kept if new == gone else new for old, new in renamed.items()} | {gone: kept}
            id = kept
        return Placed(id, renamed)

    def get(self, key: str) -> Member | None:
        """Return a text by its key, if it is still compared with new ones."""
        home = self._index.home.get(key)
        return None if home is None else next(member for member in self.groups[home] if member.key == key)

    def remove(self, key: str) -> None:
        """Take a text out of its group, which stays even if it is empty then."""
        home = self._index.home.get(key)
        if home is not None:
            self._index.forget(key)
            self._set(home, [member for member in self.groups[home] if member.key != key])

    def drop(self, id: str) -> None:
        """Forget a whole group."""
        for member in self.groups.pop(id, []):
            self._index.forget(member.key)
        self._index.drop(id)

    def words(self, id: str, most: int = 4) -> tuple[str, ...]:
        """Return the stems that most texts of a group hold, the most frequent first."""
        counts: dict[str, int] = {}
        for member in self.groups.get(id, []):
            for word in self._index.words(member):
                counts[word] = counts.get(word, 0) + 1
        return tuple(sorted(counts, key=lambda word: (-counts[word], word))[:most])

    def united(
        self, other: Topics, same: list[tuple[str, str]], without: frozenset[str]
    ) -> tuple[Topics, dict[str, str]]:
        """Return the groups of both in one, and the new id of each group; the order of the two does not matter.

        Parameters
        ----------
        other : Topics
            With vectors of the same length.
        same : list of (str, str)
            Ids of groups that are to become one.
        without : frozenset of str
            Keys of texts to leave out.
        """
        whole = Topics(prefix=self.prefix, strict=self.strict)
        names = {id: id for id in sorted({*self.groups, *other.groups})}

        def unite(a: str, b: str) -> None:
            kept, gone = sorted((names[a], names[b]))
            names.update({id: kept for id, name in names.items() if name == gone})

        shared = [(mine, other._index.home[key]) for key, mine in self._index.home.items() if key in other._index.home]
        for a, b in sorted({*same, *shared}):
            unite(a, b)
        texts: dict[str, dict[str, Member]] = {}
        for id, members in [*self.groups.items(), *other.groups.items()]:
            known = texts.setdefault(names[id], {})
            for member in members:
                if member.key not in without:
                    known[member.key] = max(
                        known.get(member.key, member), member, key=lambda m: (m.vector, m.step, m.text)
                    )
        for id in sorted(texts):
            whole._set(id, list(texts[id].values()))
        for id in sorted(texts):
            for gone, kept in whole.consolidate(id).renamed.items() if id in whole.groups else ():
                unite(gone, kept)
        return whole, names

    def _set(self, id: str, members: list[Member]) -> None:
        kept = sorted(members, key=lambda member: (member.step, member.key))
        for member in kept[:-MAX_MEMBERS]:
            self._index.forget(member.key)
        self.groups[id] = kept[-MAX_MEMBERS:]
        self._index.set(id, self.groups[id])

    @cached_property
    def _index(self) -> _Index:
        index = _Index()
        for id, members in self.groups.items():
            index.set(id, members)
        return index

    def _nearest(self, vector: Vector) -> dict[str, float]:
        """Return the groups whose mean cosine with a vector may be near enough."""
        index = self._index
        if not index.ids:
            return {}
        if vector.size != index.centroids.shape[1]:
            raise ValueError(f"a vector must have {index.centroids.shape[1]} dimensions, not {vector.size}")
        cosines = dots(index.centroids[: len(index.ids)], vector)
        return {index.ids[at]: float(cosines[at]) for at in np.flatnonzero(cosines >= NEAR)}

    def _nearness(self, id: str, words: frozenset[str], cosine: float) -> float:
        return cosine - SHARED_WORDS * _mean(overlap(words, self._index.words(m)) for m in self.groups[id])

    def _sameness(self, id: str, words: frozenset[str]) -> float:
        if len(words & self._index.all_words(id, self.groups[id])) < SAME_WORDS * len(words):
            return 0.0
        return max((jaccard(words, self._index.words(member)) for member in self.groups[id]), default=0.0)

    def _twin(self, id: str) -> str | None:
        """Return the group nearest to another one, if it is near enough."""
        index = self._index
        if id not in index.at:
            return None
        own = [index.words(member) for member in self.groups[id]]
        found = []
        for other, cosine in self._nearest(index.centroids[index.at[id]].copy()).items():
            members = self.groups[other]
            if other == id or (self.strict and any(index.opposes(members, index.stance(m)) for m in self.groups[id])):
                continue
            shared = _mean(overlap(a, index.words(b)) for a, b in product(own, members))
            if cosine - SHARED_WORDS * shared >= NEAR:
                found.append((-(cosine - SHARED_WORDS * shared), other))
        return min(found)[1] if found else None


class _Index:
    """What is computed from groups once and kept: mean vectors in one matrix, words and stances."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.at: dict[str, int] = {}
        self.centroids: Matrix = np.zeros((0, 0), np.float32)
        """Row ``at[id]`` = mean of the unit vectors, so that its product with a vector is the mean cosine."""
        self.home: dict[str, str] = {}
        """Key of a text -> its group."""
        self.wordy: dict[str, None] = {}
        """Groups none of whose texts has a vector yet."""
        self._words: dict[str, frozenset[str]] = {}
        self._stances: dict[str, dict[str, int]] = {}
        self._all_words: dict[str, frozenset[str]] = {}

    def set(self, id: str, members: list[Member]) -> None:
        """Take in a new or changed group."""
        self._all_words.pop(id, None)
        self.home.update((member.key, id) for member in members)
        rows = _units(members)
        if not len(rows):
            self.drop(id)
            if members:
                self.wordy[id] = None
            return
        self.wordy.pop(id, None)
        if id not in self.at:
            self.at[id] = len(self.ids)
            self.ids.append(id)
        self._make_room(rows.shape[1])
        self.centroids[self.at[id]] = np.sum(rows, axis=0, dtype=np.float64) / len(rows)

    def drop(self, id: str) -> None:
        """Forget a group; the last row takes its place."""
        self.wordy.pop(id, None)
        self._all_words.pop(id, None)
        at = self.at.pop(id, None)
        if at is None:
            return
        last = self.ids.pop()
        if last != id:
            self.ids[at] = last
            self.at[last] = at
            self.centroids[at] = self.centroids[len(self.ids)]
        if not self.ids:
            self.centroids = np.zeros((0, 0), np.float32)

    def forget(self, key: str) -> None:
        """Forget a text."""
        self.home.pop(key, None)
        self._words.pop(key, None)
        self._stances.pop(key, None)

    def words(self, member: Member) -> frozenset[str]:
        """Return a text's content words."""
        found = self._words.get(member.key)
        if found is None:
            found = self._words[member.key] = content_words(member.text)
        return found

    def all_words(self, id: str, members: list[Member]) -> frozenset[str]:
        """Return the content words of a whole group."""
        found = self._all_words.get(id)
        if found is None:
            found = self._all_words[id] = frozenset().union(*map(self.words, members))
        return found

    def stance(self, member: Member) -> dict[str, int]:
        """Return what a text affirms and negates."""
        found = self._stances.get(member.key)
        if found is None:
            found = self._stances[member.key] = stance(member.text)
        return found

    def opposes(self, members: list[Member], said: dict[str, int]) -> bool:
        """Tell whether one of some texts says the opposite."""
        return any(opposed(said, self.stance(member)) for member in members)

    def _make_room(self, dimensions: int) -> None:
        if self.centroids.shape[0] < len(self.ids):
            wider = np.zeros((max(16, 2 * len(self.ids)), dimensions), np.float32)
            if self.centroids.size:
                wider[: len(self.centroids)] = self.centroids
            self.centroids = wider


def _units(members: list[Member]) -> Matrix:
    """Return the unit vectors of those texts that have one."""
    known = [member.vector for member in members if member.vector]
    if not known:
        return np.zeros((0, 0), np.float32)
    wide = np.frombuffer(b"".join(known), np.dtype("<f2")).reshape(len(known), -1).astype(np.float64)
    units: Matrix = (wide / np.sqrt(np.vecdot(wide, wide))[:, None]).astype(np.float32)
    return units


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
        source = CorrectionSource(
            check_count("step", step), check_count("seq", seq), clean(check_text("session", session), 200)
        )
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

    def _move(self, source: CorrectionSource, kind: Kind, group: str) -> None:
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


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)
