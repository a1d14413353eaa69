"""Read a transcript file of any known format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from coherence.core.errors import PluginError, TranscriptError
from coherence.core.protocols import TranscriptReader
from coherence.core.readings import excerpt
from coherence.core.registry import create_reader, shipped, strangers
from coherence.providers.readers.source import Document, Source, read_source, stem
from coherence.providers.readers.values import loads
from coherence.providers.transcript import Transcript

FORMATS: tuple[str, ...] = tuple(shipped("readers"))
"""The names of the formats that this package reads, in the order in which a file is tried."""


def read_transcripts(path: str | Path, format: str | None = None) -> list[Transcript]:
    """Read the runs of a file, plain or gzipped.

    Parameters
    ----------
    path : str or Path
        JSON or JSON lines in UTF-8, of at most :data:`~coherence.providers.readers.MAX_BYTES` decompressed.
    format : str, optional
        One of :data:`FORMATS`, or the name of a plug-in in the group ``coherence.readers``; ``None``: told from what
        the file holds.

    Returns
    -------
    list of Transcript
        One or more, with different ids: a repeated id gets a suffix such as ``#2``, which the run's warnings tell.

    Raises
    ------
    TranscriptError
        The file cannot be read as this format; the error says where and what was expected.
    """
    # a name that nobody knows is told before a large file is read
    if format is not None and format not in (known := _known()):
        raise TranscriptError(path, f"unknown format {format!r}, expected one of {', '.join(known)}")
    return _transcripts(read_source(path), format)


def _known() -> list[str]:
    others = strangers("readers")
    return [*(name for name in FORMATS if name not in others), *others]


def read_messages(messages: Sequence[Mapping[str, Any]], name: str = "messages") -> Transcript:
    """Return messages of OpenAI or Anthropic that a program holds as a run.

    Parameters
    ----------
    messages : sequence of mapping
        The messages, oldest first.
    name : str
        Id of the run.

    Raises
    ------
    TranscriptError
        They are not messages of a known format; the error says what was expected.

    Examples
    --------
    >>> run = read_messages([{"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "4"}])
    >>> run.format, [step.role for step in run.steps]
    ('openai', ['user', 'assistant'])
    """
    try:
        plain = loads(json.dumps(messages))
    except (TypeError, ValueError, RecursionError) as error:
        raise TranscriptError(name, f"{error}; expected messages that JSON can hold") from error
    return _transcripts(Source(name, [Document(plain, None)]), None)[0]


def _transcripts(source: Source, format: str | None) -> list[Transcript]:
    faults: list[str] = []
    reader = _detect(source, faults) if format is None else _load(source, format)
    if source.torn is not None and not reader.growing:
        raise source.torn
    seen: dict[str, int] = {}
    runs = [
        _named(
            msgspec.structs.replace(run, format=reader.format, warnings=(*run.warnings, *faults)), _unique(run.id, seen)
        )
        for run in reader.read(source)
    ]
    if not runs:
        raise TranscriptError(source.path, f"holds no run in the format {reader.format}")
    return runs


class _Reader:
    """A reader of this package, whose own faults are bugs."""

    def __init__(self, format: str, reader: TranscriptReader) -> None:
        self.format = format
        self.growing = getattr(reader, "growing", False) is True
        self._reader = reader

    def matches(self, documents: Sequence[Document]) -> bool:
        return self._reader.matches(documents)

    def read(self, source: Source) -> Iterable[Transcript]:
        return self._reader.read(source)


class _StrangersReader(_Reader):
    """A reader of others: whatever it does, a user sees a TranscriptError that names it."""

    def read(self, source: Source) -> Iterable[Transcript]:
        try:
            found = list(super().read(source))
            for run in found:
                # by way of bytes, because a record that is made in Python takes values of any type
                msgspec.msgpack.decode(msgspec.msgpack.encode(run), type=Transcript)
        except TranscriptError:
            raise
        except Exception as error:
            raise TranscriptError(source.path, f"reader {self.format!r} failed: {_said(error)}") from error
        if not found or not all(run.steps for run in found):
            missing = "a run without steps" if found else "no run"
            raise TranscriptError(source.path, f"reader {self.format!r} gave {missing}")
        return found


def _load(source: Source, format: str) -> _Reader:
    kind = _StrangersReader if format in strangers("readers") else _Reader
    try:
        return kind(format, create_reader(format))
    except PluginError as error:
        raise TranscriptError(source.path, str(error)) from error


def _detect(source: Source, faults: list[str]) -> _Reader:
    """Return the first reader that knows a file; what fails in those of others on the way is added to the faults.

    Those of others are asked first, since whoever adds one wants it; one that fails keeps no file from being read.
    """
    for format in strangers("readers"):
        try:
            reader = _load(source, format)
            if reader.matches(source.documents):
                return reader
        except Exception as error:
            reason = error.reason if isinstance(error, TranscriptError) else _said(error)
            faults.append(f"reader {format!r} was left out: {reason}")
    for format in FORMATS:
        reader = _load(source, format)
        if reader.matches(source.documents):
            return reader
    if source.torn is not None:
        raise source.torn
    known = f"unknown format, expected one of {', '.join(_known())}"
    raise TranscriptError(source.path, "; ".join((known, *faults)))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {excerpt(str(error), 200)}"


def _named(transcript: Transcript, id: str) -> Transcript:
    """Return a run under an id of its own; that a given one came before is told."""
    if id == transcript.id:
        return transcript
    told = transcript.warnings
    if transcript.id != stem(transcript.path):  # which a run without an id has
        told = (*told, f"the id {excerpt(transcript.id)!r} comes again; the run is called {excerpt(id)!r}")
    return msgspec.structs.replace(transcript, id=id, warnings=told)


def _unique(name: str, seen: dict[str, int]) -> str:
    candidate = name
    while candidate in seen:
        # counted on from the last one, or a file of many runs of one id would take too long
        seen[name] += 1
        candidate = f"{name}#{seen[name]}"
    seen[candidate] = 1
    return candidate
