"""Scales, and the files that hold them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coherence.core.readings import FrozenDict
from coherence.core.scale import Curve, Scale, read_scale, scale_text

SCALE = Scale(
    name="mine-1",
    embedder="e-1",
    base=-4.5,
    curves=FrozenDict(stall=Curve((0.0, 0.5, 1.0), (0.0, 1.0, 1.0))),
    asks=FrozenDict(blind_edit="guide"),
    scatter=FrozenDict(goal_drift=0.1),
)


def test_curve_at_is_a_line_between_points_and_level_outside() -> None:
    curve = Curve((0.25, 0.75), (0.0, 2.0))
    # a quarter of the way from 0.25 to 0.75 is 0.375: a quarter of 2
    assert [curve.at(value) for value in (-1.0, 0.25, 0.375, 0.75, 9.0)] == [0.0, 0.0, 0.5, 2.0, 2.0]
    assert curve.most == 2.0


@pytest.mark.parametrize(
    ("values", "log_odds", "says"),
    [
        ((0.5,), (0.0,), "two or more"),
        ((0.0, 1.0), (0.0, 1.0, 2.0), "as many log odds as values"),
        ((0.5, 0.5), (0.0, 1.0), "must rise"),
        ((0.0, 0.5, 1.0), (0.0, 2.0, 1.0), "not fall"),
        ((0.0, 1.0), (0.5, 1.0), "begin at 0"),
    ],
)
def test_curve_one_that_is_none_is_refused(values: tuple[float, ...], log_odds: tuple[float, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Curve(values, log_odds)


def test_read_scale_gives_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "scale.json"
    path.write_text(scale_text(SCALE), "utf-8")
    assert read_scale(path) == read_scale(str(path)) == SCALE
    assert hash(read_scale(path)) == hash(SCALE)


def changed(**more: object) -> str:
    return json.dumps({**json.loads(scale_text(SCALE)), **more})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "holds no scale"),
        ("\xff", "holds no scale"),
        ('{"name": "x"}', "missing required field `embedder`"),
        (changed(base="low"), r"Expected `float`, got `str` - at `\$.base`"),
        (changed(curves={"stall": {"values": [0, 1], "log_odds": [0, -1]}}), "must begin at 0 and not fall"),
        (changed(asks={"blind_edit": "shout"}), "Invalid enum value 'shout'"),
    ],
)
def test_read_scale_a_file_that_holds_none_is_named_with_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "scale.json"
    path.write_text(text, "latin-1")
    with pytest.raises(ValueError, match=says) as raised:
        read_scale(path)
    assert str(path) in str(raised.value) and "coherence calibrate" in str(raised.value)


def test_read_scale_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.json: No such file.*`coherence calibrate`"):
        read_scale(tmp_path / "none.json")
