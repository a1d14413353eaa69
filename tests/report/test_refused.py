"""Refused calls in the report of recorded sessions, and the numbers by which its steps are known elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from coherence import Monitor
from coherence.cli.main import main
from coherence.core.readings import Band
from coherence.report.html import render_html
from coherence.report.live import scored_monitor
from coherence.report.run_of_records import step_numbers
from coherence.report.runs import read_runs
from coherence.report.score import ScoredRun, count_verdicts
from coherence.views.views import Views

WIPE = {"command": "rm -rf / --no-preserve-root"}


def read(m: Monitor, count: int = 3) -> None:
    m.message("user", "Free some space.")
    for at in range(count):
        m.message("assistant", f"I look at part {at}.")
        m.tool_result(f"part {at}: 3 files", call=m.tool_call("Read", {"path": f"part{at}.md"}))
    m.decide()


def refused(path: Path, *, success: bool | None = None, goes_on: bool = False) -> ScoredRun:
    """Return the run of an agent that did well until it wanted to wipe the disk."""
    with Monitor(store=path, agent="cleaner", goal="Free disk space.", embedder=False) as m:
        read(m)
        assert not m.check("Bash", WIPE)
        if goes_on:
            m.unblock("I meant it")
        if success is not None:
            m.outcome(success)
    return read_runs(path, session="cleaner")[0]


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


@pytest.mark.parametrize("goes_on", [False, True])
def test_refused_calls_are_listed_with_their_step_and_whether_they_were_let_through(
    tmp_path: Path, goes_on: bool
) -> None:
    run = refused(tmp_path / "s.db", goes_on=goes_on)
    (call,) = run.refused
    assert (call.tool, call.call, call.let_through) == ("Bash", WIPE["command"], goes_on)
    page = render_html([run])
    (part,) = re.findall(r'<div class="refused">.*?</div>', page, re.DOTALL)
    told = plain(part)
    # three messages and three results were complete, and the call was event `call.seq`
    assert told.startswith(f"Refused step 6 #{call.seq}, Bash “rm -rf / --no-preserve-root”: ")
    assert told.endswith("let through afterwards" if goes_on else "not let through")
    assert f'href="#run-1-at-{call.step}"' in part
    view = page.partition(f'id="run-1-at-{call.step}"')[2].partition("</article>")[0]
    assert "Refused: Bash “rm -rf / --no-preserve-root”" in plain(view) and "nothing stands out" not in plain(view)
    assert page.count('class="b stop"') == 1 and page.count('<path class="stop"') == 1, "on the strip and the chart"
    assert f"a call was refused at step {run.number(call.step)}" in page


def test_refused_call_is_the_worst_step_when_none_is_worse(tmp_path: Path) -> None:
    run = refused(tmp_path / "s.db")
    assert run.worst_band is Band.GREEN and run.lowest is not None
    assert run.worst_at == run.refused[0].step != run.lowest.tick_seq
    page = render_html([run])
    (cell,) = re.findall(r'data-name="worst step and why"[^>]*>(.*?)</td>', page, re.DOTALL)
    assert plain(cell).startswith(f"{run.name(run.worst_at)}: call of Bash refused: rm -rf /")
    assert "nothing stands out" not in plain(cell)
    assert "1 call refused" in page
    assert "call of Bash refused" in run._repr_html_()


def test_refused_call_does_not_hide_a_worse_step(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", goal="Read the plan.", embedder=False) as m:
        read(m, 1)
        m.check("Bash", WIPE)
        for _ in range(12):
            m.message("assistant", "I run the tests.")
            m.tool_result("ImportError: no module named x", error=True, call=m.tool_call("Bash", {"command": "pytest"}))
        m.decide()
    (run,) = read_runs(tmp_path / "s.db")
    assert run.worst_band is Band.RED and run.lowest is not None
    assert run.worst_at == run.lowest.tick_seq and len(run.refused) == 1


def test_refused_calls_of_a_session_without_texts_have_no_text(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", embedder=False, config={"privacy": "no-text"}) as m:
        read(m)
        m.check("Bash", WIPE)
    (run,) = read_runs(tmp_path / "s.db")
    page = render_html([run])
    assert "preserve-root" not in page and len(run.refused) == 1
    assert not re.search(r"#[0-9a-f]{16}", plain(page.partition("</style>")[2]))


def test_refused_calls_of_a_live_monitor_are_those_of_its_store(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", goal="Free space.", embedder=False) as m:
        read(m)
        m.check("Bash", WIPE)
        live = scored_monitor(m)
    (stored,) = read_runs(tmp_path / "s.db")
    assert live is not None and live.refused == stored.refused and live.numbers == stored.numbers


def test_step_numbers_are_those_of_the_other_faces(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Monitor(store=path, agent="a", session="s", goal="Read the plan.", embedder=False) as m:
        read(m)
        for _ in range(3):  # calls without a word
            m.tool_result("boom", error=True, call=m.tool_call("Bash", {"command": "pytest"}))
        m.message("user", "Look again.")
        m.message("assistant", "Done.")
    (run,) = read_runs(path)
    with Views(path) as views:
        shown = [views.step("a", "s", seq).step for seq in run.first_events]
        line = views.session("a", "s").line
    assert list(run.numbers) == shown
    assert run.count() == line.steps == run.numbers[-1] == 10  # 3 + 3 + 3 + 1
    page = render_html([run])
    assert f"Step 10 #{run.first_events[-1]} " in page and "10 steps" in page
    assert f"step 10 #{run.first_events[-1]}" == run.name(len(run.readings) - 1)


def test_step_numbers_of_a_long_session_go_on_from_the_steps_before(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", goal="Read the plan.", embedder=False) as m:
        read(m, 20)
    whole, part = (read_runs(tmp_path / "s.db", events=events)[0] for events in (5_000, 30))
    assert part.numbers == whole.numbers[-len(part.numbers) :] and part.first_events[-1] == whole.first_events[-1]
    assert part.steps_in_words == f"the newest {part.count()} of 40 steps" and whole.steps_in_words == "40 steps"
    assert f'<p class="facts">{part.steps_in_words}' in render_html([part])
    assert part.steps_in_words in part._repr_html_()


@pytest.mark.parametrize(
    ("complete", "numbers"),
    [([], (0, 0, 0)), ([2], (1, 1, 1)), ([2, 4, 6], (1, 2, 3)), ([4], (1, 1, 1)), ([2, 3, 4, 6], (2, 3, 4))],
)
def test_step_numbers_count_what_is_complete(complete: list[int], numbers: tuple[int, ...]) -> None:
    assert step_numbers([2, 4, 6], complete) == numbers


@pytest.mark.parametrize(
    ("success", "verdict", "told"),
    [
        (False, "hit", "1 run went wrong: 1 warned of, 0 missed"),
        (True, "recovered", "1 run went well: 1 recovered after a warning"),
    ],
)
def test_verdict_of_a_recorded_session_counts_a_refused_call_as_a_warning(
    tmp_path: Path, success: bool, verdict: str, told: str
) -> None:
    run = refused(tmp_path / "s.db", success=success)
    assert run.verdict == verdict and count_verdicts([run]) == told
    page = render_html([run])
    assert f"{told}." in page and f">{verdict}</span>" in page


def test_verdict_of_a_recorded_session_that_was_never_warned_is_calm_or_missed(tmp_path: Path) -> None:
    for agent, success in (("a", True), ("b", False)):
        with Monitor(store=tmp_path / "s.db", agent=agent, goal="Free space.", embedder=False) as m:
            read(m)
            m.outcome(success)
    runs = read_runs(tmp_path / "s.db")
    assert {run.verdict for run in runs} == {"calm", "miss"}
    assert count_verdicts(runs) == "1 run went wrong: 0 warned of, 1 missed; 1 run went well"


def test_refused_calls_are_found_by_the_command(tmp_path: Path) -> None:
    refused(tmp_path / "s.db")
    result = CliRunner().invoke(main, ["report", str(tmp_path / "s.db"), "-o", str(tmp_path / "o.html")])
    assert result.exit_code == 0
    assert "rm -rf /" in (tmp_path / "o.html").read_text("utf-8")


def test_refused_calls_before_the_events_of_a_long_session_are_counted(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", goal="Free space.", embedder=False) as m:
        m.message("assistant", "I wipe the disk.")
        m.check("Bash", WIPE)
        read(m, 20)
    (part,) = read_runs(tmp_path / "s.db", events=30)
    assert part.refused == () and part.transcript.warnings[0].endswith("; refused calls before: 1")


def test_unknown_throughout_gives_the_reasons_that_there_are(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", goal="Free space.", embedder=False) as m:
        m.message("user", "Free some space.")
        read(m)
    page = plain(render_html(read_runs(tmp_path / "s.db")))
    assert "unknown throughout: " in page and "no reason given;" not in page
