"""The table within a text."""

from __future__ import annotations

import pytest

from coherence.detect.text_tables import table_of


@pytest.mark.parametrize(
    ("text", "head", "rows"),
    [
        ("a;b\n1;2\n3;4", ["a", "b"], 2),
        ("Report of May\nname | seats\n-----|-----\nHeron | 12\nLynx | 8", ["name", "seats"], 2),
        ("           lift  dish\nMerrow     5     11\nKestrel    7     12", ["", "lift", "dish"], 2),
        (
            "UNIT      STATE       SINCE\nweb-1     UP          9d\ndb-main-7 READ_ONLY - 2d",
            ["UNIT", "STATE", "SINCE"],
            1,
        ),
        ("kind,vegan\nBrie,no\nTofu,yes\nSkyr,no", ["kind", "vegan"], 3),
    ],
)
def test_table_of_finds_head_and_rows(text: str, head: list[str], rows: int) -> None:
    found = table_of(text.split("\n"))
    assert found is not None
    assert found[0] == head
    assert len(found[1]) >= rows


@pytest.mark.parametrize(
    "text",
    [
        "Dear Ann,\nthank you, Bo,\nfor 2 tickets,",
        "e91  Tom  Tue  ok\n77a  Ruth  Tue  ok\n0d5  Tom  Mon  ok",
        "a: 1\nb: 2",
        "",
    ],
)
def test_table_of_takes_no_list_for_a_table(text: str) -> None:
    assert table_of(text.split("\n")) is None
