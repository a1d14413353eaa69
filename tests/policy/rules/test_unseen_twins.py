"""Pairs of right and wrong statements whose writers never saw the rules: what is told stays told."""

from __future__ import annotations

import pytest
from unseen_twins import judge_twin, read_twins

FLOORS = {"answers": (0.77, 0.04), "answers_2": (0.48, 0.17), "claims": (0.65, 0.05), "claims_2": (0.52, 0.05)}
"""Share of the wrong statements that are flagged at least, and of the right ones at most."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOORS)
def test_claims_of_writers_who_never_saw_the_rules_are_told_as_well_as_ever(name: str) -> None:
    judged = [each for line, twin in enumerate(read_twins(name)) for each in judge_twin(line, twin)]
    flagged = {wrong: [each.strength > 0 for each in judged if each.wrong is wrong] for wrong in (True, False)}
    least, most = FLOORS[name]
    assert sum(flagged[True]) >= least * len(flagged[True])
    assert sum(flagged[False]) <= most * len(flagged[False])
