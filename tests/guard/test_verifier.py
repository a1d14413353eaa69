from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard
from coherence.guard.baseline import WINDOW, CallOutcome
from coherence.guard.classic import Tally
from coherence.guard.export import TrailError
from coherence.guard.frequency import AdaptiveThresholds, Override
from coherence.guard.verdict import Trial, Verdict
from coherence.store.store import Store
from guard.helpers import Memory
from guard.trails import Both, Row, Stuck, at, exported, renumbered, trail, verified


def worse(level: int) -> float:
    return 0.9 if level == 1 else 0.3


def bad(level: int) -> float:
    """A rate that takes more than the first slice to be found: what is found in it is given up while held."""
    return 0.9 if level == 1 else 0.7


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return trail(tmp_path_factory.mktemp("classic"), Memory(), worse, policy="classic")


@pytest.fixture(scope="module")
def sequential(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return trail(tmp_path_factory.mktemp("sequential"), Memory(), bad, canary_share=0.5, canary_slice=30)


@pytest.fixture(scope="module")
def promoted(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return trail(tmp_path_factory.mktemp("promoted"), Memory(), lambda level: 0.6 if level == 1 else 1.0)


@pytest.mark.parametrize(
    ("memory", "options", "rule"),
    [
        (Memory(), {}, "sequential"),
        (Memory(), {"canary_share": 1.0}, "sequential"),
        (Memory(), {"canary_share": 0.2, "canary_slice": 3}, "sequential"),
        (Both(), {}, "sequential"),
        (Stuck(), {}, "sequential"),
        (Memory(), {"policy": "classic"}, "classic"),
        (Both(), {"policy": "classic"}, "classic"),
    ],
    ids=["slices", "all calls", "fifths", "hash", "restore fails twice", "classic", "classic hash"],
)
def test_each_rollback_of_a_real_guard_is_derived(
    tmp_path: Path, memory: Memory, options: dict[str, Any], rule: str
) -> None:
    found = verified(trail(tmp_path, memory, worse, **options))
    assert (found.verdict, found.faults, found.remarks) == ("verified", [], [])
    assert len(found.rollbacks) >= 2
    for each in found.rollbacks:
        assert (each.derived, each.rule, each.why_not) == ("yes", rule, "")
        assert 0 < each.failures <= each.calls
        assert each.due is not None and each.due < each.seq
        assert each.failed_restores == (2 if isinstance(memory, Stuck) and each.restored else 0)
        assert each.read_again in (True, None)


def test_verifier_what_was_counted_is_what_the_trail_shows(classic: list[Row]) -> None:
    first = verified(classic).rollbacks[0]
    serving, ending = at(classic, "serving"), at(classic, "ending")
    served = [row for row in classic[serving:ending] if row["kind"] == "call"]
    assert (first.calls, first.failures) == (len(served), sum(not row["success"] for row in served))
    assert (first.seq, first.restored) == (classic[ending]["seq"], classic[ending + 1]["seq"])


def test_a_decay_with_a_return_is_derived(tmp_path: Path) -> None:
    seen = []

    def rate(level: int) -> float:
        seen.append(level)
        return 0.6 if level == 1 else 1.0 if seen.count(2) < 400 else 0.2

    thresholds = AdaptiveThresholds({"a": Override(failures=20)})
    rows = trail(tmp_path, Memory(), rate, calls=800, return_on_decay=True, thresholds=thresholds, canary_share=0.5)
    found = verified(rows)
    assert (found.verdict, found.confirmed) == ("verified", 1)
    (decay,) = (each for each in found.rollbacks if each.rule == "decay")
    assert (decay.derived, decay.patch) == ("yes", 1)
    since = at(rows, "confirmed")
    assert decay.calls == sum(row["kind"] == "call" and not row["patched"] for row in rows[since : at(rows, "decayed")])


def test_verifier_what_a_person_did_is_listed_as_such(tmp_path: Path) -> None:
    def act(guard: Guard, call: int) -> None:
        if guard.status("a").patch is not None:
            guard.rollback("a")

    found = verified(trail(tmp_path, Memory(), worse, calls=60, act=act))
    assert found.verdict == "verified"
    assert {(each.rule, each.derived) for each in found.rollbacks} == {("by hand", "by hand")}


@pytest.mark.slow
def test_verifier_a_trail_that_goes_on_is_no_fault(sequential: list[Row]) -> None:
    """Every beginning of a trail is a trail."""
    for length in range(1, len(sequential), 7):
        found = verified(sequential[:length])
        assert found.verdict == "verified"
    found = verified(sequential[: at(sequential, "ending", pause=False) + 1])
    assert ["not in force again" in remark.what for remark in found.remarks] == [True]
    found = verified(sequential[: at(sequential, "ending", pause=False)])
    assert "is to be rolled back since" in found.remarks[0].what


def flip(rows: list[Row], place: int) -> list[Row]:
    return [*rows[:place], rows[place] | {"success": not rows[place]["success"]}, *rows[place + 1 :]]


def no_failures(rows: list[Row]) -> list[Row]:
    """One call is enough for the evidence of the sequential test; a classic rule holds until they do not."""
    return [row | {"success": True} if row.get("patched") else row for row in rows]


def altered(rows: list[Row], place: int, **fields: Any) -> list[Row]:
    return [*rows[:place], rows[place] | fields, *rows[place + 1 :]]


def ending(rows: list[Row]) -> int:
    return at(rows, "ending", pause=False)


def failed_before(rows: list[Row]) -> int:
    """Return the place of the last patched call that failed before the rollback."""
    return max(
        place for place in range(ending(rows)) if rows[place]["kind"] == "call" and rows[place]["patched"]
        and not rows[place]["success"]
    )  # fmt: skip


def inserted(rows: list[Row]) -> list[Row]:
    """A rollback with evidence, right after the patch came into force."""
    place = at(rows, "serving") + 1
    copied = [rows[ending(rows)] | {"at": rows[place]["at"]}, {"kind": "restored", "seq": 0, "at": rows[place]["at"]}]
    return renumbered([*rows[:place], *copied, *rows[place:]])


def left_out(rows: list[Row]) -> list[Row]:
    place = ending(rows)
    return renumbered([*rows[:place], *rows[place + 2 :]])


def confirmed(rows: list[Row]) -> list[Row]:
    place = ending(rows)
    row = {name: rows[place][name] for name in ("agent", "seq", "at", "why", "evidence", "limit")}
    return renumbered([*rows[:place], {"kind": "confirmed", **row}, *rows[place + 2 :]])


def test_verifier_one_call_is_enough_to_alter_what_a_test_has_seen(sequential: list[Row]) -> None:
    found = verified(flip(sequential, failed_before(sequential)))
    assert (found.verdict, found.rollbacks[0].derived) == ("wrong", "no")
    assert found.rollbacks[0].why_not == found.faults[0].what


def calls_swapped(rows: list[Row]) -> list[Row]:
    place = failed_before(rows)
    return [*rows[:place], rows[place + 1], rows[place], *rows[place + 2 :]]


TAMPERED: dict[str, Callable[[list[Row]], list[Row]]] = {
    "failures made successes": no_failures,
    "words altered": lambda rows: altered(rows, ending(rows), why=rows[ending(rows)]["why"] + "!"),
    "evidence altered": lambda rows: altered(rows, ending(rows), evidence=1e6),
    "evidence taken away": lambda rows: altered(rows, ending(rows), metric=None, evidence=None, limit=None),
    "metric altered": lambda rows: altered(rows, ending(rows), metric="cost"),
    "a rollback inserted": inserted,
    "a rollback left out": left_out,
    "confirmed in place of a rollback": confirmed,
    "a call removed": lambda rows: rows[: failed_before(rows)] + rows[failed_before(rows) + 1 :],
    "a call removed, numbers moved up": lambda rows: renumbered(
        rows[: failed_before(rows)] + rows[failed_before(rows) + 1 :]
    ),
    "a number twice": lambda rows: altered(rows, 30, seq=30),
    "two entries swapped": calls_swapped,
    "two trails in one": lambda rows: rows + rows,
    "a call made one without the patch": lambda rows: altered(rows, failed_before(rows), patched=False),
    "a call of a later time": lambda rows: altered(rows, 3, epoch=1),
    "a call that the patch cannot have served": lambda rows: altered(rows, 3, patched=True),
    "a call of no known time, patched": lambda rows: altered(rows, failed_before(rows), epoch=-1),
    "restored without an end": lambda rows: renumbered([*rows[: ending(rows)], *rows[ending(rows) + 1 :]]),
    "an end without a restore": lambda rows: renumbered([*rows[: ending(rows) + 1], *rows[ending(rows) + 2 :]]),
    "in force without being accepted": lambda rows: renumbered(
        [*rows[: at(rows, "accepted")], *rows[at(rows, "accepted") + 1 :]]
    ),
    "in force twice": lambda rows: renumbered(
        [*rows[: ending(rows)], rows[at(rows, "serving")], *rows[ending(rows) :]]
    ),
    "more failures called for it": lambda rows: altered(rows, at(rows, "asked"), failures=400),
    "another owner": lambda rows: altered(rows, at(rows, "accepted"), owner="somebody"),
}  # fmt: skip


@pytest.mark.parametrize("how", TAMPERED, ids=str)
@pytest.mark.parametrize("policy", ["classic", "sequential"])
def test_verifier_what_was_tampered_with_is_found(how: str, policy: str, request: pytest.FixtureRequest) -> None:
    rows: list[Row] = request.getfixturevalue(policy)
    assert verified(rows).verdict == "verified"
    if how == "evidence taken away":
        rows = altered(rows, ending(rows), evidence=1.0)  # the classic rules have none
    found = verified(TAMPERED[how](rows))
    assert found.verdict == "wrong", found
    assert found.fault_count == len(found.faults) >= 1


@pytest.mark.parametrize("policy", ["classic", "sequential"])
def test_verifier_the_first_fault_says_what_is_wrong(policy: str, request: pytest.FixtureRequest) -> None:
    rows: list[Row] = request.getfixturevalue(policy)
    place, accepted, serving = ending(rows), at(rows, "accepted"), at(rows, "serving")
    again = next(row for row in rows[place:] if row["kind"] == "accepted") | {"patch": rows[accepted]["patch"]}
    asked = {"kind": "rollback_wanted", "agent": "a", "number": 9, "why": "slow", "at": rows[serving]["at"]}
    approved = {"kind": "approval_wanted", "agent": "a", "proposed_seq": 3, "why": "yes", "at": rows[0]["at"]}
    for tampered, told in (
        ([*rows[:place], rows[place + 1]], "'restored' cannot follow: the patch is at 'serving'"),
        ([*rows[: serving + 1], rows[serving]], "'serving' cannot follow: the patch is at 'serving'"),
        ([*rows[:accepted], rows[serving]], "'serving' cannot follow: the patch is at 'asking'"),
        ([*rows[: serving + 1], asked], "nothing of the kind could be asked for: 'rollback_wanted'"),
        ([*rows[:3], approved], "nothing of the kind could be asked for: 'approval_wanted'"),
        (
            [again if row["seq"] == again["seq"] else row for row in rows],
            "'accepted' cannot follow: the same patch was given up once",
        ),
    ):
        assert verified(renumbered(tampered)).faults[0].what.startswith(told)


def test_verifier_a_restore_that_nobody_has_claimed_is_no_restore(tmp_path: Path) -> None:
    rows = trail(tmp_path, Stuck(), worse, calls=200)
    place = at(rows, "retrying")
    found = verified(renumbered([*rows[:place], *rows[at(rows, "restored") :]]))
    assert found.faults[0].what == "'restored' cannot follow: nobody has claimed it"


class Lies(Memory):
    """Says that it has applied a patch, and has not."""

    def apply_config(self, **asked: Any) -> object:
        return True


def test_verifier_what_could_not_be_applied_is_taken_from_its_owner_alone(
    tmp_path: Path, sequential: list[Row]
) -> None:
    rows = trail(tmp_path, Lies(), worse, calls=200)
    found = verified(rows)
    assert (found.verdict, found.faults) == ("verified", [])
    assert {(each.rule, each.derived, each.calls) for each in found.rollbacks} == {("not applied", "yes", 0)}
    place = at(rows, "ending")
    for forged in (
        {"owner": "another"},
        {"why": "because"},
        {"why": "the process that applied it has gone"},
        {"pause": True},
        {"metric": "success"},
        {"evidence": 90.0},
        {"limit": 80.0},
    ):
        assert verified(altered(rows, place, **forged)).verdict == "wrong", forged
    assert verified(left_out(rows)).verdict == "wrong"
    applied = at(sequential, "accepted") + 1  # there it serves: its owner can say that no more
    for cut in (applied, applied + 1):
        said = rows[place] | {"owner": sequential[applied - 1]["owner"]}
        verdict = verified(renumbered([*sequential[:cut], said])).verdict
        assert verdict == ("verified" if cut == applied else "wrong")


def forget_failures(tally: Tally, outcome: CallOutcome) -> None:
    if not outcome.success or tally.calls % 2:
        REAL_TAKE(tally, outcome)


REAL_TAKE = Tally.observe


def one_failure(trial: Trial) -> Verdict:
    return Verdict("roll_back", "a failure", "failure_run", 60.0, 50.0)


@pytest.mark.parametrize(
    ("broken", "by", "policy", "told"),
    [
        ("coherence.guard.classic.Tally.observe", forget_failures, "classic", "by a second count"),
        ("coherence.guard.classic.worse", lambda before, after: "latency", "classic", "the classic rule on"),
        ("coherence.guard.verdict.Trial._failing", one_failure, "sequential", "no run of failures gives"),
    ],
    ids=["calls are not counted", "a rule that always holds", "a single failure"],
)
def test_verifier_what_a_broken_guard_did_by_its_own_rules_fails_the_second_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, by: Any, policy: str, told: str
) -> None:
    monkeypatch.setattr(broken, by)
    found = verified(trail(tmp_path, Memory(), worse, policy=policy))
    assert told in found.faults[0].what
    assert "no" in [each.derived for each in found.rollbacks]


def test_verifier_the_means_before_are_part_of_the_classic_rules(classic: list[Row]) -> None:
    place = at(classic, "accepted")
    before = classic[place]["before"] | {"success_rate": 0.99}
    found = verified(altered(classic, place, before=before))
    assert "means of the calls before" in found.faults[0].what
    found = verified(altered(classic, place, share=0.5))
    assert "serves all calls" in found.faults[0].what


def test_verifier_a_promotion_is_derived_as_well(promoted: list[Row]) -> None:
    found = verified(promoted)
    assert (found.verdict, found.confirmed, found.rollbacks) == ("verified", 1, [])
    place = at(promoted, "confirmed")
    assert verified(altered(promoted, place, evidence=99.0)).verdict == "wrong"
    assert verified(altered(promoted, place, why="because")).verdict == "wrong"
    early = [*promoted[: place - 5], promoted[place]]
    assert verified(renumbered(early)).verdict == "wrong"


def test_verifier_an_altered_backup_shows_where_the_configuration_is_read_again(sequential: list[Row]) -> None:
    found = verified(altered(sequential, at(sequential, "accepted"), backup={"level": 7}))
    assert found.rollbacks[0].read_again is False
    assert "not the one that was restored after patch 1" in found.remarks[0].what


def test_verifier_what_cannot_be_seen_is_not_claimed(classic: list[Row], sequential: list[Row]) -> None:
    """As the module says: a call on which no decision depends, and an ending without a rule."""
    assert verified(flip(classic, failed_before(classic))).verdict == "verified"  # the rule holds all the same
    place = at(sequential, "serving") + 2
    when = {"agent": "a", "at": sequential[place]["at"]}
    asked = {"kind": "rollback_wanted", "number": 1, "why": "slow", **when}
    done = [{"kind": "ending", "owner": "x", "why": "slow", **when}, {"kind": "restored", **when}]
    found = verified(renumbered([*sequential[:place], asked, *done]))
    assert [each.derived for each in found.rollbacks] == ["by hand"]
    assert verified(renumbered([*sequential[:place], *done])).verdict == "wrong"  # nobody has asked


def test_verifier_where_calls_were_pruned_only_what_follows_is_claimed(tmp_path: Path) -> None:
    def act(guard: Guard, call: int) -> None:
        if call == 449:
            guard.prune("a", keep=200)

    rows = trail(tmp_path, Memory(), worse, calls=450 + 4 * WINDOW, act=act)
    found = verified(rows)
    assert (found.verdict, found.faults) == ("unknown", [])
    told = [each.derived for each in found.rollbacks]
    assert told == sorted(told, key=["unknown", "yes"].index)  # at first unknown, later derived
    assert told[0] == "unknown" and told[-1] == "yes"
    assert "pruned" in found.rollbacks[0].why_not
    place = at(rows, "restored")
    assert verified(rows[:place] + rows[place + 1 :]).verdict == "wrong"  # decisions are never pruned


def test_verifier_after_an_unknown_kind_nothing_is_claimed(sequential: list[Row]) -> None:
    place = at(sequential, "asked")
    rows = renumbered([*sequential[:place], {"kind": "dreamt", "at": 1.0, "deep": []}, *sequential[place:]])
    found = verified(rows)
    assert (found.verdict, found.faults) == ("unknown", [])
    assert {each.derived for each in found.rollbacks} == {"unknown"}
    assert "does not know: 'dreamt'" in found.remarks[0].what
    assert verified(left_out(rows)).verdict == "unknown"  # what is uncertain is not wrong


@pytest.mark.parametrize("bad", [{"duration_s": -1.0}, {"cost": 1e300}, {"index": 7.0}, {"at": 1e300}])
def test_verifier_numbers_that_no_guard_writes_are_told_with_their_line(classic: list[Row], bad: Row) -> None:
    with pytest.raises(TrailError, match=r"line 6 is no entry of a guard's trail: \w+ must be in"):
        verified(altered(classic, 5, **bad))


@pytest.mark.parametrize("bad", [{"share": 7.0}, {"share": 0.0}, {"slice": 0}, {"slice": -1}])
def test_verifier_a_canary_that_no_guard_has_is_told(sequential: list[Row], bad: Row) -> None:
    with pytest.raises(TrailError, match="is no entry of a guard's trail"):
        verified(altered(sequential, at(sequential, "accepted"), **bad))


def test_verifier_a_store_is_read_as_its_export_is(tmp_path: Path, classic: list[Row]) -> None:
    rows = trail(tmp_path, Memory(), worse, calls=50)
    with Store(tmp_path / "guard.db") as store:
        assert exported(store) == rows
