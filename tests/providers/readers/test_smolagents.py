from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript


def read(folder: Path, value: Any) -> Transcript:
    path = folder / "memory.json"
    path.write_text(json.dumps(value))
    [run] = read_transcripts(path)
    assert run.format == "smolagents"
    return run


TASK = {"task": "Count.", "task_images": ["<bytes>", "<bytes>"]}
PLAN = {"plan": "1. Count.", "timing": {"end_time": 5.0, "duration": 2.0}, "token_usage": None}
ACTION = {"step_number": 1, "timing": {"end_time": 9.0, "duration": 1.0}, "model_output": "Code:\n```py\nlen(x)\n```"}
CALL = {"id": "a", "function": {"name": "python_interpreter", "arguments": "len(x)"}}
ACTION |= {"code_action": "len(x)", "tool_calls": [CALL], "observations": "2", "observations_images": ["<bytes>"]}


def test_smolagents_reader_plans_images_and_old_fences(tmp_path: Path) -> None:
    run = read(tmp_path, [TASK, PLAN, ACTION])
    assert [(step.role, step.content, step.ts) for step in run.steps] == [
        ("user", "Count.\n[image]\n[image]", None),
        ("assistant", "1. Count.", 5.0),
        ("assistant", "", 9.0),  # nothing but the code, which its call has
        ("tool", "2\n[image]", 9.0),
    ]


def test_smolagents_reader_a_run_that_ran_out_of_steps_went_wrong_and_keeps_its_answer(tmp_path: Path) -> None:
    run = read(tmp_path, {"output": {"count": 2}, "state": "max_steps_error", "steps": [TASK, ACTION]})
    assert (run.went_wrong, run.outcome) == (True, "ended at the most steps allowed")
    assert (run.steps[-1].role, run.steps[-1].content) == ("assistant", '{"count":2}')
