"""Comparison of costs with those of an earlier version: what counts as risen, and a base that is not there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

BENCH = Path(__file__).parent / "bench"


@pytest.fixture
def regression(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.syspath_prepend(str(BENCH))
    import regression

    yield regression
    sys.modules.pop("regression")


@pytest.mark.parametrize(
    ("now", "risen"),
    [
        ([11.5, 11.2, 11.1], 1),  # more than a tenth in every pair
        ([11.5, 11.2, 10.9], 0),  # not in the last
        ([9.0, 9.0, 9.0], 0),
    ],
)
def test_main_a_cost_has_risen_where_it_is_a_tenth_higher_in_every_pair(
    regression: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, now: list[float], risen: int
) -> None:
    found = iter([each for new in now for each in ({"a": 10.0}, {"a": new})])
    monkeypatch.setattr(regression, "measure", lambda tree: next(found))
    monkeypatch.setattr(regression, "checked_out", lambda commit: nullcontext(tmp_path))
    written = tmp_path / "costs.json"
    assert regression.main("HEAD", len(now), written) == risen  # type: ignore[attr-defined]
    assert json.loads(written.read_text())["costs"]["a"]["before"] == 10.0


def test_main_a_base_that_this_clone_does_not_have_is_said(
    regression: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regression.main("0" * 40, 1, None) == 0  # type: ignore[attr-defined]
    assert "is not in this clone" in capsys.readouterr().out
