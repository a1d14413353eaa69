"""Measure what the hooks add to a step of the real Claude Code: beside no hooks, in turns, in one run.

``python tests/bench/host_step.py`` runs the client (from npm, on first use) against a stub of its API. A step is the
time from the end of the model's answer to the client's next request, with one call of Bash in it: hooks of PreToolUse
and PostToolBatch. ``--think S`` lets the model take its time, as models do: what is measured behind a step
has that time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from hosts.claude_client import VERSION, run_claude
from hosts.messages_stub import MessagesStub, Step, Text, Tool, Wait

from coherence.integrations.claude_code.settings import hook_groups
from coherence.integrations.daemon.folder import control
from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.daemon.http_place import choose_place, keep_place
from coherence.integrations.hook_settings import with_hooks

FORMS = ("none", "http", "command")
SAID = (
    "Let me look at the next file.",
    "That one is as I expected; on to the next.",
    "I note its first line, then I go on.",
    "This is about the settings, so I read the next one.",
)


def main() -> None:
    """Print what hooks add, by form."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=20, help="steps of a session")
    options.add_argument("--rounds", type=int, default=5, help="sessions of each form")
    options.add_argument("--think", type=float, default=1.0, help="seconds of the model before each call")
    options.add_argument("--version", default=VERSION, help="version of the client")
    options.add_argument("--json", type=Path, help="file for the figures")
    given = options.parse_args()
    found: dict[str, list[float]] = defaultdict(list)
    for round_ in range(given.rounds):
        for form in FORMS[round_ % 3 :] + FORMS[: round_ % 3]:
            found[form] += session(form, given.steps, given.think, given.version)
    base = median(found["none"])
    figures = {form: figures_of(found[form], base) for form in FORMS}
    print(f"a step of Claude Code {given.version}, ms; {given.rounds} sessions of {given.steps} steps for each form")
    print(f"{'hooks':10}{'p50':>8}{'p99':>8}{'added p50':>11}{'added p99':>11}")
    for form, each in figures.items():
        print(f"{form:10}" + "".join(f"{each[name]:{wide}.1f}" for name, wide in WIDTHS.items()))
    if given.json:
        given.json.write_text(json.dumps(figures))


WIDTHS = {"p50_ms": 8, "p99_ms": 8, "added_p50_ms": 11, "added_p99_ms": 11}


def figures_of(seconds: list[float], base: float) -> dict[str, float]:
    """Return the figures of a form; what it adds is counted from the median step without hooks."""
    p50, p99 = (1e3 * float(value) for value in np.percentile(seconds, [50, 99]))
    return {"p50_ms": p50, "p99_ms": p99, "added_p50_ms": p50 - 1e3 * base, "added_p99_ms": p99 - 1e3 * base}


def session(form: str, steps: int, think: float, version: str) -> list[float]:
    """Run the client once; return the seconds of each step but the first."""
    script: list[Step] = [
        [Wait(think), Text(f"{SAID[at % 4]} ({at})"), Tool("Bash", {"command": f"echo line {at} of the file"})]
        for at in range(steps)
    ]
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        project, state = folder / "project", folder / "s"
        project.mkdir()
        state.mkdir(mode=0o700)
        with MessagesStub({"steps": [*script, [Text("I have read them all.")]]}) as stub, daemon(state, form) as hooks:
            done = run_claude(
                "[[script:steps]] Read the files and tell me what they are about.",
                stub=stub,
                folder=project,
                home=folder / "home",
                settings={"hooks": hooks},
                version=version,
                timeout=300,
            )
            assert done.returncode == 0, done.stderr
            spans = sorted(stub.spans)
    assert len(spans) == steps + 1, f"{len(spans)} requests for {steps} steps"
    return [after[0] - before[1] for before, after in pairwise(spans[1:])]


@contextmanager
def daemon(state: Path, form: str) -> Iterator[dict[str, Any]]:
    """Run a daemon, warm, and give the hooks that talk to it."""
    if form == "none":
        yield {}
        return
    place = choose_place(state) if form == "http" else None
    if place is not None:
        keep_place(state, place)
    command = [
        sys.executable,
        "-m",
        "coherence",
        "daemon",
        "run",
        "--state",
        str(state),
        "--store",
        f"{state}/store.db",
    ]
    here = Path.cwd()
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            while control(state, "status") is None:
                time.sleep(0.05)
            yield with_hooks({}, hook_groups(hook_command(state), place))["hooks"]
        finally:
            control(state, "stop")
            process.wait(30)
            os.chdir(here)


if __name__ == "__main__":
    main()
