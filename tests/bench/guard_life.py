"""Agents that live under a whole ``Guard``, for the bench and the tests: their calls and both clocks are simulated."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias
from unittest import mock

from guard_cost import MEMORY

from coherence.core.readings import Band
from coherence.guard import Guard, Notice, current_patch
from coherence.guard import measure as measuring
from coherence.guard.baseline import CallOutcome
from coherence.guard.bounds import Bound, Bounds
from coherence.guard.patch_events import Policy
from coherence.guard.traces import Trace
from coherence.guard.trigger import Override

BEFORE = 500
"""Calls before a patch."""
BURST = 5
APART_S = 5400.0
"""Between the calls before the burst: more than the window of an hour, so that the burst alone calls for a patch."""
LIVES_A_GUARD = 50
MOST = 7000
"""Calls after which a patch without a verdict counts as open; the guard gives up at 6,000."""
SHARE: float = inspect.signature(Guard).parameters["canary_share"].default
"""Of calls that a patch on trial serves: what a guard does if nobody says otherwise."""
OFTEN = "often"
"""The agent that has several patches."""

Canary: TypeAlias = Literal["hash", "slices"]


class Calls(Protocol):
    """Kind of an agent's calls."""

    def call(self, chance: random.Random) -> CallOutcome:
        """Return one call."""
        ...


class Failed(Exception):
    """A call that failed."""


class Reading(NamedTuple):
    """Reading of a monitor, as the guard sees it."""

    tick_seq: int
    coherence_index: float
    coverage: float = 1.0
    band: Band = Band.GREEN


class Host:
    """Owns the configurations of simulated agents, proposes patches, is told, measures, and keeps the time."""

    def __init__(self, serves_both: bool) -> None:
        self.serves_both = serves_both
        self.levels: dict[str, int] = {}
        self.proposed: dict[str, int] = {}
        self.proposes = False
        self.ended = ""
        """The notice that ended the newest trial."""
        self.decays = 0
        self.wall_s, self.span_s = 1_700_000_000.0, 0.0
        self.latest: Reading | None = None

    def get_config(self, *, agent_id: str) -> dict[str, Any]:
        return {"level": self.levels[agent_id]}

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
        self.levels[agent_id] = config_patch["level"]
        return True

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
        self.levels[agent_id] = backup_config["level"]

    def analyze(
        self, *, agent_id: str, traces: Sequence[Trace], before_metrics: Mapping[str, float | None]
    ) -> dict[str, Any] | None:
        if not self.proposes:
            return None
        self.proposed[agent_id] = self.proposed.get(agent_id, 1) + 1
        return {"level": self.proposed[agent_id]}

    def notify(self, notice: Notice) -> None:
        if notice.kind in ("ending", "dropped", "confirmed"):
            self.ended = notice.kind
        self.decays += notice.kind == "decayed"

    def decide(self) -> None:
        """Nothing is left to be measured."""


class Lived(NamedTuple):
    """End of a trial."""

    how: Literal["rolled back", "promoted", "open"]
    patched: int
    """Calls that the patch served until then."""
    calls: int
    """All calls since the burst."""


class Life:
    """One agent under guard."""

    def __init__(self, guard: Guard, host: Host, name: str, chance: random.Random) -> None:
        self.guard, self.host, self.name, self.chance = guard, host, name, chance
        self.calls = 0
        host.levels[name] = 1

    def call(self, world: Calls, success: bool | None = None, *, patched: Calls | None = None) -> bool:
        """Call the agent, with its success drawn or given; return whether a patch served the call.

        ``patched`` is what calls are like under its first patch, and every second one from there on.
        """
        host, level = self.host, 1

        def agent() -> CallOutcome:
            nonlocal level
            level = (current_patch() or host.get_config(agent_id=self.name))["level"]
            outcome = (patched if level % 2 == 0 and patched is not None else world).call(self.chance)
            host.span_s += outcome.latency_s or 0.0
            if outcome.index is not None:
                host.latest = Reading(self.calls, outcome.index)
            if not (outcome.success if success is None else success):
                raise Failed
            return outcome

        self.calls += 1
        host.wall_s += 1.0
        with suppress(Failed):
            self.guard.run(agent, agent=self.name, call_id=f"{self.name}/{self.calls}")
        return level > 1

    def until_patch(self, world: Calls, calls: int = BEFORE) -> None:
        """Live until a patch is on trial."""
        host, host.proposes, host.ended = self.host, False, ""
        for _ in range(calls):
            host.wall_s += APART_S
            self.call(world)
        host.proposes = True
        while self.guard.status(self.name).phase == "idle":
            self.call(world, success=False)

    def trial(self, world: Calls, patched: Calls) -> Lived:
        """Live until there is a verdict."""
        begun, served = self.calls, 0
        while not self.host.ended and self.calls - begun < MOST:
            served += self.call(world, patched=patched)
        how: Literal["rolled back", "promoted", "open"] = "rolled back"
        if self.host.ended in ("", "confirmed"):
            how = "promoted" if self.host.ended else "open"
        return Lived(how, served, self.calls - begun)


@contextmanager
def guarded(
    canary: Canary = "hash", policy: Policy = "sequential", share: float = SHARE
) -> Iterator[tuple[Guard, Host]]:
    """Open a guard on a new store, in memory if there is a folder for it."""
    host = Host(canary == "hash")
    spans = SimpleNamespace(perf_counter=lambda: host.span_s)
    once = Override(failures=BURST, window_h=1, cooldown_h=8760)
    overrides = dict.fromkeys((f"life {number}" for number in range(LIVES_A_GUARD)), once)
    thresholds = {**overrides, OFTEN: Override(failures=BURST, cooldown_h=3)}
    with (
        TemporaryDirectory(dir=MEMORY) as folder,
        mock.patch.object(measuring, "time", spans),
        Guard(
            store=Path(folder) / "guard.db",
            strategy=host,
            config_adapter=host,
            notifier=host,
            policy=policy,
            canary_share=share,
            bounds=Bounds({"level": Bound(least=0, most=1000)}),
            thresholds=thresholds,
            monitor=host,  # type: ignore[arg-type]
            cost_of=lambda outcome: outcome.cost,
            clock=lambda: host.wall_s,
        ) as guard,
    ):
        yield guard, host
        troubles = guard.errors.keys() - {"clock: the clock went back"}  # some lives set it back
        if troubles:
            raise RuntimeError(f"the guard had troubles: {troubles}")


def each(
    seed: int, lives: int, canary: Canary = "hash", policy: Policy = "sequential", share: float = SHARE
) -> Iterator[tuple[Life, random.Random]]:
    """Yield agents to live, some for each guard."""
    chance = random.Random(seed)
    for begin in range(0, lives, LIVES_A_GUARD):
        with guarded(canary, policy, share) as (guard, host):
            for number in range(min(LIVES_A_GUARD, lives - begin)):
                yield Life(guard, host, f"life {number}", chance), chance
