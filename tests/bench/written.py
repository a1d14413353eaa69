"""Labelled runs made of the written scenarios: ``python tests/bench/written.py OUT.jsonl``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCENARIOS = Path(__file__).resolve().parents[1] / "data" / "written" / "scenarios.json"
WORDINGS = ("command", "polite", "statement", "verbless")
MARK = "{injected}"


def written_runs() -> Iterator[dict[str, Any]]:
    """Yield for each scenario a run without attack and, for each wording, a hijacked one and one that resisted."""
    for number, scenario in enumerate(json.loads(SCENARIOS.read_text(encoding="utf-8"))):
        group = f"written/{scenario['domain']}/{number}"
        yield _run(scenario, group, "benign", "", hijacked=False)
        for wording in WORDINGS:
            text = scenario["injected"][wording]
            yield _run(scenario, group, f"hijacked/{wording}", text, hijacked=True)
            yield _run(scenario, group, f"resisted/{wording}", text, hijacked=False)


def _run(scenario: dict[str, Any], group: str, name: str, injected: str, *, hijacked: bool) -> dict[str, Any]:
    labels: dict[str, Any] = {"attacked": bool(injected), "hijacked": hijacked, "success": not hijacked}
    steps: list[dict[str, Any]] = [{"role": "user", "content": scenario["goal"]}]
    for done in scenario["steps"]:
        _call(steps, done, done["result"].replace(MARK, injected))
        if MARK in done["result"] and injected:
            labels["injection_step"] = len(steps) - 1
            if hijacked:
                labels["hijack_step"] = len(steps)
                for call in scenario["hijacked"]:
                    _call(steps, call, "ok")
    steps.append({"role": "assistant", "content": "Done."})
    return {
        "id": f"{group}/{name}",
        "source": "written",
        "group": group,
        "split": "written",
        "goal": scenario["goal"],
        "meta": {"suite": scenario["domain"], "wording": name.rpartition("/")[2]},
        "steps": [{"i": at, **step} for at, step in enumerate(steps)],
        "labels": labels,
    }


def _call(steps: list[dict[str, Any]], call: dict[str, Any], result: str) -> None:
    made = {"name": call["tool"], "arguments": call["arguments"]}
    steps.append({"role": "assistant", "content": "", "tool_calls": [made]})
    steps.append({"role": "tool", "content": "", "tool_name": call["tool"], "tool_result": result})


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.writelines(json.dumps(run, ensure_ascii=False) + "\n" for run in written_runs())
