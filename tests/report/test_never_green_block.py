"""Whatever shows a run: a block is never beside a green or yellow light."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.cli.score import _lines, _run
from coherence.cli.table import STYLE, plain_lines
from coherence.core.config import Budget, MonitorConfig
from coherence.core.decisions import KINDS
from coherence.core.readings import Band, Reading
from coherence.core.strip import strip_html
from coherence.providers import HashingEmbedder
from coherence.providers.transcript import Step, Transcript, TranscriptCall
from coherence.report.cells import CELLS
from coherence.report.html import render_html
from coherence.report.score import ScoredRun, score_transcript
from coherence.sensor.light import BANDS, Asked, no_better

TEXTS = ("read the parts of the plan", "ImportError: no module named x", "3 passed", "zzz qqq xxx", "rm -rf /")

WEIGHTS = ({"repetition": 1.0}, {"uncertainty": 1.0})
"""Of classic indexes that stay green whatever the budget says."""


@st.composite
def runs(draw: st.DrawFn) -> ScoredRun:
    """Return a run with calls that fail or succeed, under a budget that may be too small, by either index."""
    steps = [Step(role="user", content="Read the parts of the plan")]
    for number in range(draw(st.integers(1, 8))):
        said, result = draw(st.sampled_from(TEXTS)), draw(st.sampled_from(TEXTS))
        call = TranscriptCall("Bash", {"command": draw(st.sampled_from(TEXTS))}, str(number))
        steps += [
            Step(role="assistant", content=said, tool_calls=(call,)),
            Step(role="tool", content=result, tool_name="Bash", is_error=draw(st.booleans())),
        ]
    config = MonitorConfig(
        budget=Budget(calls=draw(st.integers(1, 4))),
        weights=draw(st.sampled_from((*WEIGHTS, "default", "classic"))),
    )
    transcript = Transcript(id="r", steps=tuple(steps), goal="Read the parts of the plan")
    return score_transcript(transcript, embedder=HashingEmbedder(32), config=config)


def lights(text: str) -> list[tuple[str, str]]:
    """Return band and decision of each step that a page shows, as its colours say."""
    views = re.findall(r'<p class="lit">(.*?)</p>', text)
    pairs = [re.findall(r'class="band (\w)">(\w+)<', view) for view in views]
    assert all(len(pair) == 2 for pair in pairs)
    for band, decision in pairs:
        asked = BANDS[KINDS.index(decision[1])]
        assert band[0] == band[1][0]  # the colour is that of the word
        assert decision[0] == (band[0] if decision[1] == "continue" else asked[0])
        # a classic band may be worse than the decision, and never better
        assert decision[1] == "continue" or BANDS.index(Band(band[1])) >= BANDS.index(asked)
    return [(band[1], decision[1]) for band, decision in pairs]


@examples(12)
@given(runs())
def test_no_output_shows_a_block_beside_a_good_light(run: ScoredRun) -> None:
    shown = [(reading.band.value, decision.kind) for reading, decision in zip(run.readings, run.decisions, strict=True)]
    assert all(band == "red" for band, kind in shown if kind == "block")
    page = render_html([run])
    assert lights(page) == shown
    blocked = any(kind == "block" for _, kind in shown)
    summary: dict[str, Any] = _run(run)
    assert blocked == (summary["worst_decision"] == "block") == ("block" in plain_lines([run])[1].split())
    if blocked:
        assert run.worst_band is Band.RED and "redx" in plain_lines([run])[1] and "red" in summary["bands"]
        assert 'data-decision="block" data-band="red"' in page
        # a gate by the index and a gate by the decision agree
        assert min(reading.coherence_index for reading in run.measured if reading.coherence_index is not None) < 0.4
    assert strip_html("r", run.readings).count(": 0.") <= len(shown)
    assert len(list(_lines([run]))) == len(shown)


@pytest.fixture(scope="module")
def measured() -> Reading:
    step = Step(role="assistant", content="a")
    return score_transcript(Transcript(id="r", steps=(step,)), embedder=False).readings[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("band", [*BANDS, Band.UNKNOWN])
def test_no_better_a_classic_reading_is_no_better_than_what_is_asked(measured: Reading, kind: str, band: Band) -> None:
    index = {Band.GREEN: 0.9, Band.YELLOW: 0.7, Band.ORANGE: 0.5, Band.RED: 0.1, Band.UNKNOWN: None}[band]
    reading = msgspec.structs.replace(measured, coherence_index=index, band=band)
    found = no_better(reading, [Asked("loop", kind)], (0.8, 0.6, 0.4))  # type: ignore[arg-type]
    least = BANDS[KINDS.index(kind)]
    if kind == "continue" or band in BANDS[BANDS.index(least) :]:
        assert found == reading
    else:
        assert (found.band, found.cause) == (least, "loop")
        edges = dict(zip(BANDS, (0.8, 0.6, 0.4, 0.0), strict=True))
        assert found.coherence_index is not None and edges[least] <= found.coherence_index < 0.8


def test_the_strip_of_the_terminal_has_a_cell_for_every_band() -> None:
    assert CELLS.keys() == STYLE.keys() == set(Band)
