"""Shell text is parsed in linear time, and the same text always in the same way."""

from __future__ import annotations

import pytest
from growth import spent

from coherence.policy.danger.shell import parse

RECOVERS = ["|", "<[{(", "[a](", "a(b)", "(a|b)", "<<EOF\n", "E   assert 1 == 2\n", "case a in b) c;; "]
"""Behind these the parser reads to the end of the text again and again."""


@pytest.mark.parametrize("piece", RECOVERS)
def test_parse_gives_up_where_the_parser_would_take_quadratic_time(piece: str) -> None:
    assert parse((piece * (50_000 // len(piece))).encode()) is None


@pytest.mark.parametrize(
    "piece", ["ls -l | grep x > y; ", "for i in a; do echo $i; done\n", "a=1;", "$(", "{a,", "'", "é "]
)
def test_parse_reads_long_texts_of_other_shapes(piece: str) -> None:
    root = parse((piece * (50_000 // len(piece))).encode())
    assert root is not None
    assert root.end_byte > 0


@pytest.mark.slow
@pytest.mark.parametrize("piece", RECOVERS)
def test_parse_takes_linear_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert spent(lambda given: parse(given.encode()), text) < 0.5  # 0.05 s on a quiet machine; it was 20 s
