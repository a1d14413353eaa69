from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coherence.core.errors import TranscriptError
from coherence.core.readings import Counters
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript

HI = {"role": "user", "content": "hi"}


def read(folder: Path, *samples: Any) -> list[Transcript]:
    path = folder / "log.json"
    path.write_text(json.dumps({"status": "success", "eval": {"task": "t"}, "samples": list(samples)}))
    return read_transcripts(path)


def scored(*values: Any) -> dict[str, Any]:
    return {"messages": [HI], "scores": {str(at): {"value": value} for at, value in enumerate(values)}}


@pytest.mark.parametrize(
    ("values", "success"),
    [
        (("C",), True),
        ((1.0, "C"), True),
        (("I",), False),
        (("C", "I"), None),
        ((0.7,), None),
        (([],), None),
        ((), None),
    ],
)
def test_inspect_reader_grades_that_agree_are_the_success(tmp_path: Path, values: Any, success: bool | None) -> None:
    [run] = read(tmp_path, scored(*values))
    assert run.success is success


def test_inspect_reader_a_sample_with_an_error_went_wrong_and_one_without_messages_is_left_out(tmp_path: Path) -> None:
    broken = {"id": 1, "epoch": 2, "messages": [HI], "error": {"message": "no sandbox", "traceback": "..."}}
    [run] = read(tmp_path, broken, {"id": 2, "epoch": 1, "messages": []})
    assert (run.id, run.outcome, run.went_wrong) == ("t/1/2", "error: no sandbox", True)
    assert run.warnings == ("1 sample left out: no messages",)


def test_inspect_reader_a_log_without_a_sample_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="no sample with messages"):
        read(tmp_path)


def test_inspect_reader_attachments_are_looked_up_and_media_are_marks(tmp_path: Path) -> None:
    kept: dict[str, Any] = {"messages": [{"role": "user", "content": "attachment://ab"}], "attachments": {"ab": "long"}}
    blocks = [{"type": "reasoning", "reasoning": "hm"}, {"type": "image", "image": "attachment://cd"}]
    kept["messages"].append({"role": "assistant", "content": [*blocks, {"type": "text", "text": "A cat."}]})
    [run] = read(tmp_path, kept)
    assert [step.content for step in run.steps] == ["long", "[image]\nA cat."]


def test_inspect_reader_cached_tokens_count_as_input(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "input_tokens_cache_read": 70, "input_tokens_cache_write": 25, "output_tokens": 3}
    output = {"choices": [{"message": {"id": "m"}}], "usage": usage | {"total_cost": 0.5}}
    events = [None, {"event": "model", "timestamp": "1970-01-01T00:00:09Z", "output": output, "working_time": 2}]
    [run] = read(tmp_path, {"messages": [HI, {"role": "assistant", "id": "m", "content": "ho"}], "events": events})
    step = run.steps[1]
    assert step.usage == Counters(tokens_in=5 + 70 + 25, tokens_out=3, cost_usd=0.5)
    assert (step.ts, step.latency_s) == (9.0, 2.0)
