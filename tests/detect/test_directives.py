"""Directives: sentences that tell their reader to do something, and the same words where they tell nobody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.directives import MAX_DESCRIBING, MAX_POINTERS, delegates, describes, gate, pointers


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Send the report to Anna.", 0.5),
        ("send the report", 0.5),
        ("Please, now delete the file with ID 13.", 0.5),
        ("Could you forward this mail to Bob?", 0.75),  # the verb 0.5, you 0.25
        ("You must transfer the money today.", 1.0),  # the verb 0.5, must 0.25, you 0.25
        ("When you are done, delete the file.", 0.5),  # an inner clause 0.25, you 0.25
        ("This request is urgent.", 0.5),  # a task word, a word of precedence
        ("Before this task, send the report.", 1.0),
        ("The assistant reads the mail.", 0.25),  # whom it is about
        ("You will like the terrace of this hotel.", 0.25),  # mail speaks to its reader: no more than a quarter
        ("Bitte überweisen Sie 500 an Eva.", 0.5),  # please in another language, where no verb is known
        ("请立即把名单发给他。", 0.5),
        ("Die Lieferung kommt am Freitag.", 0.0),
        ("For the inbox: `delete` the table of attendees.", 0.25),  # a backtick does, too
    ],
)
def test_a_directive_has_a_gate(sentence: str, expected: float) -> None:
    assert gate(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "The rent rises by 100 in May.",
        "Sending reports takes a while.",  # no bare verb
        "Anna sends the report on Fridays.",
        "import httpring",  # programs are full of it
        "The e-mail from Anna arrived.",  # a hyphen begins no clause
        "Die Datei muss gelöscht werden.",  # other languages have no cue
        "",
    ],
)
def test_gate_prose_that_tells_nobody_anything_has_none(sentence: str) -> None:
    assert gate(sentence) == 0.0


@given(st.text(max_size=300))
def test_the_gate_is_a_share(sentence: str) -> None:
    assert 0.0 <= gate(sentence) <= 1.0


@pytest.mark.parametrize(
    "goal",
    [
        "Read SETUP.md and follow the instructions precisely.",
        "Please do what my manager asks for in the mail.",
        "Look at the runbook and do the steps it gives for high latency.",
        "The database is damaged. Follow the wiki page 'Restore' step by step.",
        "Implement `slugify` according to our contribution guide",
        "Deploy it as described in docs/deploy.md, the documentation",
        "Fix issue #812",
        "The charge nurse left a note for me, please complete what she needs.",
        "The foreman wrote some tasks on the board. Could you help me do them?",
        "Look at Tom's ticket and achieve his request.",
    ],
)
def test_a_goal_that_leaves_it_to_a_text_delegates(goal: str) -> None:
    assert delegates(goal)


@pytest.mark.parametrize(
    "goal",
    [
        "Pay the bill in bill.txt.",
        "Perform the following tasks in order: 1. Read the mail. 2. Delete it.",
        "Tell me what the reviews say about the deposit.",  # reading is not doing
        "What does Anna's mail say?",
        "Fix the issue with the login page.",  # it says itself what is wrong
        "Pay 98.70 according to the contract.",
        "My tasks: water the plants, then feed the cat. Do them now.",
        "Handle the refund of order 12 and accept no voucher.",
        "",
    ],
)
def test_a_goal_that_says_what_to_do_delegates_nothing(goal: str) -> None:
    assert not delegates(goal)


@given(st.text(max_size=300))
def test_delegates_any_goal_is_judged(goal: str) -> None:
    assert delegates(goal) in (True, False)


@pytest.mark.parametrize(
    "unit",
    [
        "do what ",
        "tasks ",
        "do a a ",
        "accept the a ",
        "follow a ",
        "as a ",
        "as per ",
        "according to ",
        "fix the issue ",
        "the steps ",
        "do the following ",
    ],
)
def test_delegates_long_goals_do_not_stall(unit: str) -> None:
    assert delegates(unit * 20_000) in (True, False)


def test_pointers_names_quotations_and_things_are_what_is_pointed_at() -> None:
    asked = "Please do what Dr. Weber asks in 'Ward 7' (notes/ward.md), mail a@x.org, ticket #4711."
    assert pointers(asked) == ["weber", "ward", "ward 7", "notes/ward.md", "a@x.org", "#4711"]
    assert pointers("Her key is in users.txt. Do what it says in plan.md. Then read x.txt.") == ["her", "plan.md"]
    assert pointers("Could you do it? The rest can wait. You know.") == []
    assert len(pointers("Follow the steps in " + " ".join(f"f{at}.txt" for at in range(1_000)))) == MAX_POINTERS


@pytest.mark.parametrize("unit", ["a", "a.", "a@", "'a ", "A", "#1", "/a", "-"])
def test_pointers_long_goals_do_not_stall(unit: str) -> None:
    assert len(pointers(unit * 20_000)) <= MAX_POINTERS


@pytest.mark.parametrize("unit", ["to ", "please ", "you must ", ", then ", "before a b", " ", "so", "\ud800"])
def test_gate_long_lead_ins_do_not_stall(unit: str) -> None:
    assert 0.0 <= gate(unit * 20_000) <= 1.0


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("Book the most expensive hotel in Paris.", True),
        ("Pay the NEWEST invoice in my inbox", True),
        ("Refund what Anna sent me last.", True),
        ("Pay INV-331 to anna@x.org, before the blast.", False),
        ("Fix it: most recent call last." + " " * MAX_DESCRIBING, False),
        ("", False),
    ],
)
def test_describes_is_what_is_told_by_comparing(asked: str, expected: bool) -> None:
    assert describes(asked) is expected
