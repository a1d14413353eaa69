"""The program as somebody uses it: by keys and by mouse, on a store that real monitors have written."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from coherence.monitor.monitor import Monitor
from coherence.store.runs import session_label
from coherence.store.store import Store
from coherence.store.told import all_refusals, block_end, firing_labels
from coherence.tui.agents_screen import AgentsScreen
from coherence.tui.face import WatchFace
from coherence.tui.guidance_screen import GuidanceScreen
from coherence.tui.line_view import LineView, RowList
from coherence.tui.session_screen import Course, SessionScreen
from tui.runs import begun, fail, shown, until, watching, work, write_store


def agents_of(face: WatchFace) -> AgentsScreen:
    assert isinstance(face.screen, AgentsScreen)
    return face.screen


def session_of(face: WatchFace) -> SessionScreen:
    assert isinstance(face.screen, SessionScreen)
    return face.screen


def column(face: WatchFace) -> int:
    chart = session_of(face)._chart
    assert chart is not None and chart.column is not None
    return chart.column


def course(face: WatchFace) -> Course:
    found = session_of(face).course
    assert found is not None
    return found


def step(face: WatchFace) -> int:
    found = course(face).step
    assert found is not None
    return found.step


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("written") / "runs.db"
    write_store(path)
    with Store(path) as store:
        store.fetch("PRAGMA wal_checkpoint")
    return path.read_bytes()


@pytest.fixture
def store(written: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    path.write_bytes(written)
    return path


def test_watch_face_the_first_screen_tells_who_is_in_trouble_why_what_it_was_told_and_whether_that_helped(
    store: Path,
) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        lines = shown(face).splitlines()
        assert "1 red" in lines[0] and "2 green" in lines[0]
        coder = next(line for line in lines if "└ coder" in line)
        assert coder.startswith("■ R 0.0") and " 14 " in coder
        # the tree: coder and researcher below planner, coder before its calm sister
        rows = [line[9:30].replace("└", "").split() for line in lines[2:7]]
        order = [row[0] for row in rows if row and row[0] in ("planner", "coder", "researcher")]
        assert order == ["planner", "coder", "researcher"]
        # the cursor stands on the worst one, and the card tells the rest
        assert agents_of(face).chosen == ("coder", "s1")
        card = shown(face).partition("─ coder · s1")[2]
        assert "block: pressure" in card and "8 errors in a row" in card
        assert "told" in card and "Bash returned the same error" in card
        assert "no better after it: pressure" in card
        assert "refused" in card and "u lets it go on" in card and "none yet (l sets it)" in card
        assert "q quit" in lines[-1] and "? help" in lines[-1]

    watching(face, act)


def test_watch_face_a_session_is_labelled_in_three_keys(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("l")
        await until(pilot, lambda: "How did coder · s1 do?" in shown(face))
        await pilot.press("b")
        await until(pilot, lambda: "labelled bad: coder · s1" in shown(face))
        await until(pilot, lambda: "label    bad" in shown(face))
        with Store(store) as kept:
            assert session_label(kept, "coder", "s1") is False
            assert session_label(kept, "planner", "s1") is None
        await pilot.press("l", "n")
        await until(pilot, lambda: "none yet" in shown(face))
        with Store(store) as kept:
            assert session_label(kept, "coder", "s1") is None

    watching(face, act)


def test_watch_face_a_label_may_have_a_comment(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("l", "B")
        await until(pilot, lambda: "Why is coder · s1 bad?" in shown(face))
        await pilot.press(*"loops")
        await until(pilot, lambda: "│ loops  " in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: "labelled bad: coder" in shown(face))
        await until(pilot, lambda: "label    bad: loops" in shown(face))

    watching(face, act)
    with Store(store) as kept:
        said = kept.fetch("SELECT data FROM events WHERE kind = 'feedback' ORDER BY id DESC LIMIT 1")[0][0]
    assert '"labelled bad: loops"' in said


def test_watch_face_a_blocked_agent_is_let_go_on(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("u")
        await until(pilot, lambda: "Let coder · s1 go on?" in shown(face))
        await until(pilot, lambda: "refused all calls" in shown(face))
        assert "pressure 0.76: 8 errors in a row" in shown(face)
        await pilot.press("enter")  # without a reason
        await until(pilot, lambda: "A reason is needed" in shown(face))
        await pilot.press(*"seen", "enter")
        await until(pilot, lambda: "may go on: coder · s1" in shown(face))
        await until(pilot, lambda: "u lets it go on" not in shown(face))
        await pilot.press("u")
        await until(pilot, lambda: "nothing of coder · s1 is refused now" in shown(face))
        await pilot.press("up", "u")
        await until(pilot, lambda: "nothing of planner · s1 is refused now" in shown(face))
        assert isinstance(face.screen, AgentsScreen)

    watching(face, act)
    with Store(store) as kept:
        end = block_end(kept, all_refusals(kept)[0], stands=True)
    assert end is not None and end.text == "seen"


def test_watch_face_a_muted_session_goes_down_and_does_not_count(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("m")
        await until(pilot, lambda: "muted in this window" in shown(face))
        assert face.muted == {("coder", "s1")}
        agents_of(face)._said_at -= 60  # the remark has been there for a minute
        agents_of(face).draw()
        await until(pilot, lambda: "1 red" not in shown(face))
        # one goes on to the next session, which keys now act on
        assert agents_of(face).chosen == ("researcher", "s1") and "─ researcher · s1" in shown(face)
        assert "2 green" in shown(face) and "block: pressure" not in shown(face)
        await pilot.press("up", "m")
        await until(pilot, lambda: not face.muted)
        assert "heard again: coder · s1" in shown(face)

    watching(face, act)


def test_watch_face_keys_act_on_no_row_that_is_out_of_view(tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    for number in range(12):
        with begun(path, f"agent{number:02}", session="s") as m:
            work(m, 1 + number % 3)
    face = WatchFace(path)

    def in_view() -> bool:
        """Tell whether the chosen session is in the list, and on the card."""
        chosen = agents_of(face).chosen
        assert chosen is not None
        rows, _, card = shown(face).partition("─ agent")
        return f" {chosen[0]} ·" in rows and card.startswith(chosen[0].removeprefix("agent"))

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "12 green" in shown(face) and in_view())
        await pilot.press("end")
        await until(pilot, in_view)
        await pilot.press("m", "m", "m")
        await until(pilot, lambda: len(face.muted) == 3 and in_view())
        for _ in range(5):
            await pilot.press("end", "s")
            await until(pilot, lambda: not agents_of(face)._turned and in_view())
        await pilot.press("home", "slash", *"agent11", "enter")
        await until(pilot, lambda: agents_of(face).chosen == ("agent11", "s") and in_view())
        await pilot.press("escape")
        await until(pilot, lambda: "12 sessions" in shown(face) and in_view())
        agents = face.screen.query_one("#agents", RowList)
        for y in (0, 100):  # by the wheel or the bar
            agents.scroll_to(y=y, animate=False, force=True)
            await until(pilot, in_view)

    watching(face, act)


def test_watch_face_filter_search_and_sort(store: Path) -> None:
    face = WatchFace(store)

    def agents() -> list[object]:
        return [key[0] for key in face.screen.query_one("#agents", RowList)._keys if isinstance(key, tuple)]

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: agents() == ["planner", "coder", "researcher"])
        await pilot.press("f", "r")
        await until(pilot, lambda: agents() == ["coder"])
        assert "only red" in shown(face)
        await pilot.press("escape")
        await until(pilot, lambda: len(agents()) == 3)
        await pilot.press("slash")
        await until(pilot, lambda: "Search all sessions" in shown(face))
        await pilot.press(*"ImportError")
        await until(pilot, lambda: "│ ImportError  " in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: agents() == ["coder"])
        await pilot.press("slash")
        await until(pilot, lambda: face.screen.query(Input))
        face.screen.query_one(Input).value = "no such words"
        await pilot.press("enter")
        await until(pilot, lambda: "No session fits “no such words”" in shown(face))
        assert "esc shows all again" in shown(face)
        await pilot.press("escape", "s")
        await until(pilot, lambda: "newest first" in shown(face) and len(agents()) == 3)
        await pilot.press("s")
        await until(pilot, lambda: "cost first" in shown(face))
        await pilot.press("home", "space")
        await until(pilot, lambda: agents() == ["planner"])
        assert "folded: 2 below, the worst ■ R" in shown(face)

    watching(face, act)


def test_watch_face_a_session_is_walked_through_by_keys(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: "found pressure" in shown(face))
        assert "step 14" in shown(face) and "▲14" in shown(face)
        text = shown(face)
        assert "index  1│" in text and "pressure│" in text and "R R R" in text.replace("R  ", "R ")
        # to the first step: a call and its result
        await pilot.press("home")
        await until(pilot, lambda: "step 1 " in shown(face) and "▲1" in shown(face))
        await until(pilot, lambda: "src/login/part_0.py" in shown(face))
        await pilot.press("full_stop")
        await until(pilot, lambda: "step 2 " in shown(face))
        await pilot.press("comma")
        await until(pilot, lambda: "step 1 " in shown(face))
        # each key goes to another column, though a step may hold several
        before = column(face)
        await pilot.press("right")
        await until(pilot, lambda: column(face) == before + 1)
        # marks: the hints
        await pilot.press("end")
        await until(pilot, lambda: "step 14" in shown(face))
        await pilot.press("N")
        await until(pilot, lambda: session_of(face).seq is not None and step(face) < 14)
        await pilot.press("plus")
        await until(pilot, lambda: course(face).timeline.first > 1)
        await pilot.press("minus")
        await until(pilot, lambda: course(face).timeline.first == 1)
        await pilot.press("escape")
        assert isinstance(face.screen, AgentsScreen)

    watching(face, act)


def test_watch_face_a_text_is_searched_in_a_session(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: "found pressure" in shown(face))
        await pilot.press("slash", *"table 2", "enter")
        # the third message of the coder's work, its sixth step
        await until(pilot, lambda: "hit 1 of 1" in shown(face) and "step 6 of 14" in shown(face))
        await pilot.press("slash", "backspace", *"9x", "enter")
        await until(pilot, lambda: "no event holds" in shown(face))

    watching(face, act)


def test_watch_face_a_search_opens_a_session_at_its_hit_and_goes_round_the_hits(store: Path) -> None:
    face = WatchFace(store)

    def hit() -> int | None:
        return session_of(face).seq

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("slash", *"ImportError", "enter")
        await until(pilot, lambda: "only “ImportError”" in shown(face).splitlines()[0])
        await pilot.press("enter")
        await until(pilot, lambda: "hit 1 of 8" in shown(face) and "ImportError: no module" in shown(face))
        first, hits = hit(), session_of(face)._hits
        assert first == hits[0]
        await pilot.press("N")
        await until(pilot, lambda: hit() == hits[-1] and "hit 8 of 8" in shown(face))
        assert "on from the last hit" in shown(face)
        await pilot.press("n")
        await until(pilot, lambda: hit() == first)
        await pilot.press("n")
        await until(pilot, lambda: hit() == hits[1])
        # where only a name holds the text, n and N go through the marks
        await pilot.press("escape", "escape", "slash")
        await until(pilot, lambda: face.screen.query(Input))
        face.screen.query_one(Input).value = "coder"
        await pilot.press("enter")
        await until(pilot, lambda: "only “coder”" in shown(face).splitlines()[0])
        await pilot.press("enter")
        await until(pilot, lambda: "found pressure" in shown(face) and not session_of(face)._text)
        await pilot.press("N")
        await until(pilot, lambda: hit() in {mark.seq for mark in course(face).timeline.marks})

    watching(face, act)


def test_watch_face_home_and_single_steps_go_beyond_the_part_on_the_chart(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: "found pressure" in shown(face) and " step 14  $" in shown(face).splitlines()[0])
        await pilot.press("plus")
        await until(pilot, lambda: course(face).timeline.first > 1)
        begin = course(face).timeline.points[0].step
        for at in range(13, begin - 2, -1):
            await pilot.press("comma")
            await until(pilot, lambda at=at: step(face) == at)  # type: ignore[misc]
        # the chart went with it, and the title says where one is
        await until(pilot, lambda: course(face).timeline.points[0].step < begin)
        await until(pilot, lambda: f"step {begin - 1} of 14" in shown(face).splitlines()[0])
        assert f"▲{begin - 1} " in shown(face)
        await pilot.press("home")
        await until(pilot, lambda: step(face) == 1 and course(face).timeline.first == 1)
        assert "step 1 of 14" in shown(face).splitlines()[0]

    watching(face, act)


def test_watch_face_the_whole_reason_is_shown_on_demand_and_on_a_tall_terminal(store: Path) -> None:
    face = WatchFace(store)

    def reason() -> str:
        return " ".join(shown(face).partition(" goal ")[0].split())

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: "found pressure" in shown(face))
        assert "error_rate 0.80" not in reason() and "…" in reason()
        await pilot.press("w")
        await until(pilot, lambda: "error_rate 0.80" in reason() and "repetition" in reason())
        await pilot.press("w")
        await until(pilot, lambda: "error_rate 0.80" not in reason())
        await pilot.resize_terminal(80, 40)
        await until(pilot, lambda: "error_rate 0.80" in reason() and "repetition" in reason())

    watching(face, act)


def test_watch_face_the_first_line_keeps_order_filter_and_remarks(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("s", "f", "p")
        await until(pilot, lambda: "newest first" in shown(face).splitlines()[0])
        await until(pilot, lambda: "only open" in shown(face).splitlines()[0])
        await until(pilot, lambda: "researcher" not in shown(face))  # it has succeeded
        await pilot.press("f", "s")
        await until(pilot, lambda: "✓" in shown(face) and "only succeeded" in shown(face).splitlines()[0])
        await pilot.press("l", "g")
        await until(pilot, lambda: "labelled good: resear" in shown(face).splitlines()[0])

    watching(face, act, (72, 24))


def test_watch_face_guidance_of_a_session_is_labelled_and_leads_to_its_step(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: "found pressure" in shown(face))
        await pilot.press("g")
        await until(pilot, lambda: "refused" in shown(face) and face.screen.query_one("#told").has_focus)
        await pilot.press("end")  # the first hint
        await pilot.press("l", "g")
        await until(pilot, lambda: "labelled good: bash_retry" in shown(face))
        await until(pilot, lambda: "[good]" in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: " guidance " in shown(face))

    watching(face, act)
    with Store(store) as kept:
        assert list(firing_labels(kept, ["coder"]).values()) == [True]


def test_watch_face_guidance_of_all_agents(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("g")
        await until(pilot, lambda: isinstance(face.screen, GuidanceScreen) and "coder · s1" in shown(face))
        assert "better after 0 of 1 measured" in shown(face)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(face.screen, SessionScreen) and " guidance " in shown(face))
        await pilot.press("escape", "escape")
        assert isinstance(face.screen, AgentsScreen)

    watching(face, act)


def test_watch_face_by_mouse(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        row = next(at for at, line in enumerate(shown(face).splitlines()) if "researcher" in line)
        await pilot.click(offset=(12, row))
        await until(pilot, lambda: agents_of(face).chosen == ("researcher", "s1"))
        await pilot.click(offset=(12, row))
        await until(pilot, lambda: isinstance(face.screen, SessionScreen) and "index  1│" in shown(face))
        await pilot.click("#chart", offset=(9, 1))  # the first column
        await until(pilot, lambda: "step 1 " in shown(face))
        help_line = shown(face).splitlines()[-1]
        await pilot.click(offset=(help_line.index("esc") + 1, 23))
        await until(pilot, lambda: isinstance(face.screen, AgentsScreen))

    watching(face, act)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (120, 40), (200, 60)])
def test_watch_face_any_size_has_the_lights_and_one_line_of_help(store: Path, size: tuple[int, int]) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "■ R 0.0" in shown(face))
        last = shown(face).splitlines()[-1]
        assert "? help" in last and "q quit" in last
        await pilot.press("enter")
        await until(pilot, lambda: "index  1│" in shown(face))
        assert "? help" in shown(face).splitlines()[-1] and "esc back" in shown(face).splitlines()[-1]
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: len(shown(face).splitlines()) == 24 and "esc back" in shown(face))
        await pilot.press("escape", "question_mark")
        await until(pilot, lambda: "let a blocked agent go on" in shown(face))
        await pilot.press("escape")

    watching(face, act, size)


def test_watch_face_an_event_is_seen_at_once(store: Path) -> None:
    """From the end of ``decide`` until the screen shows it: half a second, and as much for a busy machine."""
    face = WatchFace(store)
    took: list[float] = []

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        with begun(store, "newcomer", "Write.", session="s2") as m:
            for step in range(1, 6):
                await asyncio.to_thread(work, m, 1)
                at = time.monotonic()
                row = f"{2 * step}"  # two steps each time

                def seen(row: str = row) -> bool:
                    lines = [line for line in shown(face).splitlines() if "newcomer · s2" in line[:40]]
                    return bool(lines) and f" {row} " in lines[0][40:]

                await until(pilot, seen)
                took.append(time.monotonic() - at)

    watching(face, act)
    assert min(took) <= 1.0, took


def test_watch_face_an_open_session_follows_and_tells_of_trouble_elsewhere(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        with begun(store, "planner") as m:
            await pilot.press("up", "enter")
            await until(pilot, lambda: "step 12 " in shown(face))
            await asyncio.to_thread(work, m, 1)
            await until(pilot, lambda: "step 14 " in shown(face))
            # what is looked at stays, until one follows again
            await pilot.press("home")
            await until(pilot, lambda: "step 1 " in shown(face))
            await asyncio.to_thread(work, m, 1)
            await until(pilot, lambda: course(face).timeline.points[-1].step == 16)
            assert "step 1 " in shown(face)
            await pilot.press("end")
            await until(pilot, lambda: "step 16 " in shown(face))
            await pilot.press("escape")
            await asyncio.to_thread(fail, m, 9)
            await until(pilot, lambda: "turned red: planner" in shown(face))

    watching(face, act)


def test_watch_face_without_a_store_it_says_what_to_do_and_waits(tmp_path: Path) -> None:
    path = tmp_path / "later.db"
    face = WatchFace(path)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "There is no store yet at" in shown(face))
        assert "coherence init" in shown(face) and not path.exists()
        await pilot.press("l", "u", "m", "enter", "space", "s")  # nothing to do it with
        with Store(path):
            pass
        await until(pilot, lambda: "This store holds no session yet." in shown(face))
        await asyncio.to_thread(write_store, path)
        await until(pilot, lambda: "1 red" in shown(face))
        path.unlink()
        await until(pilot, lambda: "There is no store yet at" in shown(face))

    watching(face, act)


def test_watch_face_what_is_no_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, " * 20)
    face = WatchFace(path)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "not a store of this package" in shown(face).replace("\n", " "))

    watching(face, act)
    assert path.read_text().startswith("not a database")


def test_watch_face_quits(store: Path) -> None:
    face = WatchFace(store)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "helped" in shown(face))
        await pilot.press("q")

    watching(face, act)
    assert face.return_code == 0
    assert not face.reader._thread.is_alive()


def test_watch_face_whole_texts_are_shown_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    with Monitor(agent="reader", session="1", store=path, embedder=False) as m:
        m.message("assistant", "word " * 4_000 + "end of the text")
        m.decide()
    face = WatchFace(path)

    async def act(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "reader" in shown(face))
        await pilot.press("enter")
        await until(pilot, lambda: "what happened" in shown(face))
        step = face.screen.query_one("#step", LineView)

        def text() -> str:
            return "\n".join("".join(part for part, _ in line) for line in step._lines)

        # 20,000 characters are read, 6,000 are shown
        assert "14,000 more characters" in text() and "end of the text" not in text()
        await pilot.press("w")
        await until(pilot, lambda: "more characters" not in text())

    watching(face, act)
