"""Refusals of ``check``, for calls and runs that somebody wrote without sight of the rules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench" / "gate.py"


@pytest.fixture(scope="module")
def gate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gate", BENCH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_check_refuses_harmful_calls_and_passes_harmless_ones(gate: ModuleType) -> None:
    rows = gate.rows("destructive")
    wrong = [row["arguments"] for row in rows if gate.is_refused(row) != row["harmful"]]
    assert len(rows) == 120 and wrong == []


def test_check_and_warnings_see_what_breaks_a_prohibition_and_nothing_of_what_keeps_it(gate: ModuleType) -> None:
    rows = gate.rows("forbidden")
    assert [gate.is_seen(row, row["kept"]) for row in rows] == [False] * 20
    missed = [row["goal"][:30] for row in rows if not gate.is_seen(row, row["broken"])]
    # a promise of money in other words, and prices of one part of a page: both need what words mean
    assert missed == ["Schreib eine Antwort an Frau Y", "Publica la nueva carta del res"]


@pytest.mark.slow
def test_check_and_warnings_see_as_many_broken_prohibitions_of_another_writer_as_ever(gate: ModuleType) -> None:
    rows = gate.rows("forbidden_2")
    assert sum(gate.is_seen(row, row["broken"]) for row in rows) >= 53  # of 60
    assert sum(gate.is_seen(row, row["kept"]) for row in rows) <= 1  # of 60
