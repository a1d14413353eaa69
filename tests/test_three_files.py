"""A metric and a rule are three files each: the code, a line that names it, its test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

METRIC = '''"""How much of what the agent says is in capitals."""

from __future__ import annotations

from coherence.core.readings import MetricInput


class Shouting:
    """Share of the recent messages that are all in capitals. Range [0, 1], high is bad."""

    name = "shouting"
    inverted = True
    reads = ("context",)

    def compute(self, data: MetricInput) -> float | None:
        """Return the share."""
        texts = data.context_texts
        return sum(text.isupper() for text in texts) / len(texts) if texts else None
'''

RULE = '''"""Many calls without a word to the user."""

from __future__ import annotations

from typing import Any

from coherence.core.decisions import Finding


class LongSilence:
    """Calls since the user last spoke; guides from twenty on."""

    name = "long_silence"

    def __call__(self, state: Any, reading: Any, appraisal: Any) -> Finding:
        """Return the finding."""
        calls = sum(action.turn == state.facts.turn for action in state.facts.actions)
        score = min(calls / 40, 1.0)
        return Finding(
            rule=self.name,
            severity="guide",
            active=score >= 0.5,
            score=score,
            threshold=0.5,
            why=f"{calls} calls since the user last spoke" if score >= 0.5 else "",
            action="tell the user where things stand",
        )
'''

TEST_OF_METRIC = """from coherence.metrics.shouting import Shouting

from coherence.testing import checks_for, metric_input


def test_shouting_is_the_share_in_capitals() -> None:
    assert Shouting().compute(metric_input(context=[[1.0, 0.0]])) == 0.0  # its text is "context 0"


def test_shouting_keeps_the_contract() -> None:
    for check in checks_for(Shouting()):
        check()
"""

TEST_OF_RULE = """from coherence.policy.rules.silence import LongSilence

from coherence.testing import checks_for


def test_long_silence_keeps_the_contract() -> None:
    for check in checks_for(LongSilence()):
        check()
"""

USE = """
from coherence import CoherenceSensor, Monitor
from coherence.core.registry import available
from coherence.providers import HashingEmbedder, StaticState

origins = {plugin.name: plugin.origin for group in ("metrics", "rules") for plugin in available(group)}
assert origins["shouting"] == origins["long_silence"] == "coherence-sensor", origins
state = StaticState(goals=["mend it"], context=["WHY DOES IT FAIL", "reading login.py"])
sensor = CoherenceSensor(state, embedder=HashingEmbedder(), metrics=["goal_drift", "shouting"])
assert sensor.measure_sync().metrics["shouting"] == 0.5
with Monitor(embedder=HashingEmbedder(), config={}) as m:
    for number in range(21):
        m.tool_call("Read", {"path": f"{number}.py"})
        m.tool_result(f"line {number}")
    found = {finding.rule: finding for finding in m.decide().findings}
    assert found["long_silence"].active, found
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder, with the package that lies there before the one that is installed."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_metric_and_a_rule_are_three_files_each_in_the_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("coherence", "metrics", "providers"):
        ignored = shutil.ignore_patterns("__pycache__", "metrics" if name == "coherence" else "", "models")
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for name in ("metrics", "providers"):
        if not (tree / "coherence" / name).exists():
            (tree / "coherence" / name).symlink_to(tree / name)
    names = tree / "coherence" / "core" / "plugins.ini"
    shouting, silence = "coherence.metrics.shouting:Shouting", "coherence.policy.rules.silence:LongSilence"
    listed = names.read_text()
    listed = listed.replace("[coherence.metrics]\n", f"[coherence.metrics]\nshouting = {shouting}\n")
    listed = listed.replace("[coherence.rules]\n", f"[coherence.rules]\nlong_silence = {silence}\n")
    names.write_text(listed)
    write(
        tree,
        {
            "metrics/shouting.py": METRIC,
            "coherence/policy/rules/silence.py": RULE,
            "test_shouting.py": TEST_OF_METRIC,
            "test_silence.py": TEST_OF_RULE,
        },
    )
    run(tree, "-c", USE)
    shown = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shouting.py", "test_silence.py")
    assert "3 passed" in shown
