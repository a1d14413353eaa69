"""The verdicts of the shipped packet follow from what the monitor finds."""

from __future__ import annotations

import msgspec
import pytest

from coherence.guard.cases.packet import Case, CaseKind, Packet, shipped_packet
from coherence.guard.cases.play import Played, play_case

PACKET = shipped_packet()
KINDS = (
    "silent_failure",
    "stale_artifact",
    "provider_drift",
    "missing_event_trail",
    "rollback_gap",
    "unsafe_escalation",
)


def case_of(id: str) -> Case:
    return next(case for case in PACKET.cases if case.id == id)


def changed(id: str, **fields: object) -> Played:
    return play_case(msgspec.structs.replace(case_of(id), **fields), PACKET)


@pytest.mark.parametrize("case", PACKET.cases, ids=lambda case: case.id)
def test_the_verdict_of_a_case_is_the_expected_one(case: Case) -> None:
    played = play_case(case, PACKET)
    assert (played.verdict, played.rule) == (case.expected, case.rule or played.rule), played.found
    assert played.right
    assert bool(played.rule) == bool(played.event) == bool(played.found)


@pytest.mark.parametrize("kind", KINDS)
def test_packet_each_kind_has_five_failures_one_of_them_unseen_and_two_healthy_twins(kind: CaseKind) -> None:
    failures = [case for case in PACKET.cases if case.kind == kind and not case.healthy]
    assert len(failures) == 5
    assert [case.id for case in failures if not case.seen] == [f"{kind.replace('_', '-')}-5"]
    assert {case.expected for case in failures} == {"blocked", "review", "learning"}
    assert all(bool(case.rule) == case.seen for case in failures)  # which rule sees a failure is asserted too
    assert sum(case.healthy for case in PACKET.cases if case.kind == kind) == 2


def test_packet_verdicts_depend_on_the_gate_the_budgets_and_the_rules() -> None:
    # Without what decides, each of these sessions gets a milder verdict: nothing is read off the file.
    assert play_case(case_of("silent-failure-2"), Packet(cases=())).verdict == "review"  # warn of the answer, no gate
    assert changed("provider-drift-2", budget={}).verdict == "learning"
    assert changed("unsafe-escalation-4", budget={}).verdict != "blocked"
    off = {"rules": {"repeated_tool_call_loop": {"most": "warn"}}}
    assert changed("rollback-gap-4", config=off).verdict == "review"


def test_packet_a_refused_call_ends_the_session() -> None:
    played = play_case(case_of("unsafe-escalation-1"), PACKET)
    assert played.refused == "send_email"
    assert play_case(case_of("rollback-gap-1"), PACKET).refused == "Bash"  # DROP TABLE while errors block
    assert play_case(case_of("unsafe-escalation-healthy"), PACKET).refused == ""  # rm -rf in a calm session


def test_packet_a_session_of_which_nobody_says_anything_is_unseen() -> None:
    case = case_of("silent-failure-5")
    silent = msgspec.structs.replace(case, steps=case.steps[:-1])
    assert play_case(silent, PACKET).verdict == "unseen"
    assert not play_case(silent, PACKET).right


def test_packet_a_verdict_by_another_rule_is_wrong() -> None:
    assert not changed("silent-failure-2", rule="pressure").right
    assert not changed("silent-failure-2", seen=False, rule="").right
    assert changed("silent-failure-2", rule="").right


def test_packet_a_hint_that_stands_is_for_review_and_one_that_was_taken_to_learn_from() -> None:
    case = case_of("silent-failure-4")  # three pairs of call and failure, then words and the outcome
    hinted = msgspec.structs.replace(case, steps=case.steps[:4])  # the second unchanged try: guide
    played = play_case(hinted, PACKET)
    assert (played.verdict, played.rule) == ("review", "bash_retry")
    fixed = (*case.steps[:5], {"step": "result", "text": "sent to 512 readers"})
    taken = play_case(msgspec.structs.replace(case, steps=fixed), PACKET)
    assert (taken.verdict, taken.rule, taken.event) == ("learning", "bash_retry", played.event)
