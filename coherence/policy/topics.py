"""Groups of similar short texts, filed one by one: by meaning where there are vectors, by words where there are none.

A text joins the group that it is nearest to on average (average linkage), and two groups that have come that near to
each other become one. *Near* is the mean cosine less a part of the mean overlap in words: "Add async batching for
emails" and "async batching of GPU kernels" owe their cosine to the words they share, paraphrases of one request do not.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product
from statistics import fmean

import msgspec
import numpy as np

from coherence.core.vectors import Matrix, Vector, dots
from coherence.policy.correction_words import content_words, jaccard, opposed, overlap, stance

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
        return cosine - SHARED_WORDS * fmean(overlap(words, self._index.words(m)) for m in self.groups[id])

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
            shared = fmean(overlap(a, index.words(b)) for a, b in product(own, members))
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
