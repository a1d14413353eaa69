"""Lessons go out as JSON lines and come in again, once, whatever stands between them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.lessons import exchange
from coherence.lessons.exchange import ImportReport, RefusedEntry, export_lessons, import_lessons, read_entries
from coherence.lessons.store import LessonStore
from coherence.lessons.table import New
from coherence.providers import HashingEmbedder

YAML = "ModuleNotFoundError: No module named 'yaml'"
LONG = "=== tests ===\n" + "collected one more item\n" * 100 + YAML + "\n" + "teardown of one more item\n" * 100


def opened(path: Path) -> LessonStore:
    return LessonStore(path, embedder=HashingEmbedder())


def out(store: LessonStore) -> bytes:
    return b"".join(export_lessons(store))


def load(store: LessonStore, *lessons: object) -> ImportReport:
    return import_lessons(store, io.BytesIO("\n".join(json.dumps(lesson) for lesson in lessons).encode()))


def lesson(error: str = YAML, **more: object) -> dict[str, object]:
    return {"pattern": "NoModule", "error_text": error, "fix_text": "pip install pyyaml", "tool": "Bash", **more}


def refusals(data: bytes) -> list[tuple[int, str]]:
    return [(found.line, found.why) for found in read_entries(io.BytesIO(data)) if isinstance(found, RefusedEntry)]


@pytest.mark.parametrize(
    ("ts", "seconds"),
    [
        (1_790_000_000, 1_790_000_000.0),
        (1_790_000_000_123, 1_790_000_000.123),
        (99_999_999_999, 99_999_999_999.0),
        (100_000_000_000, 100_000_000.0),
        (-1_790_000_000_000, -1_790_000_000.0),
        ("2026-09-21T14:13:20", 1_790_000_000.0),
    ],
)
@pytest.mark.parametrize("field", ["ts", "seen", "created"])
def test_exchange_times_are_seconds_whatever_unit_they_come_in(field: str, ts: object, seconds: float) -> None:
    line = json.dumps({"pattern": "p", "error": "boom: lever", "fix": "f", field: ts}).encode()
    (entry,) = read_entries(io.BytesIO(line))
    assert isinstance(entry, New) and entry.ts == pytest.approx(seconds, abs=1e-3)


@pytest.mark.parametrize("ts", [1e15, "yesterday", True, [], float("nan")])
def test_exchange_a_time_that_is_none_is_refused_with_its_field(ts: object) -> None:
    line = json.dumps({"pattern": "p", "error": "boom: lever", "fix": "f", "ts": ts}).encode()
    (refusal,) = read_entries(io.BytesIO(b"\n" + line))
    assert isinstance(refusal, RefusedEntry) and refusal.line == 2 and refusal.why.startswith("ts must be")


def test_import_report_what_goes_out_comes_in_unchanged(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as one, opened(tmp_path / "b.db") as other:
        id = one.record(**lesson(), ts=100.5)  # type: ignore[arg-type]
        one.record(**lesson(), ts=200.5)  # type: ignore[arg-type]
        one.outcome(id, helped=True)
        one.outcome(id, helped=False)
        one.record(
            pattern="ü", error_text="fatal: 'origin' does not appear to be a git repository", fix_text="git add\n»x«"
        )
        lines = out(one)
        first = json.loads(lines.splitlines()[0])
        assert first == lesson(count=2, helped=1, failed=1, created=100.5, seen=200.5)
        assert load_bytes(other, lines) == ImportReport(added=2)
        assert out(other) == lines
        assert other.query("ModuleNotFoundError: No module named 'yaml'")[0].fix_text == "pip install pyyaml"
        assert other.stats().vectors == 2


def load_bytes(store: LessonStore, data: bytes) -> ImportReport:
    return import_lessons(store, io.BytesIO(data))


def test_import_report_importing_again_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store:
        ids = [store.record(**lesson(f"No module named 'm{n}'")) for n in range(3)]  # type: ignore[arg-type]
        store.outcome(ids[0], helped=True)
        lines = out(store)
        for _ in range(2):
            assert load_bytes(store, lines) == ImportReport(same=3)
        assert out(store) == lines


def test_import_report_the_larger_number_and_the_later_time_stay(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store:
        assert load(store, lesson(count=5, helped=1, failed=3, ts=50)) == ImportReport(added=1)
        assert load(store, lesson(count=3, helped=2, failed=3, ts=40)) == ImportReport(changed=1)  # 2 > 1 helped
        assert load(store, lesson(count=5, ts=60)) == ImportReport(changed=1)  # 60 > 50
        assert load(store, lesson(count=4), lesson()) == ImportReport(same=1)  # no time is no later time
        (kept,) = store.lessons()
        assert (kept.count, kept.helped, kept.failed, kept.created, kept.seen) == (5, 2, 3, 50.0, 60.0)


def test_import_report_a_shortened_error_keeps_its_shape(tmp_path: Path) -> None:
    # 100 lines of 24 and 26 letters around it: more than 4,000, of which the ends and the message are kept
    with opened(tmp_path / "a.db") as one, opened(tmp_path / "b.db") as other:
        one.record(pattern="NoModule", error_text=LONG, fix_text="pip install pyyaml")
        assert "No module named 'yaml'" in next(one.lessons()).error_text
        lines = out(one)
        assert load_bytes(one, lines) == ImportReport(same=1)
        load_bytes(other, lines)
        assert other.query(YAML)[0].match == "exact"


@pytest.mark.parametrize("indent", [None, 2])
def test_import_report_the_array_of_another_program_is_read(tmp_path: Path, indent: int | None) -> None:
    array = [
        {"pattern": "p", "error": YAML, "fix": "pip install pyyaml", "tool": "Bash", "ts": 1_700_000_000},
        {"pattern": "p", "error": "boom: no such lever", "fix": "", "tool": None, "ts": 5},
        {"pattern": "p", "error": "boom: no such lever", "fix": "pull", "tool": None, "ts": "1970-01-01T00:01:40Z"},
    ]
    data = json.dumps(array, indent=indent).encode()
    with opened(tmp_path / "a.db") as store:
        report = load_bytes(store, data)
        assert (report.added, report.refused) == (2, 1)
        assert [(bad.line, bad.why) for bad in report.refusals] == [(2, "fix_text must not be empty, not ''")]
        assert {kept.seen for kept in store.lessons()} == {1_700_000_000.0, 100.0}


def test_import_report_bad_lines_are_told_and_the_others_kept(tmp_path: Path) -> None:
    data = b"\n".join(
        [
            json.dumps(lesson()).encode(),
            b"",
            b"\xff\xfe\x00",
            b"{",
            b"7",
            b'{"pattern": "p", "error": "e"}',
            json.dumps(lesson(count=0)).encode(),
            json.dumps(lesson(seen="yesterday")).encode(),
            json.dumps(lesson(ts=float("nan"))).encode(),
            json.dumps(lesson(tool=3)).encode(),
            b"[" * 100_000,
            b"9" * 5_000,
            json.dumps(lesson("boom", fix_text="x")).encode(),
        ]
    )
    with opened(tmp_path / "a.db") as store:
        report = load_bytes(store, data)
    assert (report.added, report.refused) == (2, 10)
    found = {bad.line: bad.why for bad in report.refusals}
    assert list(found) == [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert found[3] == "not UTF-8 text"
    assert found[4].startswith("not JSON: ") and found[12].startswith("not JSON: ")
    assert found[5] == "a lesson must be a JSON object, not 7"
    assert found[6] == "fix_text is missing"
    assert found[7].startswith("count must be in [1, ")
    assert found[8] == "seen must be Unix seconds or ISO 8601, not 'yesterday'"
    assert found[9].startswith("ts must be") or found[9].startswith("seen must be")
    assert found[10] == "tool must be a str, not 3"


def test_read_entries_refuses_an_array_that_was_cut_off_or_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    one = json.dumps(lesson())
    assert refusals(f"[{one},\n{one}]".encode()) == []
    ((line, why),) = refusals(f"[{one},".encode())
    assert line == 1 and why.startswith("not JSON: ")
    monkeypatch.setattr(exchange, "MAX_BYTES", 300)
    ((line, why),) = refusals(f"[{one},\n{one},\n{one}]".encode())
    assert line == 1 and "one lesson a line" in why
    ((line, why),) = refusals(f"{one}\n{json.dumps(lesson('x' * 1_000))}\n{one}".encode())
    assert (line, why) == (2, "longer than 300 bytes; nothing after it was read")


def test_many_lessons_go_in_pieces(tmp_path: Path) -> None:
    seen: list[int] = []
    lines = "\n".join(json.dumps(lesson(f"No module named 'module{n}'")) for n in range(600)).encode()
    with opened(tmp_path / "a.db") as store:
        report = import_lessons(store, io.BytesIO(lines), seen.append)
        assert report.added == 600 == store.stats().lessons
        store.query("No module named 'module7'")  # what was used last makes no difference
        errors = [json.loads(line)["error_text"] for line in out(store).splitlines()]
        assert errors == [f"No module named 'module{n}'" for n in range(600)]
    assert seen == [256, 512]  # the rest, 88, is kept at the end


def test_export_lessons_lone_surrogates_and_secrets_do_not_come_in(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    with opened(tmp_path / "a.db") as store:
        load_bytes(store, json.dumps(lesson("bad \ud800 text", fix_text=f"export KEY={key}")).encode())
        (kept,) = store.lessons()
        assert kept.error_text == "bad \ufffd text"
        assert key not in kept.fix_text and key.encode() not in out(store)


@examples(60)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_exchange_nothing_that_is_read_raises(data: bytes) -> None:
    for prefix in (b"", b"[", b"{\n", b'{"pattern": "p", "error": "e", "fix": "f"}\n'):
        for found in read_entries(io.BytesIO(prefix + data)):
            assert isinstance(found, New) or found.line >= 1
