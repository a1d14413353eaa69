"""The table on a terminal: no word broken in the middle, the decision in the colour of its light."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from coherence.cli import table
from coherence.cli.table import fold, shorten
from coherence.providers.transcript import Step, Transcript, TranscriptCall
from coherence.report.score import ScoredRun, score_transcript

WORDS = st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12), max_size=20)


@given(WORDS, st.integers(24, 100))
def test_fold_a_word_that_fits_is_whole_on_a_line_that_fits(words: list[str], width: int) -> None:
    lines = fold(" ".join(words), width)
    assert " ".join(lines).split() == words
    assert all(cell_len(line) <= width for line in lines)


@given(st.text(st.characters(categories=["L", "N", "P"]), max_size=200), st.integers(2, 40))
def test_fold_any_text_keeps_its_characters_and_the_width(text: str, width: int) -> None:
    lines = fold(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= width for line in lines)


@given(st.text(max_size=120), st.integers(9, 60))
def test_shorten_a_name_fits_or_is_cut_in_the_middle(name: str, width: int) -> None:
    short = shorten(name, width)
    assert len(short) <= max(width, len("…") + 8)
    assert len(name) > width or "…" not in short or "…" in name


def test_shorten_a_name_is_cut_at_its_joints() -> None:
    name = "agentdojo/gpt-4-turbo/workspace/user_task_0/injection_task_0"
    assert [shorten(name, width) for width in (20, 30)] == ["agentdojo/…task_0", "agentdojo/…0/injection_task_0"]


def scored(name: str, *, fails: bool, went_wrong: bool) -> ScoredRun:
    steps = [Step(role="user", content="Read the parts.")]
    for number in range(6):
        call = TranscriptCall("Bash", {"command": "pytest" if fails else f"cat part_{number}.py"}, str(number))
        result = "ImportError: no module named x" if fails else f"def part_{number}(): return {number}"
        steps += [
            Step(role="assistant", tool_calls=(call,)),
            Step(role="tool", content=result, tool_name="Bash", is_error=fails),
        ]
    transcript = Transcript(id=name, steps=tuple(steps), goal="Read the parts.", outcome="x", went_wrong=went_wrong)
    return score_transcript(transcript, embedder=False)


@pytest.fixture(scope="module")
def runs() -> list[ScoredRun]:
    return [
        scored("suite/model/user_task_0/injection_task_0", fails=True, went_wrong=True),
        scored("suite/model/user_task_1/injection_task_1", fails=False, went_wrong=True),
        scored("suite/model/user_task_2/injection_task_2", fails=True, went_wrong=False),
    ]


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_print_runs_on_a_terminal_words_are_whole_and_outcome_and_decision_are_told(
    columns: int, runs: list[ScoredRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(
        table, "Console", lambda: Console(file=out, width=columns, force_terminal=True, color_system="256")
    )
    table.print_runs(runs)
    shown = out.getvalue()
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\n")]
    assert max(map(len, lines)) <= columns
    words = set(" ".join(lines).split())
    for run in runs:
        assert run.verdict.split()[-1] in words
        assert set(run.why(run.lowest).split()) <= words if run.lowest is not None else False
    colours = {"continue": "2", "guide": "33", "warn": "38;5;208", "block": "31"}
    decided = {run.worst_decision.kind for run in runs if run.worst_decision is not None}
    assert len(decided) > 1
    for kind in decided:
        assert f"\x1b[{colours[kind]}m{kind}" in shown
    assert "known outcomes: 2 runs went wrong: 1 warned of, 1 missed; 1 run went well: 1 warned of falsely" in " ".join(
        lines
    )
