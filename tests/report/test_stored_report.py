"""The page of a store: what was measured is shown, not measured again; worst first, and bounded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import coherence.report.runs as runs_module
from coherence import Monitor, Store
from coherence.cli.main import main
from coherence.core.errors import TranscriptError
from coherence.core.events import ToolResult, decode_event
from coherence.providers import HashingEmbedder
from coherence.report.html import MAX_STEP, render_html
from coherence.report.live import scored_monitor
from coherence.report.recorded import scored_session
from coherence.report.runs import Runs, read_runs

EVIL = "<script>alert(1)</script>"


def work(m: Monitor, count: int = 4, *, failing: bool = False) -> None:
    m.message("user", "Make the tests pass.")
    for at in range(count):
        m.message("assistant", f"I read part {at} of the plan.")
        call = m.tool_call("Bash", {"command": "pytest" if failing else f"cat part{at}.md"})
        m.tool_result("ImportError: no module named x" if failing else f"part {at}: done", error=failing, call=call)
    m.decide()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    with Monitor(store=path, agent="calm", goal="Read the plan.", embedder=False) as m:
        work(m, 2)
    with Monitor(store=path, agent="stuck", goal="Fix the login.", embedder=False) as m:
        work(m, 6, failing=True)
    with Monitor(store=path, agent="refused", goal="Clean up.", embedder=False) as m:
        work(m, 1)
        assert m.check("Bash", {"command": "rm -rf /"}) == "block"
    with Monitor(store=path, agent="idle", embedder=False):
        pass
    return path


def report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def names(page: str) -> list[str]:
    return [
        re.sub("<wbr>", "", found) for found in re.findall(r'<td role="cell" data-name="run"><a [^>]*>(.*?)</a>', page)
    ]


def test_scored_session_is_what_the_live_monitor_shows(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", goal="Read the plan.", embedder=HashingEmbedder(32)) as m:
        work(m, 5, failing=True)
        m.check("Bash", {"command": "rm -rf /"})
        live = scored_monitor(m)
    assert live is not None
    with Store(tmp_path / "s.db") as store:
        (row,) = store.sessions()
        stored = scored_session(store, row)
    assert stored is not None
    for field in ("readings", "appraisals", "decisions", "inverted", "first_events", "context_steps"):
        assert getattr(stored, field) == getattr(live, field), field
    assert [step.text() for step in stored.transcript.steps] == [step.text() for step in live.transcript.steps]


def test_scored_session_measures_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from coherence.providers.minilm import MiniLMEmbedder
    from coherence.sensor.sensor import CoherenceSensor

    def fails(*_: object, **__: object) -> None:
        raise AssertionError("something was measured")

    monkeypatch.setattr(MiniLMEmbedder, "embed", fails)
    monkeypatch.setattr(CoherenceSensor, "measure_sync", fails)
    monkeypatch.setattr(CoherenceSensor, "__init__", fails)
    before = store.read_bytes()
    assert len(read_runs(store)) == 3
    assert store.read_bytes() == before


def test_scored_session_of_a_session_without_texts_has_its_lights_alone(tmp_path: Path) -> None:
    with Monitor(
        store=tmp_path / "s.db", agent="a", goal="Find the treasure.", embedder=False, config={"privacy": "no-text"}
    ) as m:
        for _ in range(6):
            m.tool_result("no such island", error=True, call=m.tool_call("Sail", {"to": "Tortuga"}))
        m.decide()
        bands = [str(reading.band) for reading in m.history()]
    (run,) = read_runs(tmp_path / "s.db")
    page = render_html([run])
    assert str(run.worst_band) in bands and run.worst_band != "green"
    assert not [
        word for word in ("treasure", "island", "Tortuga", "Sail", "#") if word in run.transcript.steps[0].text()
    ]
    assert not [word for word in ("treasure", "island", "Tortuga") if word in page]
    assert "(14 characters, not recorded)" in page  # "no such island"


def test_scored_session_a_long_one_shows_its_newest_events_and_says_so(store: Path) -> None:
    with Store(store) as kept:
        row = kept.session("stuck")
        assert row is not None
        last = kept.last_seq(row.id)
        run = scored_session(kept, row, events=12)
        whole = scored_session(kept, row, events=last)
    assert run is not None and whole is not None
    assert run.transcript.goal == "Fix the login." == whole.transcript.goal
    assert len(run.readings) < len(whole.readings) and run.readings[-1].band == whole.readings[-1].band
    (note,) = run.transcript.warnings
    assert note.startswith(f"only the newest 12 events of {last} are shown") and "the worst band before was" in note
    assert whole.transcript.warnings == ()
    assert note.partition(";")[0] in render_html([run])


def test_scored_session_what_cannot_be_read_is_counted(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = decode_event

    def fails_at_results(data: str) -> object:
        event = decode(data)
        if isinstance(event, ToolResult):
            raise ValueError("of a later version")
        return event

    monkeypatch.setattr("coherence.report.recorded.decode_event", fails_at_results)
    run = read_runs(store, session="calm")[0]
    # two results
    assert run.transcript.warnings == (
        "2 events could not be read: another version wrote them, or their content was purged",
    )


def test_read_runs_the_worst_comes_first_and_names_mean_what_they_mean_elsewhere(store: Path) -> None:
    runs = read_runs(store)
    assert [run.transcript.id for run in runs] == ["refused/1", "stuck/1", "calm/1"]
    assert runs[0].worst_decision is not None and runs[0].worst_decision.kind == "block"
    assert runs.left_out == 0, "a session without an event is none"
    assert runs["stuck/1"] is runs[1] and runs[:2][1] is runs[1]
    with pytest.raises(KeyError, match="the first are: refused/1"):
        runs["nobody"]
    assert [run.transcript.id for run in read_runs(store, session="calm")] == ["calm/1"]
    assert [run.transcript.id for run in read_runs(store, session="1")] == ["refused/1", "stuck/1", "calm/1"]
    with pytest.raises(TranscriptError, match="no agent and no session is called 'nobody'"):
        read_runs(store, session="nobody")


def test_read_runs_of_a_transcript_are_scored(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(
        '{"id": "trip", "steps": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]}'
    )
    runs = read_runs(path, embedder=HashingEmbedder(16))
    assert repr(runs).startswith("<Runs: 1 run, the worst trip ") and len(runs[0].readings) == 2
    with pytest.raises(TranscriptError, match="no run is called 'x'"):
        read_runs(path, session="x", embedder=False)
    with pytest.raises(TranscriptError, match=r"nowhere\.db"):
        read_runs(tmp_path / "nowhere.db")
    assert not (tmp_path / "nowhere.db").exists()


def test_read_runs_a_label_counts_more_than_the_outcome(store: Path) -> None:
    assert CliRunner().invoke(main, ["label", str(store), "stuck", "bad"]).exit_code == 0
    assert read_runs(store, session="stuck")[0].verdict == "hit"


def test_report_the_page_of_a_store_has_its_sessions_the_worst_first(store: Path, tmp_path: Path) -> None:
    result = report(store, "-o", tmp_path / "out.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out.html").read_text("utf-8")
    assert names(page) == ["refused/1", "stuck/1", "calm/1"]
    assert "<title>coherence report: runs.db</title>" in page
    assert "the newest calls failed" in page and re.search(r"began \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, took", page)
    assert 'id="find"' in page and 'data-filter="decision"' in page


def test_report_sessions_are_chosen_by_name_and_by_time(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    assert report(store, "--session", "calm", "-o", out).exit_code == 0
    assert names(out.read_text("utf-8")) == ["calm/1"]
    assert report(store, "--since", "1h", "-o", out).exit_code == 0
    assert len(names(out.read_text("utf-8"))) == 3
    result = report(store, "--since", "2999-01-01", "-o", out)
    said = "No session has an event since 2999-01-01 00:00:00 UTC; the newest ended 20"
    assert result.exit_code == 0 and said in result.output
    page = out.read_text("utf-8")
    assert "There is no run to show." in page and said in page and "Ask for an earlier moment." in page
    assert "Made of runs.db, asked for with --since 2999-01-01 00:00:00 UTC." in page


def test_report_names_what_it_was_made_of_and_what_is_left_out(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    with Monitor(store=store, agent="idle", goal="Wait.", embedder=False):
        pass
    result = report(store, "-o", out)
    left = "1 session without a step is left out."
    assert left in result.output and f"Made of runs.db. {left}" in out.read_text("utf-8")
    assert report(store, "--session", "calm", "-o", out).exit_code == 0
    assert "Made of runs.db, asked for with --session calm.<" in out.read_text("utf-8")
    assert report(store, "--session", "idle", "-o", out).exit_code == 0
    assert "There is no run yet: 1 session without a step is left out. A step is a" in out.read_text("utf-8")
    with Monitor(store=store, agent="first", goal="Clean up.", embedder=False) as m:
        m.check("Bash", {"command": "rm -rf /"})
    assert "2 sessions without a step are left out; calls were refused in 1 of them." in report(store, "-o", out).output


def test_runs_the_card_says_how_many_sessions_were_left_out_and_why(store: Path) -> None:
    with Monitor(store=store, agent="idle", goal="Wait.", embedder=False):
        pass
    runs = read_runs(store)
    assert runs.rest.stepless == 1 and runs.left_out == 0
    assert "1 session without a step is left out" in runs._repr_html_()
    few = read_runs(store, sessions=1)
    # two others with steps and the one without, for which there was no room
    assert few.left_out == 3 and "3 milder sessions left out" in few._repr_html_()
    none = read_runs(store, since=32_472_144_000.0)
    assert (none.rest.older, len(none)) == (4, 0) and "the newest ended 20" in none._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.db"], "nowhere.db: no such file"),
        (["{store}", "--session", "nobody"], "no agent and no session is called 'nobody'"),
        (["{store}", "--since", "soon"], "'soon' is no age such as 2h or 7d"),
        (["{store}", "-o", "{store}"], "would write over the input"),
        (["{text}", "--since", "2h"], "--since is for stores"),
        (["{text}"], "notes.txt"),
    ],
)
def test_report_bad_usage_says_what_and_where(store: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("buy milk")
    result = report(
        *(each.format(store=store, text=text) for each in arguments),
        *(() if "-o" in arguments else ("-o", tmp_path / "o.html")),
    )
    assert result.exit_code == 2 and said in " ".join(result.output.split())
    assert not (tmp_path / "o.html").exists()


def test_report_without_a_file_takes_the_default_store_and_transcripts_beside_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COHERENCE_STORE", str(store))
    assert report("-o", tmp_path / "out.html").exit_code == 0
    assert len(names((tmp_path / "out.html").read_text("utf-8"))) == 3
    run = tmp_path / "run.json"
    run.write_text(
        '{"id": "trip", "steps": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]}'
    )
    result = report(store, run, "-o", tmp_path / "out.html")
    assert result.exit_code == 0, result.output
    assert sorted(names((tmp_path / "out.html").read_text("utf-8"))) == ["calm/1", "refused/1", "stuck/1", "trip"]


def test_report_a_large_store_shows_the_worst_sessions_and_says_so(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = runs_module.stored_runs.__kwdefaults__
    assert defaults is not None
    assert (defaults["sessions"], defaults["steps"], defaults["events"]) == (200, 5_000, 5_000)
    with Store(store) as kept:
        # the refused session has 4 steps: user, assistant and call, result, refused call is no step
        few = runs_module.stored_runs(kept, steps=4)
    assert [run.transcript.id for run in few] == ["refused/1"] and few.left_out == 2
    monkeypatch.setitem(defaults, "sessions", 1)
    result = report(store, "-o", tmp_path / "out.html")
    said = "The 1 worst session of 3 are shown. Name one with --session, or narrow them with --since."
    assert said in result.output
    page = (tmp_path / "out.html").read_text("utf-8")
    assert names(page) == ["refused/1"] and said in page


HOSTILE = ["&" * 3_000, "\U0001f525" * 3_000, EVIL * 200, "word " * 900, "\u05d0<" * 2_000]


KINDS = ["escapes", "wide", "scripts", "words", "directions"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=kind, marks=[pytest.mark.slow] * (at > 0))
        for at, (kind, text) in enumerate(zip(KINDS, HOSTILE, strict=True))
    ],
)
def test_report_a_session_of_50_steps_takes_at_most_200_kB_whatever_its_texts(tmp_path: Path, text: str) -> None:
    """27 kB of the page itself, 13 kB of a row and its strip, and 50 x 3,180 bytes of the session."""
    with Monitor(store=tmp_path / "s.db", agent="a", goal=text, embedder=HashingEmbedder(32)) as m:
        m.message("user", text)
        m.memory(text)
        for at in range(24):
            m.message("assistant", f"{text} {at}")
            m.check("Bash", {"command": f"rm -rf / {text}"})
            for tool in range(4):
                m.tool_call(f"{text[:40]}{tool}", {text[:40]: text, "path": f"{at}/{tool}"}, call=f"{at}-{tool}")
            m.usage(tokens_in=10_000 + at, tokens_out=100, cost_usd=0.01)
            m.tool_result(text, error=True, call=f"{at}-0")
        m.message("assistant", text)
    (run,) = read_runs(tmp_path / "s.db")
    assert len(run.readings) == 50
    shell = len(render_html([]).encode())
    whole = len(render_html([run]).encode())
    section = len(re.search(r'<section class="run".*</section>', render_html([run]), re.S)[0].encode())  # type: ignore[index]
    assert section <= 50 * MAX_STEP and shell <= 28_000
    assert whole <= 200_000


def test_report_scripts_in_every_field_of_a_store_stay_text(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent=EVIL, session=EVIL, goal=EVIL, embedder=False) as m:
        m.message("user", EVIL)
        for _ in range(5):
            m.message("assistant", EVIL)
            m.tool_result(EVIL, error=True, call=m.tool_call(EVIL, {EVIL: EVIL}))
        m.outcome(success=False, text=EVIL)
    assert report(tmp_path / "s.db", "-o", tmp_path / "out.html").exit_code == 0
    page = (tmp_path / "out.html").read_text("utf-8")
    assert page.count("<script>") == 1 and "alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_runs_are_a_sequence_that_says_what_is_in_it() -> None:
    assert repr(Runs([])) == "<Runs: 0 runs>" and len(Runs([])) == 0


def test_report_a_block_is_named_in_the_overview_and_in_its_session(store: Path) -> None:
    page = render_html(read_runs(store, session="refused"))
    (cell,) = re.findall(r'data-name="worst decision"[^>]*>(.*?)</td>', page, re.DOTALL)
    assert ">block<" in cell  # a decision to block is false
    facts = re.search(r'<p class="facts">.*?</p>', page, re.DOTALL)
    assert facts is not None and re.search(r">block</span> at step \d+ #\d+: ", facts[0])


def test_report_guidance_is_shown_with_its_words_and_what_came_of_it(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", goal="Make the tests pass.", embedder=False) as m:
        told = None
        for _ in range(12):
            m.message("assistant", "I run the tests.")
            m.tool_result("boom", error=True, call=m.tool_call("Bash", {"command": "pytest"}))
            told = told or m.decide().guidance
        m.outcome(success=False)
    assert told is not None
    (run,) = read_runs(tmp_path / "s.db")
    first = run.told[0]
    assert (first.pattern, first.text) == (told.pattern, told.text or told.withheld)
    assert first.fate == ("not delivered" if told.text else "withheld, to compare")
    # the words are about the events that were recorded before
    assert run.first_events[first.step] <= max(told.evidence)
    page = render_html([run])
    assert "<h3>Guidance</h3>" in page and first.fate in page and first.effect in page
