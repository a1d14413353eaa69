from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest

from coherence.core.validation import clean
from coherence.guard import Guard
from coherence.guard.export import MAX_LINE, TrailError, export_trail, read_entries
from coherence.guard.patch_events import Decision
from coherence.guard.traces import read_account
from guard.helpers import BOUNDS, Boom, Clock, Memory, Proposes, failing

CALL: dict[str, Any] = {
    "kind": "call", "agent": "a", "seq": 1, "at": 0.0, "success": True, "duration_s": 1.0, "cost": None, "index": None,
    "epoch": 0, "patched": False,
}  # fmt: skip


def lines(*entries: dict[str, Any] | bytes) -> io.BytesIO:
    return io.BytesIO(b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in entries))


@pytest.mark.slow
def test_export_trail_calls_and_decisions_come_in_their_order_each_once(tmp_path: Path) -> None:
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
        account = read_account(guard.store, "a")
    rows = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [row["seq"] for row in rows] == list(range(1, count + 1))
    assert sum(row["kind"] == "call" for row in rows) == 1200
    accepted = next(row for row in rows if row["kind"] == "accepted")
    assert (accepted["patch"], accepted["backup"]) == ({"level": 2}, {"level": 1})
    assert rows[0]["task"] == "answer"
    assert {row["agent"] for row in rows} == {"a"}
    file.seek(0)
    again = type(account)()
    for entry in read_entries(file):
        assert entry.happening is not None
        again.observe(entry.at, entry.happening)
    assert again == account  # nothing that an account needs is lost on the way


def test_export_no_field_of_a_decision_is_hidden_by_those_of_the_line() -> None:
    for kind in get_args(Decision):
        assert not {"kind", "agent", "seq", "at", "line"} & set(kind.__struct_fields__)


def test_read_entries_an_unknown_kind_is_told_apart_and_unknown_fields_are_left_out() -> None:
    found = list(read_entries(lines(CALL | {"mood": 1}, b"", {"kind": "dreamt", "seq": 2, "at": 1.0, "x": [1]})))
    assert [(entry.line, entry.kind, entry.happening is None) for entry in found] == [
        (1, "call", False),
        (3, "dreamt", True),
    ]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (b'{"kind":"serving","se', "line 2 is no entry"),
        (b"text", "line 2 is no entry"),
        (b"[1]", "line 2 is no entry"),
        (b"\xff\xfe", "line 2 is no entry"),
        (b'{"role":"user"}', "line 2 is no entry"),
        (json.dumps(CALL | {"duration_s": float("nan")}).encode(), "line 2 is no entry"),
        (json.dumps(CALL | {"seq": 0}).encode(), "line 2 is no entry"),
        (json.dumps(CALL | {"success": "yes"}).encode(), "line 2 is no entry"),
        (json.dumps({key: CALL[key] for key in CALL if key != "epoch"}).encode(), "line 2 is no entry"),
        (b'{"kind":"proposed","seq":2,"at":1,"why":"","patch":' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "line 2 is no"),
        (b'{"kind":"ending","owner":"o","why":"w","evidence":1e999,"seq":2,"at":1.0}', "line 2 is no entry"),
        (json.dumps(CALL | {"agent": "b"}).encode(), "line 2 is about 'b'"),
        (b"x" * (MAX_LINE + 1), "line 2 is longer than"),
    ],
    ids=lambda value: clean(str(value), 30),
)
def test_read_entries_a_line_that_is_no_entry_is_named(bad: bytes, told: str) -> None:
    with pytest.raises(TrailError, match=told):
        list(read_entries(lines(CALL, bad)))
