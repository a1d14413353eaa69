"""Hostile texts, found by coverage-guided fuzzing: no reader raises, breaks its law, or takes more than linear time."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="needs atheris, which there is for some systems only"
)

RUNS = {
    "redact": 60_000,
    "redact_value": 30_000,
    "readers": 200_000,
    "shell": 60_000,
    "danger": 30_000,
    "normal": 60_000,
}
"""Inputs that a long run tries."""

SHORT = 80
"""A short run tries one of so many."""


@pytest.mark.parametrize(
    "share", [pytest.param(SHORT, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.torture)]
)
@pytest.mark.parametrize("target", RUNS)
def test_fuzz_no_text_breaks_a_law_or_takes_too_long(tmp_path: Path, seed: int, target: str, share: int) -> None:
    options = [f"-runs={RUNS[target] // share}", f"-seed={seed % 2**31 or 1}", "-max_len=512", "-timeout=600"]
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), target, str(tmp_path), *options]
    done = subprocess.run(
        [*command, "-rss_limit_mb=0"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-6_000:]
    assert f"Done {RUNS[target] // share} runs" in done.stdout
