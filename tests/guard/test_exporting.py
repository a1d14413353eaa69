from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path

from coherence.guard import Guard
from coherence.guard.exporting import export_trail
from guard.helpers import BOUNDS, Boom, Clock, Memory, Proposes, failing


def test_calls_and_decisions_come_in_their_order_each_once(tmp_path: Path) -> None:
    memory = Memory()
    agent = failing(lambda level: 0.5, memory)
    with Guard(
        store=tmp_path / "guard.db", strategy=Proposes({"level": 2}), config_adapter=memory, bounds=BOUNDS,
        clock=Clock(1.0),
    ) as guard:  # fmt: skip
        for _ in range(1200):  # more than a page
            with suppress(Boom):
                guard.run(agent, agent="a", task="answer")
        guard.flush()
        assert guard.store is not None
        file = io.BytesIO()
        count = export_trail(guard.store, "a", file)
        assert export_trail(guard.store, "nobody", io.BytesIO()) == 0
    rows = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [row["seq"] for row in rows] == list(range(1, count + 1))
    assert sum(row["kind"] == "call" for row in rows) == 1200
    accepted = next(row for row in rows if row["kind"] == "accepted")
    assert (accepted["patch"], accepted["backup"]) == ({"level": 2}, {"level": 1})
    assert rows[0]["task"] == "answer"
