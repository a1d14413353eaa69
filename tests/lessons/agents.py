"""An agent that runs commands, for the tests of lessons that a monitor learns and offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coherence import Monitor
from coherence.core.decisions import Decision
from coherence.providers import HashingEmbedder

MISSING = (
    'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in <module>\n    import yaml\n'
    "ModuleNotFoundError: No module named 'yaml'"
)


def monitor(path: Path | None, session: str | None = None, **options: Any) -> Monitor:
    guidance = {"randomise": False, "cooldown": 0, **options.pop("guidance", {})}
    given = {"embedder": HashingEmbedder(64), "config": {"guidance": guidance}, **options}
    return Monitor(goal="make the app run", store=path, session=session, **given)


def ran(m: Monitor, command: str, result: str = "ok", *, error: bool = False) -> Decision:
    call = m.tool_call("Bash", {"command": command})
    m.tool_result(result, error=error, call=call)
    return m.decide()


def solve(m: Monitor) -> None:
    ran(m, "python app.py", MISSING, error=True)
    ran(m, "pip install pyyaml", "Successfully installed pyyaml-6.0")
    ran(m, "python app.py")


def known(decision: Decision) -> str | None:
    return next((found.why for found in decision.findings if found.rule == "known_error" and found.active), None)
