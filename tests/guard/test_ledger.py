"""An agent's patches, told from its decisions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coherence.guard.ledger import PatchRecord, ledger
from coherence.guard.patch_events import Decision
from coherence.guard.traces import Past, read_account, read_decisions
from coherence.store.store import Store
from guard.helpers import Boom, Clock, Memory, Proposes, failing, patched

ASKED = Decision("asked", owner="p1", failures=3)
PATCH, BACKUP = {"level": 2}, {"level": 1}


def accepted(patch: dict[str, Any] = PATCH, *, both: bool = False) -> Decision:
    return Decision("accepted", owner="p1", patch=patch, backup=BACKUP, share=0.5, slice=10, both=both)


def told(*steps: Decision) -> list[PatchRecord]:
    """Return the ledger of a trail; entry n was written at n * 10 s."""
    return ledger(Past(seq, 10.0 * seq, step) for seq, step in enumerate(steps, 1))


SERVING, RESTORED = Decision("serving"), Decision("restored")
LOCKED = Decision("restore_failed", why="locked")
ENDING = Decision("ending", owner="p1", why="success fell", metric="success", evidence=90.0, limit=80.0)
PAUSE = Decision("ending", owner="p1", pause=True, why="slice")
CONFIRMED = Decision("confirmed", why="shown harmless", evidence=21.0, limit=20.0)
WAITS = Decision("proposed", patch=PATCH, why="the bounds ask for a person")
APPROVED = [
    Decision("approval_wanted", proposed_seq=2, why="looks fine"),
    Decision("approved", owner="p2", patch=PATCH, why="looks fine"),
]
DECAYED = Decision("decayed", metric="latency", why="latency got worse", returns=False)


@pytest.mark.parametrize(
    ("steps", "outcome", "why"),
    [
        ([accepted()], "applying", ""),
        ([accepted(both=True)], "on trial", ""),
        (
            [accepted(), Decision("not_applied", why="the adapter returned None")],
            "not applied",
            "the adapter returned None",
        ),
        ([accepted(), SERVING, PAUSE, RESTORED], "on trial", ""),
        ([accepted(), SERVING, PAUSE, LOCKED], "on trial", ""),
        ([accepted(), SERVING, PAUSE, RESTORED, Decision("dropped", why="latency")], "rolled back", "latency"),
        ([accepted(), SERVING, ENDING], "restoring", "success fell"),
        ([accepted(), SERVING, ENDING, LOCKED], "restore failed", "success fell"),
        ([accepted(), SERVING, ENDING, RESTORED], "rolled back", "success fell"),
        ([accepted(), SERVING, CONFIRMED], "promoted", "shown harmless"),
        ([accepted(), SERVING, CONFIRMED, DECAYED], "got worse", "latency got worse"),
        (
            [accepted(), SERVING, CONFIRMED, Decision("ending", owner="p2", why="a person asked")],
            "restoring",
            "a person asked",
        ),
        ([Decision("proposed", patch=PATCH, why="there is no adapter")], "waiting", "there is no adapter"),
    ],
)
def test_patch_record_what_came_of_a_patch(steps: list[Decision], outcome: str, why: str) -> None:
    (found,) = told(ASKED, *steps)
    assert (found.outcome, found.why) == (outcome, why)


def test_patch_record_what_decided_a_rollback_and_how_often_restoring_failed() -> None:
    failed, again = LOCKED, Decision("retrying", owner="p1")
    (found,) = told(ASKED, accepted(), SERVING, ENDING, failed, again, failed, again, RESTORED)
    assert (found.metric, found.evidence, found.limit, found.restores_failed) == ("success", 90.0, 80.0, 2)
    assert (found.judged_at, found.ended_at) == (40.0, 90.0)  # entries 4 and 9


def test_patch_record_a_decay_of_a_confirmed_patch_and_the_way_back() -> None:
    life: list[Decision] = [ASKED, accepted(), SERVING, CONFIRMED, DECAYED]
    (worse,) = told(*life)
    assert (worse.metric, worse.worse_at, worse.evidence, worse.promoted_at) == ("latency", 50.0, None, 40.0)
    (gone,) = told(*life, Decision("ending", owner="p1", why="latency got worse"), RESTORED)
    assert (gone.outcome, gone.metric, gone.worse_at, gone.ended_at) == ("rolled back", "latency", 50.0, 70.0)


def test_patch_record_a_patch_on_trial_leaves_the_confirmed_one_alone() -> None:
    first, second = told(
        ASKED, accepted(), SERVING, CONFIRMED, ASKED, accepted({"level": 3}), SERVING, ENDING, RESTORED
    )
    assert (first.number, first.outcome, first.ended_at) == (1, "promoted", 40.0)
    assert (second.number, second.outcome, second.patch) == (2, "rolled back", {"level": 3})
    (only,) = told(ASKED, accepted(), SERVING, CONFIRMED, Decision("ending", owner="p1", why="a person"), RESTORED)
    assert only.outcome == "rolled back"


def test_patch_record_a_proposal_that_is_asked_for_again_is_one_patch_and_another_one_replaces_it() -> None:
    waits = Decision("proposed", patch=PATCH, why="there is no adapter")
    (one,) = told(ASKED, waits, ASKED, waits)
    assert one.outcome == "waiting" and one.asked_seq == 1
    first, second = told(ASKED, waits, ASKED, Decision("proposed", patch={"level": 3}, why="there is no adapter"))
    assert (first.outcome, first.ended_at, second.outcome, second.number) == ("replaced", 40.0, "waiting", 2)


def test_patch_record_what_is_no_patch_is_passed_over() -> None:
    unheard = Decision("dreamt")  # type: ignore[arg-type]  # of a later version
    assert told(ASKED, Decision("declined", why="the strategy proposes nothing")) == []
    assert told(unheard, RESTORED, SERVING, CONFIRMED, DECAYED, ENDING, Decision("restore_failed", why="")) == []
    whole: list[Any] = [ASKED, accepted(), SERVING, ENDING, RESTORED]
    mixed = [step for one in whole for step in (one, unheard)]
    assert [one.outcome for one in told(*mixed)] == ["rolled back"]


class Moody(Memory):
    """Fails now and then."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.drawn = Random(seed)

    def apply_config(self, **asked: Any) -> object:
        return self.drawn.random() < 0.9 and super().apply_config(**asked)

    def rollback_config(self, **asked: Any) -> object:
        return None if self.drawn.random() < 0.6 and super().rollback_config(**asked) is None else False


@pytest.mark.parametrize("seed", range(2))
def test_the_ledger_agrees_with_the_account(tmp_path: Path, seed: int) -> None:
    """Of a real guard whose adapter fails now and then, and a person who takes patches back."""
    config, drawn = Moody(seed), Random(seed)
    strategy = Proposes({"level": 2})
    path = tmp_path / "guard.db"
    with patched(path, config, strategy=strategy, clock=Clock(600.0)) as guard:
        agent = failing(lambda level: (0.5, 0.7, 0.9, 0.3)[level % 4], config, seed)
        for call in range(400):
            strategy.patch = {"level": drawn.randrange(2, 10)}
            with suppress(Boom):
                guard.run(agent, agent="a")
            if call % 97 == 96:
                guard.rollback("a")
            if call % 50 == 0:
                with Store(path) as store:
                    compare(store)
    with Store(path) as store:
        compare(store)
        assert len(ledger(read_decisions(store, "a", -1))) > 1


def compare(store: Store) -> None:
    records, patching = ledger(read_decisions(store, "a", -1)), read_account(store, "a").patching
    tried = [one for one in records if one.outcome in ("applying", "on trial", "restoring", "restore failed")]
    assert patching.number == sum(one.accepted_at is not None for one in records)
    if patching.trial is not None:
        assert tried[-1].patch == patching.trial.patch and tried[-1].backup == patching.trial.backup
        assert patching.phase != "applying" or tried[-1].outcome in ("applying", "on trial")
    if patching.phase == "idle":
        assert tried == []
    if patching.standing is not None:
        kept = [one for one in records if one.promoted_at is not None and one.outcome != "rolled back"]
        assert kept[-1].patch == patching.standing.patch


@pytest.mark.parametrize(
    ("steps", "outcome", "why", "approved_at"),
    [
        ([APPROVED[0]], "waiting", "the bounds ask for a person", 30.0),
        (
            [Decision("approval_wanted", proposed_seq=1, why="of an older one")],
            "waiting",
            "the bounds ask for a person",
            None,
        ),
        (APPROVED, "waiting", "the bounds ask for a person", 30.0),
        ([*APPROVED, accepted({"level": 2, "top": 1}), SERVING], "on trial", "", 30.0),
        ([*APPROVED, Decision("withheld", patch=PATCH, why="no adapter", waits=True)], "waiting", "no adapter", None),
        (
            [*APPROVED, Decision("withheld", patch=PATCH, why="out of bounds", waits=False)],
            "not applied",
            "out of bounds",
            30.0,
        ),
        ([Decision("refused", patch=PATCH, why="not now")], "declined", "not now", None),
    ],
)
def test_patch_record_what_a_person_says_to_a_patch(
    steps: list[Decision], outcome: str, why: str, approved_at: float | None
) -> None:
    (found,) = told(ASKED, WAITS, *steps)
    assert (found.outcome, found.why, found.approved_at, found.proposed_seq) == (outcome, why, approved_at, 2)


def test_patch_record_a_rollback_that_a_person_wants() -> None:
    wanted = Decision("rollback_wanted", number=1, why="a person asked")
    (asked,) = told(ASKED, accepted(), SERVING, wanted)
    assert (asked.outcome, asked.rollback_asked_at) == ("on trial", 40.0)
    (gone,) = told(ASKED, accepted(), SERVING, CONFIRMED, wanted, Decision("ending", owner="p1", why="asked"), RESTORED)
    assert (gone.outcome, gone.why, gone.rollback_asked_at) == ("rolled back", "asked", 50.0)
