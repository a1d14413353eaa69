"""Read a transcript file of any known format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from coherence.core.errors import TranscriptError
from coherence.core.readings import excerpt
from coherence.providers.readers import (
    anthropic_messages,
    claude_code,
    langfuse,
    langsmith,
    openai_chat,
    openai_responses,
    otlp,
    phoenix,
    recorded_events,
    runs,
)
from coherence.providers.readers.detect import detect_format
from coherence.providers.readers.source import Document, Source, read_source, stem
from coherence.providers.readers.values import loads
from coherence.providers.transcript import Transcript

_READERS: Mapping[str, Callable[[Source], Iterator[Transcript]]] = {
    "openai": openai_chat.read_openai,
    "openai-responses": openai_responses.read_responses,
    "anthropic": anthropic_messages.read_anthropic,
    "claude-code": claude_code.read_claude_code,
    "runs": runs.read_runs,
    "export": recorded_events.read_export,
    "otlp": otlp.read_otlp,
    "langfuse": langfuse.read_langfuse,
    "phoenix": phoenix.read_phoenix,
    "langsmith": langsmith.read_langsmith,
}

FORMATS: tuple[str, ...] = tuple(_READERS)
"""The names of the known formats."""


def read_transcripts(path: str | Path, format: str | None = None) -> list[Transcript]:
    """Read the runs of a file, plain or gzipped.

    Parameters
    ----------
    path : str or Path
        JSON or JSON lines in UTF-8, of at most :data:`~coherence.providers.readers.MAX_BYTES` decompressed.
    format : str, optional
        One of :data:`FORMATS`; ``None``: told from what the file holds.

    Returns
    -------
    list of Transcript
        One or more, with different ids: a repeated id gets a suffix such as ``#2``, which the run's warnings tell.

    Raises
    ------
    TranscriptError
        The file cannot be read as this format; the error says where and what was expected.
    """
    if format is not None and format not in FORMATS:
        raise TranscriptError(path, f"unknown format {format!r}, expected one of {', '.join(FORMATS)}")
    return _transcripts(read_source(path), format)


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
    name = format or detect_format(source.documents)
    if source.torn is not None and name != "claude-code":
        raise source.torn
    if name is None:
        raise TranscriptError(source.path, f"unknown format, expected one of {', '.join(FORMATS)}")
    seen: dict[str, int] = {}
    return [
        _named(msgspec.structs.replace(transcript, format=name), _unique(transcript.id, seen))
        for transcript in _READERS[name](source)
    ]


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
