"""Outputs of a command destroy neither its inputs, nor a store, nor each other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coherence import Monitor
from coherence.cli.main import main
from coherence.lessons import LessonStore

RUN = {
    "id": "oslo",
    "goal": "Book a flight to Oslo",
    "labels": {"success": True},
    "steps": [{"role": "user", "content": "Book a flight"}, {"role": "assistant", "content": "Booked"}],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(RUN) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "kept.db"
    with Monitor(store=path, embedder=False) as m:
        m.message("user", "hello")
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def refused(result: Result, *words: str) -> bool:
    """Tell whether a command refused with these words; the message is wrapped, so white space does not count."""
    said = "".join(result.stderr.split())
    return result.exit_code == 2 and all("".join(word.split()) in said for word in words)


@pytest.mark.parametrize("option", ["--html", "--jsonl", "--step-scores"])
def test_outputs_no_output_of_score_replaces_its_input(data: Path, option: str) -> None:
    before = data.read_bytes()
    assert refused(call("score", data, option, data), f"{option} {data} would write over the input {data}")
    assert data.read_bytes() == before


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_outputs_a_link_is_what_it_points_at(data: Path, tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    other = tmp_path / "other.html"
    link(data, other)
    assert refused(call("score", data, "--html", other), "would write over the input")
    assert refused(call("score", other, "--html", tmp_path / "x" / ".." / data.name), "would write over the input")


def test_outputs_no_output_replaces_a_store_or_what_belongs_to_it(data: Path, kept: Path, tmp_path: Path) -> None:
    before = kept.read_bytes()
    for output in (kept, f"{kept}-wal"):
        for command in (("score", data, "--jsonl"), ("demo", "--html"), ("eval", data, "--html")):
            assert refused(call(*command, output), "would write over a SQLite store"), command
    assert kept.read_bytes() == before
    new = tmp_path / "new.db"
    assert refused(call("score", data, "--store", new, "--html", new), "are one file")
    assert refused(call("score", data, "--store", data), "which is read")
    assert not new.exists()


def test_two_outputs_have_two_files(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "to").symlink_to(tmp_path)
    assert refused(call("score", data, "--html", out, "--jsonl", tmp_path / "to" / "out"), "--html", "--jsonl")
    assert not out.exists()


def test_outputs_eval_does_not_replace_its_data_scores_or_settings(data: Path, tmp_path: Path) -> None:
    scores, settings = tmp_path / "scores.jsonl", tmp_path / "settings.toml"
    scores.write_text('{"id": "oslo", "score": 1}\n')
    settings.write_text("window = 5\n")
    for output in (data, scores, settings):
        before = output.read_bytes()
        result = call("eval", data, "--scores", scores, "--config", settings, "--html", output)
        assert refused(result, f"--html {output} would write over the input")
        assert output.read_bytes() == before


def test_outputs_lessons_and_the_audit_trail_do_not_replace_a_store(kept: Path, tmp_path: Path) -> None:
    with LessonStore(tmp_path / "lessons.db") as lessons:
        lessons.record(pattern="p", error_text="boom", fix_text="calm", tool="Bash")
    for output in (kept, tmp_path / "lessons.db"):
        before = output.read_bytes()
        assert refused(call("lessons", "export", output, "--store", tmp_path / "lessons.db"), str(output))
        assert output.read_bytes() == before
    trail = tmp_path / "audit.jsonl"
    kept.rename(trail)
    assert refused(call("audit", "export", trail, tmp_path), "are one file")


def test_outputs_any_other_file_is_written_over(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("old")
    result = call("score", "--embedder", "hashing", data, "--html", out, "--jsonl", tmp_path / "lines.jsonl")
    assert result.exit_code == 0, result.output
    assert "oslo" in out.read_text()


def test_outputs_neither_a_pipe_nor_a_link_is_written_to(data: Path, tmp_path: Path) -> None:
    pipe, link, aim = tmp_path / "pipe", tmp_path / "link", tmp_path / "aim"
    os.mkfifo(pipe)
    link.symlink_to(aim)
    for output, why in ((pipe, "this is a pipe"), (link, f"a symbolic link, and none is written through; name {aim}")):
        result = call("score", "--embedder", "hashing", data, "--step-scores", output)
        assert result.exit_code != 0
        assert why in result.output
    assert pipe.is_fifo() and link.is_symlink() and not aim.exists()
