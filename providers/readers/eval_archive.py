"""The ``.eval`` file of inspect_ai: a zip archive of JSON, which mostly is packed with zstd."""

from __future__ import annotations

import io
import json
import zipfile
from copy import copy
from pathlib import Path
from typing import IO, Any

from coherence.core.errors import TranscriptError
from coherence.providers.readers.values import loads

SIGNATURE = b"PK\x03\x04"
"""First bytes of a zip archive."""

HEADERS = ("header.json", "_journal/start.json")
"""Files with the head of a log: the first once it is finished, the second while it is being written."""

_ZSTD = 93
_CHUNK = 1 << 20


def read_eval(path: str | Path, data: bytes | bytearray, most: int) -> dict[str, Any]:
    """Return a log as its ``.json`` file has it; of all its members no more than so many bytes are unpacked.

    Raises
    ------
    TranscriptError
        If it is no such archive, is damaged, or unpacks to more.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            header = next((name for name in HEADERS if name in names), None)
            if header is None:
                raise TranscriptError(path, f"a zip archive without {HEADERS[0]}, expected a log of inspect_ai (.eval)")
            samples = sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))
            found = []
            for name in (header, *samples):
                text = _unpack(path, archive, name, most)
                most -= len(text)
                found.append(loads(text.decode("utf-8", "replace")))
    except TranscriptError:
        raise
    except json.JSONDecodeError as error:
        raise TranscriptError(path, f"{name} in the archive is not JSON: {error}") from error
    except RecursionError as error:
        raise TranscriptError(path, f"{name} in the archive is nested too deep") from error
    # of a damaged archive zipfile raises many kinds, from its own to struct.error and UnicodeDecodeError
    except Exception as error:
        raise TranscriptError(path, f"damaged zip archive: {error}") from error
    head = found[0] if isinstance(found[0], dict) else {}
    return {**head, "samples": found[1:]}


def _unpack(path: str | Path, archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    info = archive.getinfo(name)
    try:
        with archive.open(info) as stream:
            return _bounded(path, stream, most)
    except (NotImplementedError, ImportError):  # the latter from zipfile_zstd, which another package may have loaded
        if info.compress_type != _ZSTD:
            raise
    # zipfile knows zstd from Python 3.14 on: before, the packed bytes are taken as they are
    packed = copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    packed.CRC = None  # type: ignore[assignment]  # which is that of the unpacked bytes
    try:
        import zstandard
    except ImportError as error:
        reason = "packed with zstd: pip install zstandard, or write it as JSON (inspect log convert --to json)"
        raise TranscriptError(path, reason) from error
    with archive.open(packed) as raw:
        return _bounded(path, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True), most)


def _bounded(path: str | Path, stream: IO[bytes], most: int) -> bytes:
    data = bytearray()
    while len(data) <= most and (chunk := stream.read(_CHUNK)):
        data += chunk
    if len(data) > most:
        raise TranscriptError(path, "unpacks to more bytes than allowed")
    return bytes(data)
