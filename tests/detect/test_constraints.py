"""Things that a task forbids and an answer says it did. Every case that fires stands beside one that must not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.constraints import MAX_CONSTRAINTS, forbidden, violations

TASK = "Refactor fetch_user to be async. Do not add logging or error handling."


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ("Do not add logging.", [("add", "logging")]),
        ("Fix it; do not add comments, tests or logging.", [("add", "comments"), ("add", "tests"), ("add", "logging")]),
        ("Do not add logging or change the API", [("add", "logging"), ("change", "api")]),
        ("Sort it without recursion and add a test.", [("have", "recursion")]),
        ("Fix the bug, no logging please", [("have", "logging")]),
        ("Do not use the words red or orange.", [("mention", "red"), ("mention", "orange")]),
        ("You must not change config.yaml.", [("change", "config.yaml")]),
        ("Füge kein Logging hinzu.", [("have", "logging")]),
        ("Ändere die API nicht.", [("change", "api")]),
        ("N'ajoute pas de tests.", [("add", "tests")]),
        ("Réponds sans exemples.", [("have", "exemples")]),
        ("No añadas comentarios.", [("add", "comentarios")]),
    ],
)
def test_forbidden(task: str, found: list[tuple[str, str]]) -> None:
    assert [(item.act, item.text) for item in forbidden(task)] == found


@pytest.mark.parametrize(
    "task",
    [
        "",
        "Add logging.",
        "The app crashes without network.",
        "Users do not see the error.",
        "Do not change the API unless you must.",
        "Notices of failure, notes on logging, noble gases",
        "Why does it not use the cache?",
    ],
)
def test_nothing_forbidden(task: str) -> None:
    assert forbidden(task) == ()


@pytest.mark.parametrize(
    ("task", "answer", "found"),
    [
        ("Do not add logging", "I added logging and telemetry", "logging"),
        (TASK, "Done: added logging and error handling", "logging, error handling"),
        (TASK, "It is async now. Logging was also added.", "logging"),
        ("Don't touch the tests.", "I fixed the bug and updated the tests too.", "tests"),
        ("Sort it without using recursion.", "I solved it using recursion.", "recursion"),
        ("Describe it without using the words red or orange.", "The sky turns red.", "red"),
        ("Do not mention the price.", "The price is 20 euros.", "price"),
        ("Do not use eval.", "def parse(text):\n    return eval(text)", "eval"),
        ("Do not use pickle.", "import pickle\n", "pickle"),
        ("Füge kein Logging hinzu.", "Ich habe Logging hinzugefügt.", "logging"),
        ("Ändere die API nicht.", "Ich habe die API geändert.", "api"),
        ("N'ajoute pas de tests.", "J'ai ajouté des tests.", "tests"),
        ("No añadas comentarios.", "He añadido comentarios al código.", "comentarios"),
    ],
)
def test_violations_done_although_forbidden(task: str, answer: str, found: str) -> None:
    assert ", ".join(violations(task, answer)) == found


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        (TASK, "I did not add logging"),
        (TASK, "As asked, no logging was added."),
        (TASK, 'You wrote "I added logging and error handling"; it is only async now.'),
        (TASK, "> I added logging\nIt is async now."),
        (TASK, "Refactored. Do not add logging or error handling."),
        (TASK, "I added a test for the logging module."),
        (TASK, "You say I added logging?"),
        ("Do not change the API.", "I changed the API docs."),
        ("Don't touch the tests.", "Last year the vendor changed the tests."),
        ("Don't add tests", "I ran the tests."),
        ("Do not use eval.", "return literal_eval(text)"),
        ("Do not use eval.", "I replaced eval(text) by a parser."),
        ("Do not mention the price.", "I did not mention the price."),
        ("Add logging.", "I added logging."),
        ("Keine Tests bitte.", "Ich habe keine Tests hinzugefügt."),
        (TASK, ""),
    ],
)
def test_violations_not_done(task: str, answer: str) -> None:
    assert violations(task, answer) == ()


def test_forbidden_bounded() -> None:
    task = " ".join(f"Do not add thing{n}." for n in range(100))
    assert len(forbidden(task)) == MAX_CONSTRAINTS
    assert violations("Do not add logging. " + "x " * 1_000_000, "y " * 1_000_000 + ". I added logging.") == (
        "logging",
    )
    assert forbidden("please" + " " * 100_000 + "don't") == ()


@given(st.text(), st.text())
def test_forbidden_any_text_is_read(task: str, answer: str) -> None:
    assert all(item.what for item in forbidden(task))
    assert set(violations(task, answer)) <= {item.text for item in forbidden(task)}
