"""Corrections of users: notes that are found again by the requests they were given on, fading, forgettable.

A correction belongs to a request if that request is near to the one it was given on. *Near* is the cosine of the two
less a part of their overlap in words: "Add async batching for emails" and "async batching of GPU kernels" owe their
cosine to the words they share, paraphrases of one request do not. Where a vector is missing, words alone decide.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.core.errors import VectorError
from coherence.core.validation import check_count, check_text, clean
from coherence.core.vectors import Vector, dots, to_half, to_unit
from coherence.policy.correction_words import content_words, jaccard, opposed, overlap, stance, wording

HALF_LIFE = 200
"""Steps after which a correction weighs half."""

THRESHOLD = 3
"""Corrections that make a pattern, requests that make a general preference, and neighbours that a request needs."""

MAX_NOTES = 200
"""Different corrections that are kept; the lightest go first."""

MAX_SOURCES = 20
"""Times that one correction was said which are kept; the oldest go first."""

MAX_CHARS = 500
"""Characters of a correction or a request that are kept, from its beginning."""

MAX_FORGOTTEN = 4_000
"""Forgotten corrections that are remembered (as hashes), so that a merge cannot bring them back."""

EXAMPLES = 3
MAX_WORDS = 4

NEAR = 0.45
"""Nearness from which on two texts mean the same; tuned on one half of ``tests/data/paraphrases.json``."""

SHARED_WORDS = 0.25
"""Part of the cosine that a full overlap in words takes away; tuned with :data:`NEAR`."""

SAME_WORDS = 0.6
"""Share of common words (Jaccard) that counts as near where a vector is missing: it finds less, but nothing wrong."""

Kind: TypeAlias = Literal["topic", "preference"]
"""Several corrections on similar requests, or the same one on different requests."""

Vectors: TypeAlias = Mapping[str, object]
"""Text -> its embedding, of any length and float type."""


class CorrectionSource(msgspec.Struct, frozen=True, array_like=True, order=True):
    """The event in which a correction was said."""

    step: int
    seq: int
    """Number of the event within its session."""
    session: str


class Note(msgspec.Struct):
    """A correction on a request, however often it was said."""

    id: str
    text: str
    request: str
    """The request that it was given on, in the words of the newest time; "" = unknown."""
    sources: list[CorrectionSource]
    """Oldest first."""
    edits: int = 0
    text_vector: bytes = b""
    """float16, little-endian; empty while it is not known."""
    about_vector: bytes = b""
    """Of :attr:`about`."""

    @property
    def about(self) -> str:
        """The text by which the note is found: the request, or the correction itself where that is unknown."""
        return self.request or self.text


class CorrectionPattern(msgspec.Struct, frozen=True):
    """Something that users correct again and again."""

    id: str
    kind: Kind
    words: tuple[str, ...]
    """Beginnings of the words that most of its requests (or corrections) hold."""
    examples: tuple[Note, ...]
    """Newest first, at most three."""
    count: int
    """Number of times that it was said, as far as it is kept."""
    weight: float
    """The same, each time counted by what is left of it: 1, half after 200 steps, a quarter after 400, …"""
    confidence: float
    """In [0, 1): ``1 - 2 ** (-weight / 3)``; three fresh corrections are 0.5, six 0.75."""
    provenance: tuple[tuple[str, int], ...]
    """(session, event number) of each time, oldest first."""


class Corrections(msgspec.Struct, dict=True):
    """The corrections that an agent has been given.

    Steps are counted over the agent's whole life, not per session: they are the clock by which corrections fade.
    Memory is bounded: 200 different corrections, each said up to 20 times, two vectors (float16) and 500 characters
    a text.

    Examples
    --------
    >>> kept = Corrections()
    >>> for seq, text in enumerate(["Use metric units", "Celsius, not Fahrenheit", "use metric units!"]):
    ...     note = kept.add(text, request="What is the weather in Oslo?", session="s", seq=seq, step=seq)
    >>> pattern = kept.relevant("What's the weather in Oslo?", None, step=3)
    >>> pattern.count, [note.text for note in pattern.examples]
    (3, ['use metric units!', 'Celsius, not Fahrenheit'])
    >>> kept.relevant("Write a haiku", None, step=3) is None
    True
    """

    notes: dict[str, Note] = {}
    forgotten: list[str] = []
    """Keys of forgotten sources, sorted."""

    def add(self, text: str, *, request: str, seq: int, session: str, step: int, vectors: Vectors | None = None) -> str:
        """File a correction and return its note's id; "" for an empty text and for one that was forgotten.

        The same event a second time changes nothing.

        Parameters
        ----------
        text : str
            The correction.
        request : str
            The user's request that it was given on; "" = unknown, then the correction is found by its own text.
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
        if not text or key in self.forgotten:
            return ""
        if key in self._index.owners:
            return self._index.owners[key]
        note = Note(f"c-{key}", text, request, [source])
        known = self._halves(vectors or {}, [text, note.about])
        note.text_vector, note.about_vector = known.get(text, b""), known.get(note.about, b"")
        id = self._admit(note)
        self._bound()
        return id

    def pending(self) -> list[str]:
        """Return the texts whose vectors are not known yet, the newest first."""
        newest = sorted(self.notes.values(), key=lambda note: (note.sources[-1], note.id), reverse=True)
        wanting = [(note.about, note.about_vector) for note in newest] + [(n.text, n.text_vector) for n in newest]
        return list(dict.fromkeys(text for text, vector in wanting if not vector))

    def settle(self, vectors: Vectors) -> None:
        """Take in vectors that were :meth:`pending`.

        Raises
        ------
        VectorError
            As :meth:`add`; then nothing has changed.
        """
        known = self._halves(vectors, self.pending())
        for note in self.notes.values():
            note.text_vector = note.text_vector or known.get(note.text, b"")
            note.about_vector = note.about_vector or known.get(note.about, b"")
        self._changed()

    def patterns(self, step: int) -> list[CorrectionPattern]:
        """Return all patterns at a step, the heaviest first.

        A note is part of one pattern on its topic: that of the heaviest note to which it is near.
        """
        topics = [self._pattern("topic", members, step) for members in self._neighbours.topics]
        found = [*(each for each in topics if each is not None), *self._preferences(step)]
        return sorted(found, key=lambda each: (-each.weight, each.id, each.kind))

    def relevant(self, request: str, request_vector: object, step: int) -> CorrectionPattern | None:
        """Return the pattern on requests like one, else the heaviest general preference, else ``None``.

        The three corrections on the nearest requests must be near on average; then all that are near belong to it.

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
        unit = to_unit(to_half(request_vector, self.dimensions)) if request_vector is not None else None
        members = self._neighbours.on(request, unit) if request else []
        found = self._pattern("topic", members, step)
        return found or next(iter(self._preferences(step)), None)

    def edit(self, id: str, text: str) -> None:
        """Replace the text of a correction; its request and provenance stay.

        Raises
        ------
        KeyError
            If there is no such correction.
        ValueError
            If the text is empty.
        """
        if id not in self.notes:
            raise KeyError(f"no correction {id!r}")
        text = _kept(check_text("text", text, empty=False))
        note = self._take(id)
        note.text, note.text_vector, note.edits = text, b"", note.edits + 1
        if not note.request:
            note.about_vector = b""
        self._admit(note)

    def forget(self, id: str) -> int:
        """Forget a correction, or all of a pattern, for good; return how many different ones there were."""
        gone = {id} & self.notes.keys()
        if not gone:
            groups: dict[Kind, list[list[Note]]] = {
                "topic": self._neighbours.topics,
                "preference": self._neighbours.preferences,
            }
            found = [
                members for kind in groups for members in groups[kind] if members and _pattern_id(kind, members) == id
            ]
            gone = {note.id for members in found for note in members}
        for each in gone:
            note = self._take(each)
            self.forgotten = sorted({*self.forgotten, *map(key_of, note.sources)})[-MAX_FORGOTTEN:]
        return len(gone)

    def merge(self, other: Corrections) -> Corrections:
        """Return the corrections of both; neither changes, their order does not matter, what both have counts once.

        What one of them has forgotten is gone; of two versions of a correction the one edited more often stays.

        Raises
        ------
        ValueError
            If their vectors differ in length.
        """
        lengths = {each.dimensions for each in (self, other)} - {None}
        if len(lengths) > 1:
            raise ValueError(f"vectors must have one length to be merged, not {sorted(filter(None, lengths))}")
        merged = Corrections(forgotten=sorted({*self.forgotten, *other.forgotten})[-MAX_FORGOTTEN:])
        gone = {*self.forgotten, *other.forgotten}
        for note in sorted([*self.notes.values(), *other.notes.values()], key=_version):
            sources = [source for source in note.sources if key_of(source) not in gone]
            if sources:
                merged._admit(msgspec.structs.replace(note, sources=sources))
        merged._bound()
        return merged

    @property
    def dimensions(self) -> int | None:
        """Length of the vectors, ``None`` while there is none."""
        lengths = (len(note.about_vector or note.text_vector) // 2 for note in self.notes.values())
        return next((length for length in lengths if length), None)

    def may_show(self) -> bool:
        """Tell whether there are enough corrections for a pattern; with fewer, nothing need be compared."""
        return sum(len(note.sources) for note in self.notes.values()) >= THRESHOLD

    def _admit(self, note: Note) -> str:
        """Take in a note, united with those of the same event or of the same words on the same request."""
        while (twin := self._index.twin(note)) is not None:
            note = _united(note, self._take(twin))
        while note.id in self.notes:  # of a source that has been dropped since
            note.id += "+"
        self.notes[note.id] = note
        self._index.add(note)
        self._changed()
        return note.id

    def _take(self, id: str) -> Note:
        """Take a note out and return it."""
        index = self._index  # made before the note is gone
        note = self.notes.pop(id)
        index.remove(note)
        self._changed()
        return note

    def _bound(self) -> None:
        """Give up the lightest of what is too much."""
        while len(self.notes) > MAX_NOTES:
            self._take(min(self._index.masses, key=lambda id: (self._index.masses[id], id)))

    def _changed(self) -> None:
        self.__dict__.pop("_neighbours", None)

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.notes)

    @cached_property
    def _neighbours(self) -> _Neighbours:
        return _Neighbours(self.notes)

    def _preferences(self, step: int) -> list[CorrectionPattern]:
        found = [self._pattern("preference", members, step) for members in self._neighbours.preferences]
        return sorted((each for each in found if each is not None), key=lambda each: (-each.weight, each.id))

    def _pattern(self, kind: Kind, members: list[Note], step: int) -> CorrectionPattern | None:
        sources = sorted(source for note in members for source in note.sources)
        if len(sources) < THRESHOLD:
            return None
        # A step before that of a source must neither overflow nor weigh more than what was said.
        weight = min(float(len(sources)), 2.0 ** min(_mass(sources) - step / HALF_LIFE, 60.0))
        if weight < THRESHOLD / 2:
            return None
        newest = sorted(members, key=lambda note: (note.sources[-1], note.id), reverse=True)
        examples: dict[str, Note] = {}
        for note in newest:
            examples.setdefault(wording(note.text), msgspec.structs.replace(note, sources=note.sources[:]))
        words = Counter(
            word for note in members for word in sorted(content_words(note.about if kind == "topic" else note.text))
        )
        return CorrectionPattern(
            id=_pattern_id(kind, members),
            kind=kind,
            words=tuple(sorted(words, key=lambda word: (-words[word], word))[:MAX_WORDS]),
            examples=tuple(examples.values())[:EXAMPLES],
            count=len(sources),
            weight=weight,
            confidence=1.0 - 2.0 ** (-weight / THRESHOLD),
            provenance=tuple((source.session, source.seq) for source in sources),
        )

    def _halves(self, vectors: Vectors, texts: list[str]) -> dict[str, bytes]:
        length = self.dimensions
        halves = {text: to_half(vectors[text], length).astype("<f2").tobytes() for text in texts if text in vectors}
        lengths = sorted({len(half) // 2 for half in halves.values()})
        if len(lengths) > 1:
            raise VectorError(f"returned vectors of {lengths} dimensions, expected one length")
        return halves


class _Index:
    """Notes by what makes two of them one, and how heavy each is."""

    def __init__(self, notes: Mapping[str, Note]) -> None:
        self.owners: dict[str | tuple[str, str], str] = {}
        """Key of a source, or wording -> the note."""
        self.masses: dict[str, float] = {}
        for note in notes.values():
            self.add(note)

    def add(self, note: Note) -> None:
        self.owners.update(dict.fromkeys(_names(note), note.id))
        self.masses[note.id] = _mass(note.sources)

    def remove(self, note: Note) -> None:
        for name in _names(note):
            self.owners.pop(name, None)
        del self.masses[note.id]

    def twin(self, note: Note) -> str | None:
        """Return a note of the same event, or of the same words on the same request."""
        return next((self.owners[name] for name in _names(note) if name in self.owners), None)


class _Neighbours:
    """Notes beside each other, the heaviest first: which are on near requests, which say the same.

    Parameters
    ----------
    notes : mapping of str to Note
        Not to be changed while this is used.
    """

    def __init__(self, notes: Mapping[str, Note]) -> None:
        self.notes = sorted(notes.values(), key=lambda note: (-_mass(note.sources), note.id))
        self._requests = _Texts((note.about, note.about_vector) for note in self.notes)
        self._sayings = _Texts((note.text, note.text_vector) for note in self.notes)

    def on(self, request: str, unit: Vector | None) -> list[Note]:
        """Return the notes on requests near to one; none unless the three nearest are near on average."""
        margins = self._requests.margins(request, unit)
        ranked = np.argsort(-margins, kind="stable").tolist()
        # A note counts as often as it was said.
        nearest = [at for at in ranked[:THRESHOLD] for _ in self.notes[at].sources][:THRESHOLD]
        if len(nearest) < THRESHOLD or math.fsum(margins[at] for at in nearest) < 0.0:
            return []
        return [self.notes[at] for at in ranked if margins[at] >= 0.0 or at in nearest]

    @cached_property
    def topics(self) -> list[list[Note]]:
        """Each note with those on requests near to its own; a note belongs to its heaviest neighbour only."""
        return list(self._groups(lambda at: self.on(self.notes[at].about, self._requests.unit(at))))

    @cached_property
    def preferences(self) -> list[list[Note]]:
        """Notes that say the same, and nowhere the opposite, on three requests or more that are not near."""
        return [members for members in self._groups(self._alike) if self._apart(members) >= THRESHOLD]

    def _groups(self, around: Callable[[int], list[Note]]) -> Iterator[list[Note]]:
        taken: set[str] = set()
        for at, note in enumerate(self.notes):
            if note.id not in taken:
                members = [each for each in around(at) if each.id not in taken]
                taken |= {each.id for each in members}
                yield members

    def _alike(self, at: int) -> list[Note]:
        said = stance(self.notes[at].text)
        margins = self._sayings.margins(self.notes[at].text, self._sayings.unit(at))
        near = [note for note, margin in zip(self.notes, margins, strict=True) if margin >= 0.0]
        return [note for note in near if not opposed(said, stance(note.text))]

    def _apart(self, members: list[Note]) -> int:
        """Return on how many requests that are not near to each other some notes are."""
        places = {note.id: at for at, note in enumerate(self.notes)}
        counted: list[int] = []
        for at in (places[note.id] for note in members):
            margins = self._requests.margins(self.notes[at].about, self._requests.unit(at))
            if all(margins[other] < 0.0 for other in counted):
                counted.append(at)
        return len(counted)


class _Texts:
    """Texts that others are compared with, by their vectors where both have one, else by words."""

    def __init__(self, texts: Iterable[tuple[str, bytes]]) -> None:
        known = list(texts)
        self._words = [content_words(text) for text, _ in known]
        self._embedded = [at for at, (_, vector) in enumerate(known) if vector]
        halves = [np.frombuffer(known[at][1], np.dtype("<f2")) for at in self._embedded]
        self._units = np.asarray([to_unit(half) for half in halves], np.float32)

    def unit(self, at: int) -> Vector | None:
        """Return the unit vector of a text, ``None`` while it is not known."""
        return self._units[self._embedded.index(at)] if at in self._embedded else None

    def margins(self, text: str, unit: Vector | None) -> npt.NDArray[np.float64]:
        """Return how much nearer than needed each text is, ``(n,)``; 0 or more = near."""
        words = content_words(text)
        margins = np.full(len(self._words), -SAME_WORDS)
        compared = set(range(len(self._words)))
        if unit is not None and self._embedded:
            margins[self._embedded] = dots(self._units, unit) - NEAR
            for at in np.flatnonzero(margins >= 0.0).tolist():  # the words of what is far anyway need not be counted
                margins[at] -= SHARED_WORDS * overlap(words, self._words[at])
            compared.difference_update(self._embedded)
        for at in compared:
            margins[at] += jaccard(words, self._words[at])
        return margins


def key_of(source: CorrectionSource) -> str:
    """Return the name of a source, short and free of its session's text."""
    return blake2b(f"{source.seq} {source.session}".encode(), digest_size=8).hexdigest()


def _pattern_id(kind: Kind, members: list[Note]) -> str:
    return f"{kind[0]}{min(note.id for note in members)[1:]}"


def _names(note: Note) -> list[str | tuple[str, str]]:
    return [*map(key_of, note.sources), (wording(note.text), wording(note.request))]


def _version(note: Note) -> tuple[object, ...]:
    """Return a key by which the version of a note that stays comes last."""
    return note.edits, note.sources[-1], note.text, note.request, note.text_vector, note.about_vector, note.id


def _united(one: Note, other: Note) -> Note:
    """Return one note of two: the version edited more often, else the newer one, with the newest sources of both."""
    older, newer = sorted((one, other), key=_version)
    sources = {key_of(source): source for source in sorted([*one.sources, *other.sources], reverse=True)}
    return msgspec.structs.replace(
        newer,
        id=min(one.id, other.id),
        sources=sorted(sources.values())[-MAX_SOURCES:],
        text_vector=newer.text_vector or (older.text_vector if older.text == newer.text else b""),
        about_vector=newer.about_vector or (older.about_vector if older.about == newer.about else b""),
    )


def _mass(sources: list[CorrectionSource]) -> float:
    """Return log2 of a weight as it were at step 0; comparing two of them compares the weights at any step."""
    # Relative to the newest: 2 ** (step / 200) is too large for a float after 200,000 steps.
    newest = max(source.step for source in sources)
    return math.log2(math.fsum(2.0 ** ((source.step - newest) / HALF_LIFE) for source in sources)) + newest / HALF_LIFE


def _kept(text: str) -> str:
    text = clean(text[: 4 * MAX_CHARS]).strip()  # cut first: a megabyte need not be cleaned
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
