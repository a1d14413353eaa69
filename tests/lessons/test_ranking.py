"""From candidates to an order: laws that hold whatever the weights are."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coherence.lessons import names as naming
from coherence.lessons import ranking
from coherence.lessons.normal import ErrorShape, Slot
from coherence.lessons.ranking import judge, kind_chances, rank
from coherence.lessons.records import Hit, Known

SIGNATURE = b"8 bytes."


def shape(name: str = "yaml", **changes: Any) -> ErrorShape:
    made = ErrorShape(
        exception="ModuleNotFoundError",
        template="ModuleNotFoundError: No module named <name>",
        text=f"ModuleNotFoundError: No module named '{name}'",
        slots=(Slot("name", name),),
        signature=SIGNATURE,
        prose=False,
        weak=False,
    )
    return replace(made, **changes)


def known(id: int = 1, fix: str = "install it", name: str = "yaml", **changes: Any) -> Known:
    error = f"No module named '{name}'"
    made = Known(id=id, pattern="missing module", tool="Bash", error_text=error, fix_text=fix, shape=shape(name))
    return replace(made, **changes)


def equal(*lessons: Known) -> list[Hit]:
    return [Hit(lesson, equal=True) for lesson in lessons]


def test_rank_equal_names_before_other_names() -> None:
    hits = equal(known(1, "first", "numpy"), known(2, "second", "yaml"))
    found = rank(shape("yaml"), "", "Bash", hits, 5, least=0.0)
    assert [(lesson.id, lesson.match) for lesson in found] == [(2, "exact"), (1, "shape")]
    assert found[0].similarity > found[1].similarity
    assert found[0].similarity >= ranking.LEAST


def test_rank_records_decide_between_equal_lessons_and_then_the_newer_one() -> None:
    hits = equal(known(1, "a"), known(2, "b", failed=1), known(3, "c"), known(4, "d", helped=3, failed=1))
    found = rank(shape(), "", "Bash", hits, 9, least=0.0)
    assert [lesson.id for lesson in found] == [3, 1, 4, 2]  # factors 1, 1, (3 + 2) / 6, 2 / 3
    random.Random(1).shuffle(hits)
    assert rank(shape(), "", "Bash", hits, 9, least=0.0) == found


def test_rank_equal_fixes_are_said_once_by_the_best_lesson() -> None:
    hits = equal(known(1, tool="Bash"), known(2, tool="Shell"), known(3, "another"))
    assert {lesson.id for lesson in rank(shape(), "", "Bash", hits, 9, least=0.0)} == {1, 3}


def test_rank_retired_lessons_and_fixes_that_cannot_be_refilled_are_left_out() -> None:
    nameless = shape(slots=())
    hits = [*equal(known(1, "a", retired=True)), Hit(known(2, "uv add yaml"), equal=False, cosine=0.9)]
    assert rank(nameless, "", "Bash", hits, 9, least=0.0) == []


def named(lesson: Known, **changes: Any) -> Hit:
    """A candidate that names what the question names, in slot and fix."""
    return replace(Hit(lesson, equal=False, named=1.0, slotted=1.0, met=1.0, cosine=0.8), **changes)


def test_rank_a_lesson_for_this_very_name_wins_over_a_fix_taken_over_from_another() -> None:
    other = Hit(known(1, "uv add numpy", "numpy"), equal=True, cosine=0.9)
    own = named(known(2, "uv add pyyaml", "yaml", shape=shape("yaml", signature=b"another.")))
    found = rank(shape("yaml"), "No module named yaml", "Bash", [other, own], 5, least=0.0)
    assert [(lesson.id, lesson.fix_text) for lesson in found] == [(2, "uv add pyyaml"), (1, "uv add yaml")]


def test_rank_a_fix_that_quotes_what_the_question_lacks_loses_against_one_that_does_not() -> None:
    asked = shape("yaml")
    lacking = named(known(1, "write other", "yaml"), equal=True, lacking=frozenset({naming._number("other")}))
    own = named(known(2, "write yaml", "yaml"))
    assert [each.id for each in rank(asked, "", "Bash", [lacking, own], 5, least=0.0)] == [2, 1]
    assert naming.still_lacking("write other", lacking.lacking)
    assert not naming.still_lacking("write yaml", lacking.lacking)


def test_rank_below_the_threshold_nothing_is_said() -> None:
    hit = Hit(known(1, "a", "numpy"), equal=False, cosine=0.0)
    asked = shape("hosts", exception="ENOENT", template="ENOENT: <path>", text="ENOENT: hosts", signature=b"another.")
    assert rank(asked, "", None, [hit], 3) == []
    (lesson,) = rank(asked, "", None, [hit], 3, least=0.0)
    assert lesson.match == "similar"
    assert lesson.similarity < ranking.LEAST


@given(st.floats(-1, 1), st.floats(-1, 1), st.booleans(), st.sampled_from([None, "Bash", "bash", "Edit"]))
def test_kind_chances_more_agreement_never_lowers_the_chance_of_the_kind(
    one: float, other: float, prose: bool, tool: str | None
) -> None:
    asked = shape("numpy", prose=prose, signature=b"another.")
    low, high = (
        kind_chances(asked, tool, [Hit(known(), equal=False, cosine=cosine)])[0] for cosine in sorted((one, other))
    )
    assert 0.0 <= low <= high <= 1.0
    (same,) = kind_chances(asked, "Bash", [Hit(known(), equal=False, cosine=one)])
    assert same >= kind_chances(asked, "Edit", [Hit(known(), equal=False, cosine=one)])[0]


@given(st.lists(st.tuples(st.floats(0, 1.25), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5))
def test_judge_more_names_in_common_never_lower_the_similarity(shares: list[tuple[float, float, float]]) -> None:
    hits = [
        Hit(known(at, f"fix {at}"), equal=True, named=share[0], slotted=share[1], met=share[2])
        for at, share in enumerate(shares)
    ]
    judged = judge(shape(), "", None, hits, 0.0)
    assert [each.hit for each in judged] == hits
    for one in judged:
        for two in judged:
            if all(a >= b for a, b in zip(shares[one.hit.known.id], shares[two.hit.known.id], strict=True)):
                assert one.chance >= two.chance


def test_ranking_weights_have_the_sign_of_their_features() -> None:
    assert all(weight >= 0 for weight in (*ranking.KIND[1:], *ranking.PROSE[1:]))
    falling = (4, 7)  # names of another error
    free = (2, 3)  # an error without names, and a fix that was taken over
    for weights in (ranking.ORDER, ranking.SURE[1:]):
        assert all((weight <= 0) == (at in falling) for at, weight in enumerate(weights) if weight and at not in free)
