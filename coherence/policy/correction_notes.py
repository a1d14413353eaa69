"""A correction as it is kept, and what is looked up in many of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Literal, TypeAlias

import msgspec

from coherence.policy.correction_words import wording

HALF_LIFE = 200
"""Steps after which a correction weighs half."""

MAX_NOTES = 20
"""Different corrections kept on one topic, and times that each was said; the lightest go first."""

Kind: TypeAlias = Literal["topic", "saying"]
"""What a group is of."""


class Source(msgspec.Struct, frozen=True, array_like=True, order=True):
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
    sources: list[Source]
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


def key_of(source: Source) -> str:
    """Return what names a source, short and free of its session's text."""
    return blake2b(f"{source.seq} {source.session}".encode(), digest_size=8).hexdigest()


def joined(a: list[Source], b: list[Source]) -> list[Source]:
    """Return the newest sources of both, oldest first; of one event told with two steps, the earlier."""
    known = {key_of(source): source for source in sorted([*a, *b], reverse=True)}
    return sorted(known.values())[-MAX_NOTES:]


def mass(sources: list[Source]) -> float:
    """Return log2 of a weight as it were at step 0; comparing two of them compares the weights at any step."""
    newest = sources[-1].step
    return math.log2(math.fsum(2.0 ** ((source.step - newest) / HALF_LIFE) for source in sources)) + newest / HALF_LIFE
