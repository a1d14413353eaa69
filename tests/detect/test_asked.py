"""Kinds of tasks, and tasks that want nothing else."""

import pytest

from coherence.detect.asked import is_closed, is_one_act, is_question, kind_of


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("Fix the typo in the title", "change"),
        ("Make the page faster", "mend"),
        ("Write a script that renames files", "make"),
        ("Rename the file that we write", "change"),
        ("Why did you rename it?", ""),
        ("Benenne die Methode um: laden hei\u00dft nun holen. \u00c4ndere sonst nichts.", "change"),
    ],
)
def test_kind_of(task: str, kind: str) -> None:
    assert kind_of(task) == kind


def test_is_question_a_request_is_none() -> None:
    assert is_question("Where is it?")
    assert not is_question("Could you rename it?")
    assert not is_question("Rename it.")


@pytest.mark.parametrize(
    ("task", "closed", "one"),
    [
        ("Pay the bill.", True, True),
        ("Convert the class to hooks.", True, False),
        ("Fix the crash.", False, False),
        ("Fix the crash and change nothing else.", True, False),
        ("Expose port 8080.", True, True),
        ("Do the actions that he asked me for.", False, False),
        ("Which plan is it?", False, False),
    ],
)
def test_is_closed_and_is_one_act(task: str, closed: bool, one: bool) -> None:
    assert (is_closed(task), is_one_act(task)) == (closed, one)
