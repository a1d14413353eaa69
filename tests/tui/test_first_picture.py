from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from coherence.tui.filters import Filter
from coherence.tui.first_picture import draw_first, picture
from coherence.views.views import Views
from tui.runs import begun, work, write_store

STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("size", [(80, 24), (30, 5), (200, 50)])
def test_picture_shows_the_agents_and_fits(tmp_path: Path, size: tuple[int, int]) -> None:
    write_store(tmp_path / "runs.db")
    with Views(tmp_path / "runs.db") as views:
        overview = Filter().ask(views)
    drawn = STYLE.sub("", picture("runs.db", overview, *size, overview.lines[0].last_ts, ascii=False))
    lines = drawn.split("\r\n")
    assert all(cell_len(line) <= size[0] for line in lines) and len(lines) < size[1]
    assert "■ R 0.0" in drawn and ("planner" in drawn or size[0] < 40)


def test_picture_hostile_names_control_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(tmp_path / "runs.db", "a\x1b]0;owned\x07\x1b[2J\u202e", "東京\x9b31m", session="\x1b[H") as m:
        work(m, 1)
    with Views(tmp_path / "runs.db") as views:
        overview = Filter().ask(views)
    for ascii in (False, True):
        drawn = picture("\x1b[2Jruns.db", overview, 80, 24, 0.0, ascii=ascii)
        assert not set("\x1b\x07\x9b\u202e") & set(STYLE.sub("", drawn))
        assert drawn.isascii() or not ascii
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*[34]8?;", picture("runs.db", overview, 80, 24, 0.0, ascii=False))


def test_draw_first_nothing_is_made_and_nothing_is_drawn_without_a_store(tmp_path: Path) -> None:
    out = io.StringIO()
    (tmp_path / "empty.db").touch()
    for name in ("none.db", "empty.db"):
        assert draw_first(tmp_path / name, out) is None
    assert out.getvalue() == "" and [each.name for each in tmp_path.iterdir()] == ["empty.db"]
    assert (tmp_path / "empty.db").read_bytes() == b""


def test_draw_first_needs_neither_textual_nor_what_measures() -> None:
    code = "import sys, coherence.tui.first_picture; print([n for n in sys.argv[1:] if n in sys.modules])"
    names = ["textual", "numpy", "onnxruntime", "faiss", "coherence.monitor.monitor", "coherence.policy.regulator"]
    said = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
