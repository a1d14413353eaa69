"""One event as one line of JSON, exact to the bit, so that its hash can be checked from the line alone."""

from __future__ import annotations

import msgspec

from coherence.store.rows import AuditRow, DecisionRow, EventRow, ReadingRow


class _Reading(msgspec.Struct, forbid_unknown_fields=True):
    coherence_index: float | None
    band: str | None
    pressure: float | None
    mode: str | None
    data: msgspec.Raw


class _Decision(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    data: msgspec.Raw


class _Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    id: int
    session_id: int
    session: str
    agent: str
    seq: int
    ts: float
    kind: str
    source: str
    data: msgspec.Raw
    prev_hash: str
    hash: str
    reading: _Reading | None = None
    decision: _Decision | None = None
    texts: dict[str, str] = {}
    """The exact text of a ``data`` that a line cannot hold as it is: one with line breaks, or spaces around it."""


_decoder = msgspec.json.Decoder(_Line)
_encoder = msgspec.json.Encoder()
_skim = msgspec.json.Decoder(msgspec.Raw)


def encode_line(row: AuditRow) -> bytes:
    """Return the line of an event, with its line end."""
    event, texts = row.event, {}

    def raw(name: str, text: str) -> msgspec.Raw:
        try:
            _skim.decode(text)
            if not ("\n" in text or "\r" in text or text != text.strip()):
                return msgspec.Raw(text.encode())
            nested = _encoder.encode(msgspec.json.decode(text))
        except (msgspec.MsgspecError, RecursionError):  # SQLite takes it for JSON, other readers do not
            nested = b"null"
        texts[name] = text
        return msgspec.Raw(nested)

    line = _Line(
        id=row.id,
        session_id=row.session_id,
        session=row.session,
        agent=row.agent,
        seq=event.seq,
        ts=event.ts,
        kind=event.kind,
        source=row.source,
        data=raw("data", event.data),
        prev_hash=row.prev_hash.hex(),
        hash=row.hash.hex(),
        texts=texts,
    )
    if (read := event.reading) is not None:
        data = raw("reading", read.data)
        line.reading = _Reading(read.coherence_index, read.band, read.pressure, read.mode, data)
    if (decided := event.decision) is not None:
        line.decision = _Decision(decided.kind, raw("decision", decided.data))
    return _encoder.encode(line) + b"\n"


def decode_line(line: bytes) -> AuditRow | None:
    """Return the event of a line; ``None`` if the line is no event, or not a whole one."""
    if not line.endswith(b"\n"):
        return None
    try:
        found = _decoder.decode(line)
        prev_hash, row_hash = bytes.fromhex(found.prev_hash), bytes.fromhex(found.hash)
        event = EventRow(found.seq, found.ts, found.kind, _text(found, "data", found.data), *_tick(found))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return AuditRow(found.id, found.session_id, found.session, found.agent, found.source, event, prev_hash, row_hash)


def _tick(line: _Line) -> tuple[ReadingRow | None, DecisionRow | None]:
    read, decided = line.reading, line.decision
    return (
        None
        if read is None
        else ReadingRow(read.coherence_index, read.band, read.pressure, read.mode, _text(line, "reading", read.data)),
        None if decided is None else DecisionRow(decided.kind, _text(line, "decision", decided.data)),
    )


def _text(line: _Line, name: str, raw: msgspec.Raw) -> str:
    return line.texts.get(name) or bytes(raw).decode()
