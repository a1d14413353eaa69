"""The audit trail: everything once, in order, checkable from the files alone."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.store.errors import StoreError
from coherence.store.jsonl import decode_line, encode_line, export_jsonl, verify_jsonl
from coherence.store.rows import AuditRow, DecisionRow, EventRow, ReadingRow, SessionRow
from coherence.store.store import Store
from store.rows import append, begin


def ids(folder: Path) -> list[int]:
    found = []
    for path in folder.iterdir():
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        found += [json.loads(line)["id"] for line in text.splitlines()]
    return sorted(found)


def test_export_jsonl_a_line_holds_everything_readable_by_anybody(
    store: Store, session: SessionRow, tmp_path: Path
) -> None:
    append(store, session, 3)
    assert export_jsonl(store, tmp_path / "trail") == 3
    first, _, last = map(json.loads, (tmp_path / "trail" / "audit.jsonl").read_text(encoding="utf-8").splitlines())
    rows = list(store.audit_rows())
    names = {"session_id": 1, "session": "s", "agent": "a", "source": "api"}
    assert last == {
        **names,
        "id": 3,
        "seq": 3,
        "ts": 103.0,
        "kind": "tick",
        "data": {"n": 2},
        "prev_hash": rows[1].hash.hex(),
        "hash": rows[2].hash.hex(),
        "reading": {"coherence_index": 0.75, "band": "yellow", "pressure": 1.5, "mode": "alert", "data": {"r": 3}},
        "decision": {"kind": "warn", "data": {"d": 3}},
    }
    assert "reading" not in first
    assert verify_jsonl(tmp_path / "trail") == []


@pytest.mark.parametrize(
    "data",
    [
        '{"a":\n 1}',
        " {} ",
        "\r\n[]",
        '"\u2028 ä 🎈"',
        '"\\ud800"',
        "1e999",
        "-0",
        "123456789012345678901234567890",
        "[" * 900 + "]" * 900,
        '{"a":1,"a":2}',
        '"\\u0000"',
        "null",
    ],
)
def test_decode_line_data_survives_to_the_bit(store: Store, session: SessionRow, tmp_path: Path, data: str) -> None:
    append(store, session, 1, data=data)
    append(store, session, 1)
    assert export_jsonl(store, tmp_path / "trail") == 2
    lines = (tmp_path / "trail" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    assert [decode_line(line) for line in lines] == list(store.audit_rows())
    assert verify_jsonl(tmp_path / "trail") == []


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(value=json_values, indent=st.sampled_from([None, 0, 2]), plain=st.booleans(), ts=st.floats(-1e17, 1e17))
def test_encode_line_any_line_survives(value: object, indent: int | None, plain: bool, ts: float) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=not plain)
    if any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        return
    event = EventRow(1, ts, "k", text, ReadingRow(None, "b", ts, None, text), DecisionRow("guide", text))
    row = AuditRow(1, 1, "s", "a", "api", event, bytes(32), bytes(range(32)))
    line = encode_line(row)
    assert line.count(b"\n") == 1
    assert decode_line(line) == row


def test_export_jsonl_a_second_export_appends_only_what_is_new(
    store: Store, session: SessionRow, tmp_path: Path
) -> None:
    trail = tmp_path / "trail" / "own.jsonl"
    append(store, session, 5)
    assert export_jsonl(store, trail) == 5
    assert export_jsonl(store, trail) == 0
    append(store, begin(store, "two"), 2)
    append(store, session, 700)
    assert export_jsonl(store, trail) == 702
    assert ids(trail.parent) == list(range(1, 708))
    assert os.listdir(trail.parent) == ["own.jsonl"]
    assert verify_jsonl(trail) == []


def test_export_jsonl_goes_on_after_a_file_that_was_moved_aside_and_gzipped(
    store: Store, session: SessionRow, tmp_path: Path
) -> None:
    folder = tmp_path / "trail"
    append(store, session, 20)
    export_jsonl(store, folder)
    with gzip.open(folder / "audit-old.jsonl.gz", "wb") as file:
        file.write((folder / "audit.jsonl").read_bytes())
    (folder / "audit.jsonl").unlink()
    append(store, session, 5)
    assert export_jsonl(store, folder) == 5
    assert ids(folder) == list(range(1, 26))
    assert verify_jsonl(folder) == verify_jsonl(sorted(folder.iterdir(), reverse=True)) == []


@pytest.mark.parametrize("cut", [1, 10, 300, 100_000, 10**6])
def test_export_jsonl_a_torn_last_line_is_written_again(
    store: Store, session: SessionRow, tmp_path: Path, cut: int
) -> None:
    append(store, session, 20)
    append(store, session, 1, data=f'"{"x" * 200_000}"')
    append(store, session)
    export_jsonl(store, tmp_path / "trail")
    path = tmp_path / "trail" / "audit.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[: max(len(content) - cut, 0)])
    append(store, session)
    assert export_jsonl(store, tmp_path / "trail") >= 1
    assert ids(path.parent) == list(range(1, 24))
    assert path.read_bytes().startswith(content)
    assert verify_jsonl(path) == []


def test_export_jsonl_the_trail_of_another_store_is_refused(store: Store, session: SessionRow, tmp_path: Path) -> None:
    append(store, session, 5)
    export_jsonl(store, tmp_path / "trail")
    for count in (2, 9):
        with Store(tmp_path / f"other{count}.db") as other:
            append(other, begin(other), count, data="{}")
            with pytest.raises(StoreError, match="this audit trail is"):
                export_jsonl(other, tmp_path / "trail")
    assert verify_jsonl(tmp_path / "trail") == []


def test_export_jsonl_what_retention_removed_before_an_export_shows_as_a_gap(
    store: Store, session: SessionRow, tmp_path: Path
) -> None:
    append(store, session, 5)
    export_jsonl(store, tmp_path / "trail")
    append(store, session, 5)
    store.prune(max_events=5)
    assert export_jsonl(store, tmp_path / "trail") == 5
    assert verify_jsonl(tmp_path / "trail") == []
    append(store, session, 5)
    store.prune(max_events=2)
    export_jsonl(store, tmp_path / "trail")
    (found,) = verify_jsonl(tmp_path / "trail")
    assert found.id == 14 and "3 events before it are missing" in str(found)


def lines_of(store: Store, session: SessionRow, folder: Path) -> tuple[Path, list[bytes]]:
    append(store, session, 10)
    append(store, begin(store, "two"), 4)
    append(store, session, 6)
    export_jsonl(store, folder)
    path = folder / "audit.jsonl"
    return path, path.read_bytes().splitlines(keepends=True)


def test_verify_jsonl_the_first_line_that_breaks_the_chain_is_named(
    store: Store, session: SessionRow, tmp_path: Path
) -> None:
    path, lines = lines_of(store, session, tmp_path / "trail")

    def found(changed: list[bytes]) -> int | None:
        path.write_bytes(b"".join(changed))
        (fault,) = verify_jsonl(path)
        return fault.id

    assert verify_jsonl(path) == []
    assert found([*lines[:6], lines[6].replace(b'"n":1', b'"n":3'), *lines[7:]]) == 7
    assert found([*lines[:8], lines[8].replace(b'"yellow"', b'"green"'), *lines[9:]]) == 9
    assert found([*lines[:6], *lines[7:]]) == 8
    assert found([*lines[:5], lines[6], lines[5], *lines[7:]]) == 7
    assert found([*lines[:6], lines[5], *lines[6:]]) == 6
    assert found([*lines[:6], b"no event\n", *lines[7:]]) is None
    assert found([*lines[:-1], lines[-1][:-9]]) is None


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**9), byte=st.integers(0, 255))
def test_verify_jsonl_no_changed_byte_escapes(
    store: Store, session: SessionRow, tmp_path: Path, at: int, byte: int
) -> None:
    path = tmp_path / "trail" / "audit.jsonl"
    if not path.exists():
        lines_of(store, session, tmp_path / "trail")
        (tmp_path / "kept").write_bytes(path.read_bytes())
    content = bytearray((tmp_path / "kept").read_bytes())
    at %= len(content)
    changed = content[at] != byte
    content[at] = byte
    path.write_bytes(content)
    before, after = (tmp_path / "kept").read_bytes(), bytes(content)
    meant = [decode_line(line) for line in before.splitlines(keepends=True)]
    same = [decode_line(line) for line in after.splitlines(keepends=True)] == meant
    if changed and not same and not _only_the_session_number(meant, after):
        assert verify_jsonl(path)
    elif not changed:
        assert verify_jsonl(path) == []


def _only_the_session_number(meant: list[AuditRow | None], after: bytes) -> bool:
    """``session_id`` is a copy of what the names say, and no part of the hash."""
    found = [decode_line(line) for line in after.splitlines(keepends=True)]
    return None not in found and [msgspec.structs.replace(row, session_id=0) for row in found if row] == [
        msgspec.structs.replace(row, session_id=0) for row in meant if row
    ]


def test_export_jsonl_a_trail_that_cannot_be_written_or_read_is_an_error(
    store: Store, session: SessionRow, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="the audit trail cannot be written"):
        export_jsonl(store, tmp_path / "file" / "x.jsonl")
    (tmp_path / "audit.jsonl").write_text("no event\n")
    with pytest.raises(StoreError, match="the last line of this audit trail is no event"):
        export_jsonl(store, tmp_path)
    append(store, session, 30)
    export_jsonl(store, tmp_path / "trail")
    packed = tmp_path / "audit-1.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "trail" / "audit.jsonl").read_bytes())[:-20])
    assert "the file cannot be read" in str(verify_jsonl(packed)[0])
