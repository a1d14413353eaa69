"""The light beside what is known of a run's ending."""

from __future__ import annotations

import pytest

from coherence.providers.transcript import Step, Transcript, TranscriptCall
from coherence.report.html import render_html
from coherence.report.score import count_verdicts, score_transcript


@pytest.mark.parametrize(
    ("went_wrong", "fails", "verdict"),
    [
        (True, True, "hit"),
        (True, False, "miss"),
        (False, True, "false alarm"),
        (False, False, "calm"),
        (None, True, ""),
    ],
)
def test_verdict_the_light_beside_the_known_outcome(went_wrong: bool | None, fails: bool, verdict: str) -> None:
    calls = []
    for number in range(8):
        call = TranscriptCall("Bash", {"command": "pytest" if fails else f"cat part_{number}.py"}, str(number))
        result = "ImportError: no module named x" if fails else f"def part_{number}(): return {number}"
        calls += [
            Step(role="assistant", tool_calls=(call,)),
            Step(role="tool", content=result, tool_name="Bash", is_error=fails),
        ]
    transcript = Transcript(id="r", steps=tuple(calls), goal="Read the parts.", outcome="x", went_wrong=went_wrong)
    run = score_transcript(transcript, embedder=False)
    assert run.verdict == verdict
    expected = {
        "hit": "1 run went wrong: 1 warned of, 0 missed",
        "miss": "1 run went wrong: 0 warned of, 1 missed",
        "false alarm": "1 run went well: 1 warned of falsely",
        "calm": "1 run went well: 0 warned of falsely",
        "": "",
    }
    assert count_verdicts([run]) == expected[verdict]
    page = render_html([run])
    assert expected[verdict] in page and (verdict == "" or f">{verdict}</span>" in page)
