"""Pictures of the screens, compared with those that were looked at; one that is missing is made, to be looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from coherence.tui.face import WatchFace
from tui.runs import set_clock, shown, until, watching, write_store

PICTURES = Path(__file__).parent / "pictures"

SCREENS: dict[str, tuple[tuple[int, int], list[str], str, bool]] = {
    "agents": ((80, 24), [], "helped", False),
    "agents-wide": ((160, 36), [], "helped", False),
    "agents-ascii": ((80, 24), [], "helped", True),
    "session": ((120, 40), ["enter"], "found pressure", False),
    "guidance": ((100, 30), ["g"], "1 measured", False),
    "label": ((80, 24), ["l"], "How did coder", False),
    "help": ((80, 50), ["question_mark"], "let a blocked agent go on", False),
}
"""Name: size, keys, text that is there when all is, ASCII only."""


@pytest.mark.parametrize("name", SCREENS)
def test_watch_face_looks_as_it_did(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size, keys, last, ascii = SCREENS[name]
    clock = set_clock(monkeypatch)
    write_store(tmp_path / "runs.db", clock.pass_by)
    clock.pass_by(75)
    face = WatchFace(tmp_path / "runs.db", ascii=ascii)
    drawn: list[str] = []

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        for key in keys:
            await pilot.press(key)
        await until(pilot, lambda: last in shown(face))
        await pilot.pause(0.3)
        drawn.append(face.export_screenshot(title="coherence watch"))

    watching(face, act, size)
    known = PICTURES / f"{name}.svg"
    if not known.exists():
        known.parent.mkdir(exist_ok=True)
        known.write_text(drawn[0], encoding="utf-8")
        pytest.fail(f"{known} was made; look at it, and run this again")
    assert drawn[0] == known.read_text(encoding="utf-8"), f"{name} looks different; remove {known} to make it anew"
