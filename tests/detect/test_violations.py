"""Things that a task forbids and an answer says it did. Every case that fires stands beside one that must not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.violations import MAX_VIOLATIONS, forbidden, violations

TASK = "Refactor fetch_user to be async. Do not add logging or error handling."


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ("Fix it; do not add comments, tests or logging.", "comments, tests, logging"),
        ("Fix the bug, no logging please", "logging"),
        ("Do not use the words red or orange.", "red, orange"),
        ("You must not change config.yaml.", "config.yaml"),
        ("Füge kein Logging hinzu.", "logging"),
        ("Réponds sans exemples.", "exemples"),
        ("优化函数。不要添加日志。", "日志"),
        ("不得再添加日志、注释", "日志"),
        ("不要把数据库删除", "数据库"),
        ("请勿使用pickle。", "pickle"),
        ("不要这样", ""),
        ("", ""),
        ("Add logging.", ""),
        ("The app crashes without network.", ""),
        ("Do not change the API unless you must.", ""),
        ("Notices of failure, notes on logging, noble gases", ""),
        ("Why does it not use the cache?", ""),
    ],
)
def test_forbidden_things_are_named_in_the_tasks_words(task: str, found: str) -> None:
    assert ", ".join(forbidden(task)) == found


@pytest.mark.parametrize(
    ("task", "answer", "found"),
    [
        (TASK, "Done: added logging and error handling", "logging, error handling"),
        (TASK, "It is async now. Logging was also added.", "logging"),
        ("Don't touch the tests.", "I fixed the bug and updated the tests too.", "tests"),
        ("Sort it without using recursion.", "I solved it using recursion.", "recursion"),
        ("Describe it without using the words red or orange.", "The sky turns red.", "red"),
        ("Do not mention the price.", "The price is 20 euros.", "price"),
        ("Do not use eval.", "def parse(text):\n    return eval(text)", "eval"),
        ("Do not use pickle.", "import pickle\n", "pickle"),
        ("Füge kein Logging hinzu.", "Ich habe Logging hinzugefügt.", "logging"),
        ("不要使用pickle。", "import pickle\n", "pickle"),
        ("禁止修改数据库。", "I changed the database.", "数据库"),
        ("Ändere die API nicht.", "Ich habe die API geändert.", "api"),
        ("N'ajoute pas de tests.", "J'ai ajouté des tests.", "tests"),
        ("No añadas comentarios.", "He añadido comentarios al código.", "comentarios"),
        (TASK, "As asked, no logging was added.", ""),
        (TASK, 'You wrote "I added logging and error handling"; it is only async now.', ""),
        (TASK, "> I added logging\nIt is async now.", ""),
        (TASK, "Refactored. Do not add logging or error handling.", ""),
        (TASK, "I added a test for the logging module.", ""),
        (TASK, "You say I added logging?", ""),
        ("Do not change the API.", "I changed the API docs.", ""),
        ("Don't touch the tests.", "Last year the vendor changed the tests.", ""),
        ("Don't add tests", "I ran the tests.", ""),
        ("Do not use eval.", "return literal_eval(text)", ""),
        ("Do not use eval.", "I replaced eval(text) by a parser.", ""),
        ("Do not mention the price.", "I did not mention the price.", ""),
        ("Add logging.", "I added logging.", ""),
        ("Keine Tests bitte.", "Ich habe keine Tests hinzugefügt.", ""),
    ],
)
def test_violations_are_what_the_author_did_although_it_is_forbidden(task: str, answer: str, found: str) -> None:
    assert ", ".join(violations(task, answer)) == found


def test_violations_of_long_texts_are_bounded_and_read_at_both_ends() -> None:
    assert len(forbidden(" ".join(f"Do not add thing{n}." for n in range(100)))) == MAX_VIOLATIONS
    answer = "y " * 1_000_000 + ". I added logging."
    assert violations("Do not add logging. " + "x " * 1_000_000, answer) == ("logging",)


@given(st.text(), st.text())
def test_violations_of_any_text_are_forbidden_things(task: str, answer: str) -> None:
    assert set(violations(task, answer)) <= set(forbidden(task))
