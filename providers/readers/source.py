"""A transcript file as JSON documents: bytes, gzip, UTF-8, JSON or JSON lines."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import msgspec

from coherence.core.errors import TranscriptError
from coherence.core.files import open_input
from coherence.providers.readers.eval_archive import SIGNATURE, read_eval
from coherence.providers.readers.values import loads
from coherence.providers.transcript import Step, Transcript

T = TypeVar("T")

MAX_BYTES = 1 << 30
"""Largest size of a transcript file once decompressed: 1 GiB."""

MAX_RATIO = 50
"""Largest size of a gzipped file once decompressed, in sizes of the file, where that is above :data:`ALWAYS_BYTES`;
texts of agents reach about 15."""

ALWAYS_BYTES = 1 << 25
"""Size up to which any file is decompressed: 32 MiB."""

_CHUNK = 1 << 20


class Document(NamedTuple):
    """One JSON value of a file."""

    value: Any
    line: int | None
    """Its line; ``None`` for one value over several lines."""


class Source(NamedTuple):
    """The documents of a file, one or more."""

    path: str
    documents: list[Document]
    torn: TranscriptError | None = None
    """Fault of a last line that is not JSON, where all lines before it are."""

    def convert(self, document: Document, kind: type[T], expected: str) -> T:
        """Return a document as a record, or raise an error that says what was expected."""
        try:
            return msgspec.convert(document.value, kind)
        except msgspec.ValidationError as error:
            raise TranscriptError(self.path, f"{error}; expected {expected}", document.line) from error

    def transcript(
        self,
        steps: Iterable[Step],
        *,
        line: int | None = None,
        id: str | int | None = None,
        goal: str | None = None,
        system: str | None = None,
        memories: Iterable[tuple[int, str]] = (),
        warnings: Iterable[str] = (),
    ) -> Transcript:
        """Return a run of this file; a run without an id takes the file's stem."""
        steps, warnings = tuple(steps), tuple(warnings)
        if not steps:
            raise TranscriptError(self.path, "; ".join(("a run without steps, expected one or more", *warnings)), line)
        return Transcript(
            id=stem(self.path) if id is None or id == "" else str(id),
            steps=steps,
            goal=goal or "",
            system=system or "",
            memories=tuple(memories),
            path=self.path,
            warnings=warnings,
        )


def stem(path: str) -> str:
    """Return the name of a file without its endings for gzip and format, which runs without an id take."""
    return Path(Path(path).name.removesuffix(".gz")).stem


STDIN = "-"
"""Name of the standard input."""


def read_source(path: str | Path) -> Source:
    """Read a file of JSON, of JSON lines, or a log of inspect_ai.

    Raises
    ------
    TranscriptError
        If it is none of these.
    """
    data = _read_bytes(path)
    if data.startswith(SIGNATURE):
        most = min(MAX_BYTES, max(ALWAYS_BYTES, MAX_RATIO * len(data)))
        return Source(str(path), [Document(read_eval(path, data, most), None)])
    text = _decode(path, data)
    # Not splitlines(): a text in JSON may hold U+2028 and other ends of lines.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise TranscriptError(path, "the file is empty, expected JSON or JSON lines")
    documents: list[Document] = []
    for number, line in lines:
        try:
            documents.append(Document(_parse(path, line, number), number))
        except TranscriptError as error:
            # Not even the first line is JSON: one value over several lines, or none at all.
            if not documents:
                return Source(str(path), [_parse_whole(path, text, lines, error)])
            if number != lines[-1][0]:
                raise
            # a file that is being written ends in the middle of a line
            return Source(str(path), documents, torn=error)
    return Source(str(path), documents)


def _opened(path: str | Path) -> io.BufferedReader:
    if str(path) == STDIN:
        # the interpreter's own standard input stays open
        return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    return open_input(path)  # the caller closes it


def _read_bytes(path: str | Path) -> bytearray:
    data = bytearray()
    try:
        with _opened(path) as raw:
            zipped = raw.peek(2)[:2] == b"\x1f\x8b"
            # what is small and decompresses to much would, once parsed, take twenty times as much again
            most = _most(raw) if zipped else MAX_BYTES
            stream: gzip.GzipFile | IO[bytes]
            with gzip.GzipFile(fileobj=raw) if zipped else nullcontext(raw) as stream:
                while len(data) <= most and (chunk := stream.read(_CHUNK)):
                    data += chunk
    except FileNotFoundError as error:
        raise TranscriptError(path, "no such file") from error
    except IsADirectoryError as error:
        raise TranscriptError(path, "is a directory, expected a file") from error
    except PermissionError as error:
        raise TranscriptError(path, "permission denied, expected a readable file") from error
    except EOFError as error:
        raise TranscriptError(path, "truncated gzip, expected a complete file") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TranscriptError(path, f"damaged gzip: {error}") from error
    except (OSError, ValueError) as error:
        raise TranscriptError(path, f"cannot be read: {error}") from error
    if len(data) > most:
        raise TranscriptError(path, f"larger than {most} bytes{' decompressed' if zipped else ''}, the most allowed")
    return data


def _most(raw: io.BufferedReader) -> int:
    """Return the most bytes that a gzipped file may have once decompressed."""
    size = os.fstat(raw.fileno()).st_size  # 0 of a standard input that is a pipe
    return min(MAX_BYTES, max(ALWAYS_BYTES, MAX_RATIO * size))


def _decode(path: str | Path, data: bytearray) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # a file that is being written may end within a character
            return data.decode("utf-8-sig", "replace")
        byte, line = error.object[error.start], error.object.count(b"\n", 0, error.start) + 1
        raise TranscriptError(path, f"not UTF-8: byte 0x{byte:02x}, expected JSON in UTF-8", line) from error


def _parse(path: str | Path, text: str, line: int | None = None) -> Any:
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        reason = f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}, expected JSON or JSON lines"
        raise TranscriptError(path, reason, at) from error
    except RecursionError as error:
        raise TranscriptError(path, "JSON is nested too deep, expected a transcript", line) from error


def _parse_whole(path: str | Path, text: str, lines: list[tuple[int, str]], error: TranscriptError) -> Document:
    """Parse one value over several lines; if the second line is an object of its own, the first line is at fault."""
    if len(lines) > 1:
        try:
            return Document(_parse(path, text), None)
        except TranscriptError:
            try:
                second = loads(lines[1][1])
            except (ValueError, RecursionError):
                second = None
            if not isinstance(second, dict):
                raise
    raise error
