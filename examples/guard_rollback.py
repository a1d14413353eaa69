"""Two patches of a configuration: the first one harms and is rolled back, the second one helps and stays.

The agent and its provider are stand-ins; everything else is real.
"""

import random
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from coherence.guard import Bound, Bounds, Guard, Notice, Override, Trace

settings: dict[str, dict[str, Any]] = {"support": {"retries": 1, "timeout_s": 10}}
chance = random.Random(3)


def answer(ticket: int) -> str:
    """Stand in for an agent: its provider gets slow after 200 tickets, and refuses those who retry much."""
    config = settings["support"]
    if config["retries"] > 2 and chance.random() < 0.6:
        raise ConnectionError("429 too many requests")
    if ticket > 200 and config["timeout_s"] < 30 and chance.random() < 0.3:
        raise TimeoutError(f"no answer within {config['timeout_s']} s")
    return "solved"


class Settings:
    """Owns the configuration: here a dict, in your service a file, a database or an API."""

    def get_config(self, *, agent_id: str) -> Mapping[str, Any]:
        return dict(settings[agent_id])

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
        settings[agent_id] |= config_patch
        return True  # anything but a true value means: not applied

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


def tell(notice: Notice) -> None:
    """Print what happens to a patch; the emit of a Webhook is given in the same place."""
    print(f"told: {notice.kind} {notice.patch or ''} {notice.why}".rstrip())


with (
    tempfile.TemporaryDirectory() as folder,
    Guard(
        store=f"{folder}/guard.db",
        strategy=Ideas(),
        config_adapter=Settings(),
        notifier=tell,
        bounds=Bounds({"retries": Bound(least=0, most=5, whole=True), "timeout_s": Bound(least=1, most=60)}),
        thresholds={"support": Override(failures=5, cooldown_h=0)},
    ) as guard,
):
    for ticket in range(1, 801):
        try:
            guard.run(partial(answer, ticket), agent="support", task=f"ticket {ticket}")
        except (ConnectionError, TimeoutError):
            continue
    for past in guard.history("support", limit=1000):
        if past.why:
            print(f"entry {past.seq} of the trail: {past.kind}, {past.why}")
    print("in force:", settings["support"])

assert settings["support"] == {"retries": 1, "timeout_s": 60}
