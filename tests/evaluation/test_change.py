"""The change between two sets of runs: means, intervals, verdicts, and what is not known."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from coherence.core.decisions import Decision, Finding
from coherence.core.readings import Band, Counters, FrozenDict, Reading
from coherence.evaluation.change import LEAST_RUNS, Change, Comparison, compare_runs
from coherence.providers.transcript import Step, Transcript
from coherence.report.score import ScoredRun

KIND = {Band.ORANGE: "warn", Band.RED: "block", Band.YELLOW: "guide"}


def scored(
    bands: Sequence[Band],
    *,
    index: float | None = 0.9,
    rules: Sequence[Sequence[str]] = (),
    steps: Sequence[Step] | None = None,
    group: str = "",
    form: str = "runs",
    scale: str = "s-1",
) -> ScoredRun:
    """Return a run of one step a band; ``rules`` are those that are active after each step."""
    steps = steps if steps is not None else [Step(role="assistant", content="I work.") for _ in bands]
    return ScoredRun(
        transcript=Transcript(id="r", steps=tuple(steps), group=group, format=form),
        readings=tuple(
            Reading(
                tick_seq=at,
                ts=0.0,
                metrics=FrozenDict(),
                coherence_index=None if band is Band.UNKNOWN else index,
                band=band,
                coverage=1.0,
                scale=scale,
            )
            for at, band in enumerate(bands)
        ),
        context_steps=((),) * len(bands),
        decisions=tuple(
            Decision(
                seq=at,
                kind=KIND.get(band, "continue"),  # type: ignore[arg-type]
                findings=tuple(
                    Finding(rule=rule, severity="guide", active=True, score=1.0, threshold=0.5)
                    for rule in (rules[at] if rules else ())
                ),
            )
            for at, band in enumerate(bands)
        ),
    )


GOOD = scored([Band.GREEN])
BAD = scored([Band.GREEN, Band.RED], index=0.1)


def change(found: Comparison, key: str) -> Change:
    (one,) = (each for each in found.changes if each.key == key)
    return one


def test_compare_runs_means_are_those_of_the_runs() -> None:
    mixed = [scored([Band.GREEN, Band.ORANGE], index=0.5), GOOD, GOOD, scored([Band.UNKNOWN])]
    found = compare_runs([GOOD], mixed)
    # of four runs one has no light at all: of the other three, one is orange at worst
    assert change(found, "share.orange").after.value == pytest.approx(1 / 3)
    assert change(found, "share.green").after.value == pytest.approx(2 / 3)
    assert change(found, "share.warned").after.runs == 3
    assert change(found, "share.unknown").after.value == 0.25
    # (0.5 + 0.9 + 0.9) / 3
    assert change(found, "mean_index").after.value == pytest.approx(2.3 / 3)
    assert change(found, "mean_index").difference.value == pytest.approx(2.3 / 3 - 0.9)
    # (2 + 1 + 1 + 1) / 4
    assert change(found, "steps").after.value == 1.25


def test_compare_runs_the_lights_of_all_known_runs_are_a_whole() -> None:
    runs = [GOOD, BAD, scored([Band.YELLOW]), scored([Band.ORANGE]), scored([Band.UNKNOWN])]
    found = compare_runs(runs, runs)
    shares = [change(found, f"share.{band}").before.value or 0.0 for band in ("green", "yellow", "orange", "red")]
    assert sum(shares) == pytest.approx(1.0)


def test_compare_runs_a_finding_counts_once_until_it_has_calmed_down() -> None:
    run = scored([Band.YELLOW] * 5, rules=[["loop"], ["loop"], [], ["loop", "course"], ["course"]])
    found = compare_runs([run], [GOOD])
    # loop became active at steps 0 and 3, course at 3
    assert (change(found, "findings.loop").before.value, change(found, "findings.loop").after.value) == (2.0, 0.0)
    assert change(found, "findings").before.value == 3.0


def test_compare_runs_what_nobody_recorded_is_unknown() -> None:
    told = [
        Step(role="assistant", content="I look.", usage=Counters(tokens_in=10, tokens_out=5, cost_usd=0.5)),
        Step(role="tool", content="no such file", is_error=True),
    ]
    found = compare_runs(
        [scored([Band.GREEN] * 2, steps=told)], [scored([Band.GREEN] * 2, steps=told[1:] * 2, form="openai")]
    )
    for key, before in (("cost_usd", 0.5), ("tokens", 15.0), ("failed_calls", 1.0)):
        one = change(found, key)
        assert (one.before.value, one.after.value, one.after.runs) == (before, None, 0), key
        assert (one.difference.value, one.verdict) == (None, "not known")
    assert (change(found, "calls").before.value, change(found, "calls").after.value) == (1.0, 2.0)


def test_compare_runs_tells_a_clear_change_from_chance() -> None:
    found = compare_runs([GOOD] * 12, [BAD] * 9 + [GOOD] * 3)
    warned = change(found, "share.warned")
    assert warned.verdict == "worse" and warned.difference.value == 0.75
    assert warned.difference.low is not None and 0 < warned.difference.low < 0.75
    assert change(found, "share.green").verdict == "worse"
    assert change(found, "steps").verdict == "changed", "more steps are neither better nor worse"
    assert [each.key for each in found.worse] == ["share.warned", "mean_index"]
    back = compare_runs([BAD] * 9 + [GOOD] * 3, [GOOD] * 12)
    assert change(back, "share.warned").verdict == "better" and not back.worse


def test_compare_runs_a_small_change_is_within_chance() -> None:
    found = compare_runs([GOOD] * 19 + [BAD], [GOOD] * 18 + [BAD] * 2)
    assert change(found, "share.warned").verdict == "within chance"
    assert not found.worse and not found.undecided


@pytest.mark.parametrize(("runs", "judged"), [(LEAST_RUNS - 1, False), (LEAST_RUNS, True)])
def test_compare_runs_too_few_runs_say_nothing(runs: int, judged: bool) -> None:
    found = compare_runs([GOOD] * 30, [BAD] * runs)
    warned = change(found, "share.warned")
    assert (warned.verdict == "worse") is judged
    assert warned.difference.value == 1.0, "the difference itself is shown"
    assert (warned.difference.low is None) is not judged
    assert any("too few" in note for note in found.notes) is not judged
    assert bool(found.worse) is judged and bool(found.undecided) is not judged


def test_compare_runs_runs_without_a_light_do_not_make_up_the_number() -> None:
    found = compare_runs([GOOD] * 30, [BAD] * 5 + [scored([Band.UNKNOWN])] * 25)
    assert change(found, "share.warned").after.runs == 5
    assert change(found, "share.warned").verdict == "not known"
    assert change(found, "share.unknown").verdict == "changed"


def test_compare_runs_the_same_runs_give_the_same_result() -> None:
    before, after = [GOOD] * 15 + [BAD] * 5, [GOOD] * 10 + [BAD] * 10
    assert compare_runs(before, after) == compare_runs(before, after)


def test_compare_runs_another_order_of_adding_up_is_no_change() -> None:
    # 0.1 thirty times and 0.1 ten times have means that differ in the last digit
    found = compare_runs([scored([Band.RED], index=0.1)] * 30, [scored([Band.RED], index=0.1)] * 10)
    assert change(found, "mean_index").verdict == "within chance"


def test_compare_runs_runs_of_one_kind_are_seldom_called_worse() -> None:
    """At 95 %, one of forty pairs is worse by chance; drawing so few runs again understates it a little."""
    drawn = random.Random(1)
    kinds = [GOOD, GOOD, BAD]
    worse = 0
    for _ in range(100):
        before, after = ([drawn.choice(kinds) for _ in range(LEAST_RUNS)] for _ in range(2))
        worse += change(compare_runs(before, after, draws=200), "share.warned").verdict == "worse"
    assert worse <= 8


def test_compare_runs_notes_other_tasks_and_scales() -> None:
    many = [scored([Band.GREEN], group="a")] * 10
    assert compare_runs(many, many).notes == []
    tasks = compare_runs(many, [scored([Band.GREEN], group="b")] * 10)
    assert [note for note in tasks.notes if "different tasks" in note]
    scales = compare_runs(many, [scored([Band.GREEN], group="a", scale="s-2")] * 10)
    assert [note for note in scales.notes if "different scales" in note]
