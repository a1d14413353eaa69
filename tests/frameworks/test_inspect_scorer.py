"""A real evaluation by inspect_ai, of a scripted model, with the scorer beside another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.frameworks

pytest.importorskip("inspect_ai")

EVALUATION = '''
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolCall, ToolError, tool

from coherence.evaluation.inspect_scorer import coherence_scorer


@tool
def run_tests():
    async def execute(path: str) -> str:
        """Run tests.

        Args:
            path: The file.
        """
        if path == "gone.py":
            raise ToolError("No such file: gone.py")
        return f"{path}: 12 passed"

    return execute


def call(text, path, number):
    made = ToolCall(id=f"c{number}", function="run_tests", arguments={"path": path})
    return answer(text, [made])


def answer(text, calls=None):
    output = ModelOutput.from_message(ChatMessageAssistant(content=text, tool_calls=calls))
    # without it inspect_ai counts the tokens itself, with a table that it downloads
    output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
    return output


good = [call(f"I run the tests of module {at}.", f"test_{at}.py", at) for at in range(4)]
good.append(answer("All tests of the modules 0 to 3 pass: 12 each."))
looping = [call("I run the tests.", "gone.py", at) for at in range(12)]
looping.append(answer("All tests pass."))
ASKED = "Run the tests of all modules and say whether they pass."
task = Task(
    name="tests",
    dataset=[Sample(id="good", input=ASKED, target="pass"), Sample(id="looping", input=ASKED, target="pass")],
    solver=[use_tools(run_tests()), generate()],
    scorer=[includes(), coherence_scorer(embedder=False if sys.argv[2] == "off" else None)],
)
model = get_model("mockllm/model", custom_outputs=[*good, *looping])
[log] = eval(task, model=model, log_dir=sys.argv[1], log_format="json", display="none", max_samples=1)
assert log.status == "success", log.error
'''


def evaluate(folder: Path, embedder: str = "on") -> tuple[dict[str, Any], dict[str, Any]]:
    """Run it in a process of its own, since inspect_ai leaves event loops open."""
    script = folder / "evaluation.py"
    script.write_text(EVALUATION)
    command = [sys.executable, str(script), str(folder / "logs"), embedder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    [log] = (folder / "logs").glob("*.json")
    found = json.loads(log.read_text())
    return {sample["id"]: sample["scores"] for sample in found["samples"]}, found["results"]


def test_coherence_scorer_tells_a_loop_from_good_work_where_the_grade_is_the_same(tmp_path: Path) -> None:
    samples, results = evaluate(tmp_path)
    assert {scores["includes"]["value"] for scores in samples.values()} == {"C"}
    good, looping = samples["good"]["coherence"], samples["looping"]["coherence"]
    assert 0 <= looping["value"] < good["value"] <= 1
    assert (good["answer"], good["metadata"]["rules"]) == ("green", [])
    assert looping["answer"] in ("orange", "red")
    assert "repeated_tool_call_loop" in looping["metadata"]["rules"]
    assert "repeated_tool_call_loop" in looping["explanation"]
    [ours] = [score for score in results["scores"] if score["name"] == "coherence"]
    assert ours["metrics"]["mean"]["value"] == pytest.approx((good["value"] + looping["value"]) / 2)
