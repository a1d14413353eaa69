from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

from coherence.core.errors import TranscriptError
from coherence.providers.readers import read_transcripts, source

REAL = Path(__file__).parents[2] / "data" / "dumps" / "inspect.eval"
SAMPLE = json.dumps({"id": "a", "epoch": 1, "messages": [{"role": "user", "content": "hi"}]})
HEADER = json.dumps({"version": 2, "status": "started", "eval": {"task": "t"}})


def pack(folder: Path, **members: str) -> Path:
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(TranscriptError) as caught:
        read_transcripts(path)
    return caught.value.reason


@pytest.mark.parametrize("header", ["header.json", "_journal/start.json"])
def test_read_eval_a_finished_or_a_running_log_is_read(tmp_path: Path, header: str) -> None:
    path = pack(tmp_path, **{header: HEADER, "samples/a_epoch_1.json": SAMPLE, "summaries.json": "[]"})
    assert [run.id for run in read_transcripts(path)] == ["t/a/1"]


def test_read_eval_without_zstd_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("zipfile knows zstd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert refusal(REAL).startswith("packed with zstd: pip install zstandard, or write it as JSON")


def test_read_eval_another_archive_and_damaged_ones_are_errors(tmp_path: Path) -> None:
    assert refusal(pack(tmp_path, **{"a.txt": "x"})).startswith("a zip archive without header.json")
    assert refusal(pack(tmp_path, **{"header.json": "{"})).startswith("header.json in the archive is not JSON")
    assert "nested too deep" in refusal(pack(tmp_path, **{"header.json": "[" * 200_000}))
    path = tmp_path / "cut.eval"
    path.write_bytes(REAL.read_bytes()[:-40])
    assert refusal(path).startswith("damaged zip archive")


def test_read_eval_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "ALWAYS_BYTES", 1000)
    path = pack(tmp_path, **{"header.json": HEADER, "samples/a_epoch_1.json": " " * 5_000_000})
    assert path.stat().st_size * source.MAX_RATIO < 5_000_000
    assert refusal(path) == "unpacks to more bytes than allowed"
