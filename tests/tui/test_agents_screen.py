"""The screen of agents while they come and get worse."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from coherence.tui.agents_screen import AgentsScreen
from coherence.tui.face import WatchFace
from tui.runs import begun, fail, shown, until, watching, work


def test_agents_screen_the_cursor_stays_on_the_worst_session_until_somebody_moves_it(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with begun(store, "planner", "Make the login work.") as m:
        work(m, 3)
    face = WatchFace(store)

    def chosen() -> object:
        assert isinstance(face.screen, AgentsScreen)
        return face.screen.chosen

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: chosen() == ("planner", "s1"))
        with begun(store, "coder", "Fix the login test.") as m:
            fail(m, 5)
            m.flush()
            await until(pilot, lambda: chosen() == ("coder", "s1") and "─ coder · s1" in shown(face))
        await pilot.press("down")
        await until(pilot, lambda: chosen() == ("planner", "s1"))
        with begun(store, "tester", "Run the tests.") as m:
            fail(m, 9)
            m.flush()
            await until(pilot, lambda: "tester" in shown(face))
        assert chosen() == ("planner", "s1")

    watching(face, act)
