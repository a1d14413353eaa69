"""Traces as plain files: every row is read, or counted among those that are not there."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import plain_files
from coherence.guard.plain_files import Compacted, PlainContent, PlainTraces


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "traces.jsonl"


def filled(path: Path, rows: int, **options: Any) -> PlainTraces:
    traces = PlainTraces(path, **options)
    for row in range(1, rows + 1):
        assert traces.append({"row": row}) == row
    return traces


def numbers(reading: PlainContent) -> list[int]:
    return [row["row"] for row in reading.rows]


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if entry.name.startswith("traces-"))


def damage(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def test_plain_traces_ten_rows_of_77_bytes_in_files_of_100(path: Path) -> None:
    traces = PlainTraces(path, max_bytes=100, keep=2)
    for row in range(10):
        shell = len(b'{"n":1,"trace":{"row":1,"pad":""}}\n')
        traces.append({"row": row, "pad": "x" * (77 - shell)})
    # A file is set aside once it is beyond 100 bytes, that is with 2 rows of 77: 5 files, of which 2 + 1 are kept.
    # The other 4 rows are gone, and that can be read from what is there.
    assert len(path.read_bytes()) == 77 + 78  # the tenth row has a number of two digits
    assert names(path) == ["traces-000000000006.jsonl.gz", "traces-000000000008.jsonl.gz"]
    reading = traces.read()
    assert (numbers(reading), reading.removed, reading.missing) == ([4, 5, 6, 7, 8, 9], 4, 0)


def test_plain_content_nothing_is_gone_within_the_archives_that_are_kept(path: Path) -> None:
    traces = filled(path, 10, max_bytes=1, keep=9)
    assert len(names(path)) == 9
    assert traces.read() == PlainContent([{"row": n} for n in range(1, 11)], removed=0, missing=0, unreadable=0)
    assert numbers(traces.read(3)) == [8, 9, 10]
    assert traces.read(0).rows == []


def test_compacted_compaction_counts_what_it_drops(path: Path) -> None:
    traces = filled(path, 3)
    path.write_bytes(b"no json\n" + path.read_bytes() + b'{"n":4,"tra\n')
    assert traces.compact(1) == Compacted(kept=1, removed=2, unreadable=2)
    assert traces.read() == PlainContent([{"row": 3}], removed=2, missing=0, unreadable=0)
    assert traces.append({"row": 4}) == 4
    assert traces.compact(9) == Compacted(kept=2, removed=0, unreadable=0)
    for newest in (0, -1):
        with pytest.raises(ValueError, match="newest"):
            traces.compact(newest)


def test_compacted_compaction_goes_over_archives_and_removes_them(path: Path) -> None:
    traces = filled(path, 10, max_bytes=1, keep=9)
    assert traces.compact(4) == Compacted(kept=4, removed=6, unreadable=0)
    assert names(path) == []
    assert traces.append({"row": 11}) == 11
    assert traces.read() == PlainContent([{"row": n} for n in (7, 8, 9, 10, 11)], removed=6, missing=0, unreadable=0)


def test_compacted_compaction_of_nothing_changes_nothing(path: Path) -> None:
    traces = PlainTraces(path)
    assert traces.compact(1) == Compacted(0, 0, 0)
    assert traces.read() == PlainContent([], 0, 0, 0)
    path.write_bytes(b"mine\n")
    assert traces.compact(1) == Compacted(0, 0, 0)
    assert path.read_bytes() == b"mine\n"


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_plain_content_a_torn_line_does_not_eat_the_next_row(path: Path, cut: int) -> None:
    traces = filled(path, 3)
    path.write_bytes(path.read_bytes()[:-cut])
    assert (numbers(traces.read()), traces.read().unreadable) == ([1, 2], 1)
    row = 4 if cut == 1 else 3  # with the line break alone gone, row 3 is whole
    assert traces.append({"row": 4}) == row
    whole = [1, 2, 3, 4] if cut == 1 else [1, 2, 4]
    assert traces.read() == PlainContent([{"row": n} for n in whole], removed=0, missing=0, unreadable=int(cut > 1))


def test_plain_content_a_torn_line_at_the_moment_of_rotation(path: Path) -> None:
    traces = filled(path, 2, max_bytes=40)
    with open(path, "ab") as file:
        file.write(b'{"n":3,"trace":{"row":3}}')
    assert traces.append({"row": 4}) == 4
    assert traces.read() == PlainContent([{"row": n} for n in (1, 2, 3, 4)], removed=0, missing=0, unreadable=0)


def test_plain_content_rows_damaged_afterwards_are_missed(path: Path) -> None:
    traces = filled(path, 6, max_bytes=40, keep=9)  # 2 rows a file: 26 * 2 > 40
    assert len(names(path)) == 2
    (path.parent / names(path)[1]).unlink()
    assert traces.read() == PlainContent([{"row": n} for n in (1, 2, 5, 6)], removed=0, missing=2, unreadable=0)
    damage(path, b'"n":5', b'"n";5')
    assert traces.read() == PlainContent([{"row": n} for n in (1, 2, 6)], removed=0, missing=3, unreadable=1)


def test_extend_a_cut_archive_gives_what_is_left_of_it(path: Path) -> None:
    traces = PlainTraces(path, max_bytes=1)
    traces.extend({"row": n, "pad": os.urandom(3000).hex()} for n in range(1, 101))
    traces.append({"row": 101})
    (archive,) = [path.parent / name for name in names(path)]
    archive.write_bytes(archive.read_bytes()[:-50_000])
    reading = traces.read()
    left = numbers(reading)
    assert left == [*range(1, len(left)), 101]
    assert 50 < len(left) < 100
    assert (reading.missing, reading.unreadable) == (101 - len(left), 1)


def test_plain_content_a_full_file_without_a_row_does_not_overwrite_an_archive(path: Path) -> None:
    traces = filled(path, 4, max_bytes=40)
    assert names(path) == ["traces-000000000002.jsonl.gz"]
    path.write_bytes(b"x" * 100)
    assert traces.append({"row": 5}) == 3  # rows 3 and 4 are gone, and their numbers with them
    assert numbers(traces.read()) == [1, 2, 5]
    assert traces.read().unreadable == 1


@pytest.mark.parametrize("step", ["renamed", "packed", "cut while packing"])
def test_plain_content_a_rotation_that_was_cut_off_is_finished_by_the_next(path: Path, step: str) -> None:
    traces = filled(path, 2, max_bytes=40)
    plain = path.with_name("traces-000000000002.jsonl")
    data = path.read_bytes()
    path.rename(plain)
    if step == "packed":
        plain.with_name(f"{plain.name}.gz").write_bytes(gzip.compress(data))
    elif step == "cut while packing":
        plain.with_name(f"{plain.name}.gz.part").write_bytes(gzip.compress(data)[:9])
    assert numbers(traces.read()) == [1, 2]
    for row in (3, 4, 5):
        assert traces.append({"row": row}) == row
    assert names(path) == ["traces-000000000002.jsonl.gz", "traces-000000000004.jsonl.gz"]
    assert traces.read() == PlainContent([{"row": n} for n in range(1, 6)], removed=0, missing=0, unreadable=0)


def test_compact_a_compaction_that_was_cut_off_doubles_no_row(path: Path) -> None:
    traces = filled(path, 6, max_bytes=40)
    archives = {path.with_name(name): path.with_name(name).read_bytes() for name in names(path)}
    assert traces.compact(3).kept == 3
    for archive, data in archives.items():
        archive.write_bytes(data)
    assert traces.append({"row": 7}) == 7
    assert traces.read() == PlainContent([{"row": n} for n in range(1, 8)], removed=0, missing=0, unreadable=0)


def test_plain_content_a_full_file_whose_rows_are_archived_does_not_overwrite_the_archive(path: Path) -> None:
    traces = filled(path, 4, max_bytes=40)
    rows = b"".join(b'{"n":%d,"trace":{"row":%d}}\n' % (n, n) for n in range(1, 5))
    path.with_name("traces-000000000004.jsonl.gz").write_bytes(gzip.compress(rows))
    path.with_name("traces-000000000002.jsonl.gz").unlink()
    assert traces.append({"row": 5}) == 5
    assert numbers(traces.read()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("compacts", [True, False])
def test_compact_readers_see_what_was_there_when_they_began(
    path: Path, monkeypatch: pytest.MonkeyPatch, compacts: bool
) -> None:
    traces = filled(path, 6, max_bytes=100)  # 4 rows of 26 bytes a file
    take = plain_files._Found.observe
    calls: list[int] = []

    def take_later(found: Any, file: Any, size: int | None) -> None:
        if not calls:  # all files are open: what happens now must not be seen
            calls.append(1)
            with monkeypatch.context() as undone:
                undone.setattr(plain_files._Found, "observe", take)
                if compacts:
                    traces.compact(1)
            traces.append({"row": 7})
        take(found, file, size)

    monkeypatch.setattr(plain_files._Found, "observe", take_later)
    assert numbers(traces.read()) == [1, 2, 3, 4, 5, 6]
    assert numbers(traces.read()) == ([6, 7] if compacts else [1, 2, 3, 4, 5, 6, 7])


def test_plain_content_lines_longer_than_a_block_are_found_from_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_files, "_BLOCK", 7)
    traces = filled(path, 12)
    with open(path, "ab") as file:
        file.write(b'{"n":13,"trace":"' + b"x" * 50)
    assert traces.append({"row": 13}) == 13
    assert numbers(traces.read()) == list(range(1, 14))


def test_extend_hostile_rows_are_rows(path: Path) -> None:
    traces = PlainTraces(path)
    key = "sk-ant-api03-" + "Ab3dE5fG7h" * 9
    odd = [None, "line\nbreak\r\u2028", "\ud800\0", object(), {"key": key}, "y" * 1_000_000, 2**70, {"n": 9}]
    assert traces.extend(odd) == 8
    reading = traces.read()
    assert reading.rows[:3] == [None, "line\nbreak\r\u2028", "\ufffd\0"]
    assert reading.rows[3]["unserialisable"] == "object"
    assert reading.rows[7] == {"n": 9}
    assert len(reading.rows) == 8
    assert key.encode() not in path.read_bytes()
    assert path.stat().st_size < 20_000


def test_compact_files_are_the_owners_alone_and_others_are_left_alone(path: Path) -> None:
    traces = filled(path, 2, max_bytes=1, keep=1)
    other = path.with_name("traces-mine.jsonl.gz")
    other.write_bytes(b"mine")
    for row in (3, 4):
        traces.append({"row": row})
    traces.compact(2)
    assert other.read_bytes() == b"mine"
    assert path.stat().st_mode & 0o077 == 0
    assert [json.loads(line) for line in path.read_bytes().splitlines()] == [
        {"n": 3, "trace": {"row": 3}},
        {"n": 4, "trace": {"row": 4}},
    ]


def test_plain_traces_threads_take_turns_and_a_pickled_one_goes_on(path: Path) -> None:
    traces = PlainTraces(path, max_bytes=500, keep=1000, durable=True)

    def work(traces: PlainTraces) -> None:
        for _ in range(30):
            traces.append({"row": 0})

    threads = [threading.Thread(target=work, args=(pickle.loads(pickle.dumps(traces)),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reading = traces.read()
    assert (len(reading.rows), reading.removed, reading.missing, reading.unreadable) == (90, 0, 0, 0)


WORKER = """
import sys
from coherence.guard.plain_files import PlainTraces
path, name, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
traces = PlainTraces(path, max_bytes=2_000, keep=100_000)
for k in range(most):
    n = traces.append({"by": name, "k": k, "pad": "x" * (k * 37 % 400)})
    print(n, k, flush=True)
"""


def start(path: Path, name: str, most: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(path), name, str(most)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def acknowledged(name: str, output: str) -> dict[int, tuple[str, int]]:
    lines = [line.split() for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return {int(n): (name, int(k)) for n, k in lines}


@pytest.mark.slow
def test_plain_traces_processes_lose_nothing(path: Path) -> None:
    workers = {name: start(path, name, 150) for name in "abc"}
    acks: dict[int, tuple[str, int]] = {}
    for name, worker in workers.items():
        acks |= acknowledged(name, worker.communicate(timeout=120)[0])
    reading = PlainTraces(path).read()
    assert [(row["by"], row["k"]) for row in reading.rows] == [acks[n] for n in range(1, 451)]
    assert (reading.removed, reading.missing, reading.unreadable) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="no SIGKILL here")
def test_plain_traces_20_sudden_ends_lose_no_acknowledged_row(path: Path) -> None:
    acks: dict[int, tuple[str, int]] = {}
    for end in range(10):
        workers = [start(path, f"{end}{side}", 100_000) for side in "ab"]
        told = ["", ""]
        for side, worker in enumerate(workers):
            assert worker.stdout is not None
            told[side] = "".join(worker.stdout.readline() for _ in range(1 + end * 7))
        for side, worker in enumerate(workers):
            assert worker.stdout is not None
            worker.kill()
            with worker.stdout as rest:
                acks |= acknowledged(f"{end}{'ab'[side]}", told[side] + rest.read())
            assert worker.wait(60) == -signal.SIGKILL
    assert len(acks) >= 2 * sum(1 + end * 7 for end in range(10))
    reading = PlainTraces(path).read()
    rows = {n: (row["by"], row["k"]) for n, row in enumerate(reading.rows, 1)}
    assert (reading.removed, reading.missing) == (0, 0)  # so the n-th is number n
    assert all(rows[n] == told for n, told in acks.items())
    assert len(set(rows.values())) == len(rows)
    assert names(path)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"max_bytes": 0}, ValueError), ({"keep": 0}, ValueError), ({"keep": True}, TypeError),
     ({"max_bytes": 1.5}, TypeError), ({"path": "traces.txt"}, ValueError)],
)  # fmt: skip
def test_plain_traces_bad_parameters_are_refused(
    tmp_path: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    given = {"path": "traces.jsonl", **options}
    with pytest.raises(error, match=next(iter(options))):
        PlainTraces(tmp_path / given.pop("path"), **given)


def test_plain_traces_what_cannot_be_written_raises_and_what_is_negative_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        PlainTraces(tmp_path / "file" / "traces.jsonl").append(1)
    with pytest.raises(ValueError, match="newest"):
        PlainTraces(tmp_path / "traces.jsonl").read(-1)


FULL_DISK = """
import resource, sys
from coherence.guard.plain_files import PlainTraces
traces = PlainTraces(sys.argv[1])
traces.append({"row": 1})
resource.setrlimit(resource.RLIMIT_FSIZE, (60, resource.RLIM_INFINITY))
try:
    traces.append({"row": 2, "pad": "x" * 100})
except OSError:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    print(PlainTraces(sys.argv[1]).path.stat().st_size, traces.append({"row": 3}))
"""


@pytest.mark.skipif(os.name != "posix", reason="no such limit here")
def test_plain_content_a_write_that_stops_half_way_raises_and_leaves_nothing(path: Path) -> None:
    told = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, check=True, timeout=60)
    size = len(b'{"n":1,"trace":{"row":1}}\n')
    assert told.stdout.split() == [b"%d" % size, b"2"]  # the number goes to the next row
    assert PlainTraces(path).read() == PlainContent([{"row": 1}, {"row": 3}], removed=0, missing=0, unreadable=0)
