"""The state router as the strategy: six lines from a monitor's measures and the guard's counts, and what follows.

The agent is a stand-in; everything else is real.
"""

import tempfile
from contextlib import suppress
from functools import partial
from typing import Any

from coherence import Monitor
from coherence.guard import Bound, Bounds, Guard
from coherence.guard.router import StateRouter, measures_of

settings: dict[str, Any] = {"fallback": False, "timeout_factor": 1.0}


class Settings:
    """Owns the configuration; what its entries mean is the agent's business."""

    def get_config(self, *, agent_id: str) -> dict[str, Any]:
        return dict(settings)

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
        settings.update(config_patch)
        return True

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
        settings.update(backup_config)


def build(monitor: Monitor, number: int) -> None:
    """Stand in for an agent whose package index breaks down after 100 builds; the fallback is a mirror."""
    call = monitor.tool_call("Bash", {"command": f"make package-{number}"})
    if number > 100 and number % 2 and not settings["fallback"]:
        monitor.tool_result("ConnectionError: index.example.org does not answer", error=True, call=call)
        raise ConnectionError("index.example.org does not answer")
    monitor.tool_result(f"package-{number} is built", call=call)


router = StateRouter(keys=list(settings))  # the entries that this agent's configuration has
with (
    tempfile.TemporaryDirectory() as folder,
    Monitor(agent="builder", goal="Build all packages", embedder=False) as monitor,
    Guard(
        store=f"{folder}/guard.db",
        strategy=router,
        config_adapter=Settings(),
        bounds=Bounds({"fallback": Bound(choices=(True, False)), "timeout_factor": Bound(least=1.0, most=1.25)}),
        monitor=monitor,
        measures=lambda: measures_of(monitor.result),
        notifier=lambda notice: print(f"told: {notice.kind} {notice.patch}"),
    ) as guard,
):
    for number in range(1, 1_201):
        with suppress(ConnectionError):
            guard.run(partial(build, monitor, number), agent="builder", task="build a package")
        if number in (100, 110, 1_200):
            state = router.diagnose(traces=guard.traces("builder"), before_metrics=measures_of(monitor.result))
            weak = [f"{line.name} {line.score:.2f}" for line in state.lines if line.score is not None and line.cautious]
            print(f"after {number} builds: state {state.code}, weak: {', '.join(weak) or 'nothing'}")
    print("in force:", settings)

assert settings == {"fallback": True, "timeout_factor": 1.25}
