"""A store as real agents leave it: troubled and calm sessions, a fleet, guidance, lessons, a guard and its patches."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from coherence import Fleet, Monitor
from coherence.guard import Bound, Bounds, Guard, Override, Trace
from coherence.lessons import LessonStore

BROKEN = "Error response from daemon: driver failed programming external connectivity on endpoint web"
MISSING = "ModuleNotFoundError: No module named 'yaml'"
WORK = [
    ("Bash", {"command": "pytest -q"}, MISSING, True),
    ("Bash", {"command": "pytest -q"}, MISSING, True),
    ("Bash", {"command": "pytest -q"}, MISSING, True),
    ("Read", {"path": "requirements.txt"}, "rich\nclick", False),
    ("Bash", {"command": "pip install pyyaml"}, "Successfully installed pyyaml", False),
    ("Bash", {"command": "pytest -q"}, "12 passed", False),
]
FIXES = [
    ("docker compose up -d", BROKEN, True),
    ("systemctl restart docker", "", False),
    ("docker compose up -d", "Container web  Started", False),
]


def record_all(path: Path) -> None:
    """Write the whole store."""
    record_builder(path)
    record_lessons(path)
    record_fleet(path)
    record_guard(path)


def record_builder(path: Path, session: str = "monday") -> None:
    """Write a session that fails the same way again and again, is told so, and ends with a claim."""
    with Monitor(agent="builder", session=session, store=path, embedder=False) as m:
        m.message("user", "Make the test suite pass. Do not touch the lock file.")
        for tool, arguments, output, failed in WORK:
            if m.check(tool, arguments):
                call = m.tool_call(tool, arguments)
                m.tool_result(output, error=failed, call=call)
            decision = m.decide()
            if decision.guidance:
                m.delivered(decision.guidance)
        m.message("assistant", "All 12 tests pass. I also updated the lock file.")
        m.decide()
        m.outcome(True)


def record_calm(path: Path, agent: str = "reader", session: str = "calm", steps: int = 8) -> None:
    """Write a session in which nothing is wrong."""
    with Monitor(agent=agent, session=session, store=path, embedder=False) as m:
        m.message("user", "Read the files and tell what they are about.")
        for number in range(steps):
            call = m.tool_call("Read", {"path": f"chapter_{number}.md"})
            m.tool_result(f"Chapter {number}: the story of harbour number {number * 7} goes on.", call=call)
            m.decide()


def record_lessons(path: Path) -> None:
    """Write a lesson by hand, and one that a watched agent learns and is told the day after."""
    with LessonStore(path, embedder=False) as lessons:
        lessons.record(
            pattern="PortInUse",
            error_text="OSError: [Errno 98] Address already in use: ('127.0.0.1', 8000)",
            fix_text="lsof -ti :8000 | xargs kill",
            tool="Bash",
        )
        for session in ("first", "second"):
            config = {"guidance": {"randomise": False}}
            with Monitor(
                agent="deployer", session=session, store=path, lessons=lessons, config=config, embedder=False
            ) as m:
                for command, output, failed in FIXES:
                    call = m.tool_call("Bash", {"command": command})
                    m.tool_result(output, error=failed, call=call)
                    guidance = m.decide().guidance
                    if guidance:
                        m.delivered(guidance)


def record_fleet(path: Path) -> None:
    """Write three agents that rely on one another, the first one in trouble."""
    with Fleet(store=path, embedder=False) as fleet:
        researcher, planner, lead = (fleet.agent(name) for name in ("researcher", "planner", "lead"))
        fleet.add_edge("researcher", "planner", trust_weight=0.8)
        fleet.add_edge("planner", "lead", trust_weight=0.9, fixed=True)
        lead.message("user", "Plan the launch.")
        researcher.message("user", "Find the launch date.")
        for attempt in range(7):
            researcher.tool_call("search", {"query": f"launch date {attempt}"})
            researcher.tool_result("503 service unavailable", error=True)
            researcher.decide()
        for each in (planner, lead):
            each.message("assistant", "I wait for the launch date.")
            each.decide()
        with Monitor(agent="scout", session="errand", store=path, embedder=False, parent="researcher") as scout:
            scout.message("user", "Look at the calendar for the launch date.")
            scout.tool_call("calendar", {"month": "May"})
            scout.tool_result("nothing planned", duration_s=0.34)
            scout.usage(tokens_in=1200, tokens_out=80, cost_usd=0.0042, model="small-model")
            scout.decide()


def record_guard(path: Path) -> None:
    """Write an agent under guard: a patch that harms is rolled back, one that helps stays."""
    settings: dict[str, dict[str, Any]] = {"support": {"retries": 1, "timeout_s": 10}}
    chance = random.Random(3)

    def answer(ticket: int) -> str:
        config = settings["support"]
        if config["retries"] > 2 and chance.random() < 0.6:
            raise ConnectionError("429 too many requests")
        if ticket > 200 and config["timeout_s"] < 30 and chance.random() < 0.3:
            raise TimeoutError(f"no answer within {config['timeout_s']} s")
        return "solved"

    class Settings:
        """Owns the configuration."""

        def get_config(self, *, agent_id: str) -> Mapping[str, Any]:
            return dict(settings[agent_id])

        def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
            settings[agent_id] |= config_patch
            return True

        def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
            settings[agent_id] = dict(backup_config)

    class Ideas:
        """Proposes one patch after the other, where the newest failures are timeouts."""

        def __init__(self) -> None:
            self.left: list[dict[str, Any]] = [{"timeout_s": 60}, {"retries": 5}]

        def analyze(
            self, *, agent_id: str, traces: Sequence[Trace], before_metrics: Mapping[str, float | None]
        ) -> Mapping[str, Any] | None:
            slow = sum("TimeoutError" in (trace.error or "") for trace in traces)
            return self.left.pop() if slow >= 5 and self.left else None

    with Guard(
        store=path,
        strategy=Ideas(),
        config_adapter=Settings(),
        bounds=Bounds({"retries": Bound(least=0, most=5, whole=True), "timeout_s": Bound(least=1, most=60)}),
        thresholds={"support": Override(failures=5, cooldown_h=0)},
    ) as guard:
        for ticket in range(1, 801):
            try:
                guard.run(partial(answer, ticket), agent="support", task=f"ticket {ticket}")
            except (ConnectionError, TimeoutError):
                continue
