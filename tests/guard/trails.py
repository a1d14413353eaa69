"""Trails of real guards, for tests of what reads them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from coherence.guard import Guard, current_patch
from coherence.guard.export import export_trail
from coherence.guard.verifier import VerifiedAgent, verify_agent
from coherence.store.store import Store
from guard.helpers import BOUNDS, Boom, Clock, Memory, failing

Row = dict[str, Any]


class Stuck(Memory):
    """Fails to restore twice each time."""

    failures = 0

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> object:
        self.failures += 1
        if self.failures % 3:
            raise OSError("disk full")
        return super().rollback_config(agent_id=agent_id, backup_config=backup_config)


class Varies:
    """Proposes another level each time."""

    level = 1

    def analyze(self, **_: Any) -> dict[str, Any]:
        self.level = 2 + (self.level - 1) % 8
        return {"level": self.level}


def exported(store: Store, agent: str = "a") -> list[Row]:
    file = io.BytesIO()
    export_trail(store, agent, file)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def verified(store: Store, agent: str = "a") -> VerifiedAgent:
    """Check a trail; its chain is intact in any case."""
    assert store.verify() == []
    return verify_agent(store, agent)


def trail(
    folder: Path,
    memory: Memory,
    rate_of: Callable[[int], float],
    *,
    calls: int = 600,
    act: Callable[[Guard, int], None] = lambda guard, call: None,
    seed: int = 1,
    **options: Any,
) -> list[Row]:
    """Return the trail of an agent whose level is patched from 1 to 2, 3 and so on; ``act`` runs after each call."""
    served = Memory()
    agent = failing(rate_of, served, seed)

    def run() -> str:
        served.config = {**memory.config, **(current_patch() or {})}
        return agent()

    with Guard(
        store=folder / "guard.db", strategy=Varies(), config_adapter=memory, bounds=BOUNDS,
        clock=Clock(), **options,
    ) as guard:  # fmt: skip
        for call in range(calls):
            with suppress(Boom):
                guard.run(run, agent="a")
            act(guard, call)
        guard.flush()
        assert guard.store is not None
        return exported(guard.store)


def at(rows: list[Row], kind: str, **fields: Any) -> int:
    """Return where the first entry of a kind with these fields is."""
    return next(
        place
        for place, row in enumerate(rows)
        if row["kind"] == kind and all(row[name] == value for name, value in fields.items())
    )
