"""Prohibitions, and calls that break them."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from coherence.core.events import Correction, Goal, Message, ToolCall, ToolResult
from coherence.detect.detector import Observed
from coherence.detect.prohibitions import BrokenProhibition, ProhibitionDetector, ProhibitionFacts
from coherence.detect.restrictions import prohibitions


def told(*texts: str, role: str = "user") -> ProhibitionDetector:
    detector = ProhibitionDetector()
    detector.observe(Observed.of(Goal(texts[0]), 1))
    for seq, text in enumerate(texts[1:], 2):
        detector.observe(Observed.of(Message(role, text), seq))  # type: ignore[arg-type]
    return detector


def call(detector: ProhibitionDetector, tool: str, arguments: Any) -> BrokenProhibition | None:
    made = ToolCall(tool, msgspec.Raw(msgspec.json.encode(arguments)), "1")
    detector.observe(Observed.of(made, 50))
    return detector.data.newest


STAYS = ("change", "remove", "add", "cancel", "close", "restart", "open", "book", "other", "publish")


@pytest.mark.parametrize(
    ("text", "acts", "objects"),
    [
        ("Do not touch the tests.", ("change",), ("test",)),
        ("Fix it, but don't delete any log.", ("remove",), ("log",)),
        ("No new dependencies.", ("install",), ()),
        ("No logging.", ("any", "have"), ("logg",)),
        ("My address must stay the same.", STAYS, ("addres",)),
        ("Keep all databases.", ("remove",), ("databas",)),
        ("The invoices must not be deleted.", ("remove",), ("invoic",)),
        ("I don't want to be transferred.", ("handover",), ()),
        ("Never issue refunds.", ("pay",), ()),
        ("Lösche die Tabelle nicht.", ("remove",), ("tabell",)),
    ],
)
def test_prohibitions_name_act_and_object(text: str, acts: tuple[str, ...], objects: tuple[str, ...]) -> None:
    found = list(prohibitions(text))
    assert found, text
    assert found[0].acts == acts
    assert set(found[0].objects) - {"die"} == set(objects)
    assert found[0].sentence == text


@pytest.mark.parametrize(
    "text",
    [
        "Users do not delete their accounts.",
        "Do not send it unless I say so.",
        "Don't hesitate to change the plan.",
        "Do not change it.",  # what, nobody can tell
        "Should I not delete it?",
        "The cabin can be changed without changing the flights.",
        "A guest can be changed, but you cannot change the number of guests.",  # which is in no call
        "No worries!",
    ],
)
def test_prohibitions_pass_over_what_describes_or_has_a_condition(text: str) -> None:
    assert [each for each in prohibitions(text) if each.acts != ("have",)] == []


@pytest.mark.parametrize(
    ("goal", "tool", "arguments", "broken"),
    [
        ("Do not touch the tests.", "edit_file", {"path": "tests/test_a.py", "content": "x"}, True),
        ("Do not touch the tests.", "edit_file", {"path": "src/a.py", "content": "the tests"}, False),
        ("Do not touch the tests.", "read_file", {"path": "tests/test_a.py"}, False),
        ("Do not touch the tests.", "bash", {"command": "sed -i s/a/b/ tests/test_a.py"}, True),
        ("Do not touch the tests.", "bash", {"command": "pytest tests && sed -n 1,9p tests/a.py"}, False),
        ("Do not touch the tests.", "bash", {"command": "echo x > spec/a_test.go"}, True),
        ("No new dependencies.", "bash", {"command": "cd app && npm install lodash"}, True),
        ("No new dependencies.", "bash", {"command": "npm run build"}, False),
        ("Keep all databases.", "sql", {"query": "DROP DATABASE crm"}, True),
        ("Do not spend more than $40.", "buy_item", {"price": 41.5}, True),
        ("Do not spend more than $40.", "buy_item", {"price": 40}, False),
        ("I don't want to be transferred.", "transfer_to_human_agents", {"summary": "x"}, True),
        ("No logging.", "edit_file", {"path": "a.py", "old_str": "x = 1", "new_str": "import logging"}, True),
        ("No logging.", "edit_file", {"path": "a.py", "old_str": "import logging", "new_str": "x = 1"}, False),
        ("Keep the function signatures unchanged.", "edit", {"old_str": "def f(a):", "new_str": "def f(b):"}, True),
        (
            "Keep the function signatures unchanged.",
            "edit",
            {"old_str": "def f(a):\n 1", "new_str": "def f(a):"},
            False,
        ),
    ],
)
def test_prohibition_detector_matches_act_and_object_of_a_call(
    goal: str, tool: str, arguments: dict[str, Any], broken: bool
) -> None:
    found = call(told(goal), tool, arguments)
    assert (found is not None) is broken
    assert found is None or (found.sentence, found.other, found.seq) == (goal, 1, 50)


def test_prohibition_detector_knows_its_own_company_by_the_addresses_it_sees() -> None:
    detector = told("I am emma@blue.example. Do not write to anybody outside our company.")
    detector.observe(Observed.of(ToolResult("from: tom@blue.example\nto: emma@blue.example"), 3))
    assert call(detector, "send_email", {"recipients": ["tom@blue.example"]}) is None
    assert call(detector, "send_email", {"recipients": ["tom@other.example"]}) is not None


def test_prohibition_detector_a_later_request_lifts_it_and_another_goal_forgets_it() -> None:
    detector = told("Prepare the release. Do not deploy yet.", "Fine, now deploy it.")
    assert call(detector, "deploy", {}) is None
    detector = told("Prepare the release. Do not deploy yet.")
    detector.observe(Observed.of(Goal("Something else"), 9, goal="x"))
    assert call(detector, "deploy", {}) is None


def test_prohibition_detector_hears_corrections_and_the_system_text_for_every_goal() -> None:
    detector = told("Prepare the release.")
    detector.observe(Observed.of(Correction("Never deploy on your own."), 3))
    assert call(detector, "deploy", {}) is not None
    detector = ProhibitionDetector()
    detector.observe(Observed.of(Message("system", "You help customers. Never issue refunds yourself."), 1))
    detector.observe(Observed.of(Goal("My mug is broken"), 2))
    found = call(detector, "issue_refund", {"order": 7})
    assert found is not None
    assert found.sentence == "Never issue refunds yourself."


def test_prohibition_detector_its_data_is_bounded_and_stored() -> None:
    detector = told("".join(f"Do not delete table{at}. " for at in range(300)))
    assert len(detector.data.standing) == 24
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(detector.data), type=ProhibitionFacts) == detector.data
    detector.renumber()
    assert {each.seq for each in detector.data.standing} == {0}


def test_prohibition_detector_a_megabyte_takes_no_longer_than_its_beginning() -> None:
    for piece in ("a", "do not ", "Do not delete a. ", "keep ", "a@b.c ", "no ", "> a/b ", "without editing "):
        long = piece * (1_000_000 // len(piece))
        begun = time.process_time()
        detector = told(long)
        assert time.process_time() - begun < 0.25  # 50 ms on a quiet machine
        begun = time.process_time()
        call(detector, "bash", {"command": long})
        call(detector, "edit_file", {"path": long, "content": long})
        assert time.process_time() - begun < 0.5


@pytest.mark.parametrize(
    ("sentence", "broken", "kept"),
    [
        ("Answer in at most 10 words.", "one two three four five six seven eight nine ten eleven twelve", "It is 5."),
        ("No emojis please.", "Done 🎉", "Done"),
        ("Explain without formulas.", "The energy is E = m*c^2.", "Energy grows with mass."),
        ("No links in your answer.", "See https://x.io", "See the docs"),
        ("Don't mention prices.", "It costs $5.", "It is cheap."),
    ],
)
def test_prohibition_detector_an_answer_breaks_one_by_its_form(sentence: str, broken: str, kept: str) -> None:
    for answer, breaks in ((broken, True), (kept, False)):
        detector = ProhibitionDetector()
        detector.observe(Observed.of(Goal(f"Do the job. {sentence}"), 1))
        detector.observe(Observed.of(Message("assistant", answer), 2))
        assert (detector.data.newest is not None) == breaks


def test_prohibition_detector_a_condition_in_another_clause_lifts_nothing() -> None:
    detector = ProhibitionDetector()
    detector.observe(Observed.of(Goal("Commit locally if you like, but nothing gets pushed."), 1))
    for command, breaks in ((b"git commit -am x", False), (b"git commit -am x && git push", True)):
        detector.observe(Observed.of(ToolCall("Bash", msgspec.Raw(b'{"command": "%s"}' % command), "a"), 2))
        assert (detector.data.newest is not None) == breaks
