"""Wrapped calls that are drawn by their arguments: one id, one configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coherence.guard import current_patch
from coherence.guard.trigger import Override
from guard.helpers import Boom, Both, patched


def drawn_by(folder: Path, call_id: Any) -> tuple[list[tuple[int, bool]], dict[str, int]]:
    """Return which calls a patch served, by their argument, and what failed; each of 8 arguments comes 5 times."""
    memory = Both()
    thresholds = {"a": Override(failures=2)}
    with patched(folder / "guard.db", memory, thresholds=thresholds, canary_share=0.5) as guard:
        served = []

        @guard.wrap(agent="a", call_id=call_id)
        def node(thread: int, *, fails: bool = False) -> None:
            served.append((thread, current_patch() is not None))
            if fails:
                raise Boom("no")

        for _ in range(2):
            with pytest.raises(Boom):
                node(0, fails=True)
        for _ in range(5):
            node(0)  # the first calls of a patch are its own, whatever their id
        served.clear()
        for number in range(40):
            node(number % 8)
        return served, guard.errors


def test_wrap_calls_with_one_id_are_served_by_one_configuration(tmp_path: Path) -> None:
    served, errors = drawn_by(tmp_path, lambda thread, fails=False: f"thread {thread}")
    assert errors == {}
    assert len(set(served)) == 8 and {patched for _, patched in served} == {True, False}


@pytest.mark.parametrize(
    ("call_id", "trouble"),
    [
        (lambda: "takes no argument", "call_id: TypeError"),
        (lambda thread, fails=False: thread, "call_id: TypeError"),
        (lambda thread, fails=False: None, ""),
        (None, ""),
    ],
)
def test_wrap_calls_without_an_id_get_one_each(tmp_path: Path, call_id: Any, trouble: str) -> None:
    served, errors = drawn_by(tmp_path, call_id)
    assert len(set(served)) > 8
    assert errors == ({trouble: 47} if trouble else {})  # 2 that fail, the first 5, and 40
