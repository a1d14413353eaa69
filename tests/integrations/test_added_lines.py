"""Lines that a client adds to a file of its own, each read once."""

from __future__ import annotations

from pathlib import Path

from coherence.integrations.added_lines import AddedLines


def test_added_lines_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    lines = AddedLines(path)
    path.write_bytes(b"one\ntw")
    assert lines.read() == [b"one"]
    assert lines.read() == []
    path.write_bytes(b"one\ntwo\n")
    assert lines.read() == [b"two"]
    assert AddedLines(tmp_path).read() == []  # a folder


def test_added_lines_beyond_what_is_read_at_once_come_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nthree\n")
    lines = AddedLines(path, max_read=8)
    assert lines.read() == [b"one", b"two"]
    with path.open("ab") as file:
        file.write(b"four\n")
    assert lines.read() == [b"three"]
    assert lines.read() == [b"four"]


def test_added_lines_far_behind_the_oldest_are_left_out_and_the_rest_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nthree\nfour\n")
    lines = AddedLines(path, max_read=8, max_behind=13)
    # Of 19 bytes 6 are left out, up to the "o" of "two", whose line goes too.
    assert (lines.read(), lines.left_out, lines.at_end) == ([b"three"], 6, False)
    assert (lines.read(), lines.left_out, lines.at_end) == ([b"four"], 6, True)


def test_added_lines_a_line_of_more_than_is_read_at_once_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\nseventeen bytes!!\ntwo\n")
    lines = AddedLines(path, max_read=8, max_behind=100)
    found = []
    while not lines.at_end:
        found += lines.read()
    assert (found, lines.left_out) == ([b"one", b"two"], 0)
