"""Every example runs as it is shipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SAYS = {
    "own_provider.py": [
        "tick 1 ",
        "tick 3 ",
        "“Let me first tidy up the kernel's build system.” is farthest from every goal",
    ],
    "traced_agent.py": ["refused: bash: rm -rf / wipes a system", "The call did not run."],
    "custom_metric.py": ["shouting 0.50", "repetition", "say the same", "queue_length 0.15"],
    "poll_from_thread.py": ["before: What is my horoscope today?", "ticks"],
    "monitor_loop.py": [
        "cat setup.cfg  continue",
        "pytest -q      warn      pressure 0.40",
        "stopped: Bash returned the same error 3 times",
    ],
    "classic_regulator.py": [
        "continue\nscope_drift_warn\ncontinue\ncircuit_break      cost_cap_reached\n",
        "ada: 2400 of 2000 tokens",
        "{'search': 5} circuit_break",
    ],
    "guided_agent.py": [
        "Bash  warn",
        "scope_drift_warn: the answer tells of what the task forbids: lock file",
        "<past_corrections>",
    ],
    "fleet_trust.py": [
        "planner     warn      pressure 0.61  warn",
        "researcher is in trouble, and 0.55 of it reaches this agent (researcher > planner > lead)",
        "trust in the researcher: 0.811",
    ],
    "learn_from_errors.py": [
        "asked: lsof -ti :5432 | xargs kill\nasked: nothing is known of this\n",
        "monday: 'systemctl restart docker' recorded 1 times, helped 0",
        "tuesday: An error like this was seen before, and on ",
        "it was solved by: systemctl restart docker",
        "tuesday: 'systemctl restart docker' recorded 2 times, helped 1",
    ],
    "guard_tracking.py": [
        "ticket 1 is solved: success True, in less than a second: True",
        "30 calls, 4 failed; phase idle, patch None",  # tickets 7, 14, 21 and 28
        "the newest 30: 87% succeeded, for 0.078 dollars",  # 15 odd ones less 2 at 0.002, 15 even ones less 2 at 0.004
        "call 14  ticket 14  TimeoutError: no answer to ticket 14 within 30 s",
        "30 lines in support.jsonl",
    ],
    "guard_rollback.py": [
        "told: accepted {'retries': 5}\ntold: serving {'retries': 5}\ntold: dropped {'retries': 5} ",
        "told: accepted {'timeout_s': 60}\ntold: serving {'timeout_s': 60}\ntold: confirmed {'timeout_s': 60} ",
        "in force: {'retries': 1, 'timeout_s': 60}",
    ],
    "guard_langgraph.py": [
        "waits for a person: pay it back?\nfailures: 0 of 20\ntold no: refused\n",
        "told: accepted {'model': 'large'}\ntold: confirmed {'model': 'large'}\n",  # and never applied for slices
        "ainvoke: answered by the large model",
        'failed: {"ValueError: the model\'s answer is no JSON"}',
    ],
    "guard_skill.py": [
        "call 2: weather{'args': ['Davos'], 'kwargs': {'unit': 'kelvin'}}, success False, 40 tokens",
        "decided: confirmed",
        "newest 100 calls: 100% succeeded",
        "in force: {'host': 'mirror', 'timeout_s': 5} now: {'status': 'ok'",
    ],
    "guard_router.py": [
        "after 100 builds: state 1",  # the first line, stability, is strong
        "told: accepted {'fallback': True, 'timeout_factor': 1.25}",
        "after 110 builds: state 0",
        "told: confirmed {'fallback': True, 'timeout_factor': 1.25}\nafter 1200 builds: state 1",
    ],
    "guard_existing_agent.py": [
        "About your question “Where is the invoice of May?”: the invoice is in the mail. \nAbout ",
        "Agent.ask_async index 0.9",
        " green ValueError: the model's answer breaks off\nAgent.ask       index 0.9",
        " green patched\ntemperature on trial: 0.5\ntemperature: 1.5\n",
        "  accepted {'temperature': 0.5}\n  serving {'temperature': 0.5}\n  ending {'temperature': 0.5}\n"
        "  restored {'temperature': 0.5}\n",
    ],
    "one_command.sh": ["tau_airline/45/1", '"run_id": "tau_airline/45/1", "step": 0'],
}


def test_examples_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")} == set(SAYS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_examples_an_example_says_what_it_should(name: str, tmp_path: Path) -> None:
    program = [sys.executable] if name.endswith(".py") else ["sh"]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    result = subprocess.run(
        [*program, EXAMPLES / name], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": path}
    )
    assert result.returncode == 0, result.stderr
    for words in SAYS[name]:
        assert words in result.stdout
