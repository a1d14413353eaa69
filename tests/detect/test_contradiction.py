"""Claims held against what the agent's own calls returned."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from coherence.core.events import Goal, Message, ToolCall, ToolResult
from coherence.detect.claim_words import done_acts
from coherence.detect.contradiction import ClaimFacts, ContradictionDetector
from coherence.detect.detector import Observed
from coherence.detect.held_results import Contradiction
from coherence.detect.text_analysis import statements

Call = tuple[str, dict[str, Any], str]


def after(*calls: Call, failed: bool = False) -> ContradictionDetector:
    detector = ContradictionDetector()
    for seq, (tool, arguments, result) in enumerate(calls, 1):
        made = ToolCall(tool, msgspec.Raw(msgspec.json.encode(arguments)), str(seq))
        detector.observe(Observed.of(made, 2 * seq - 1))
        detector.observe(Observed.of(ToolResult(result, error=failed, call_id=str(seq)), 2 * seq))
    return detector


def claim(detector: ContradictionDetector, text: str, seq: int = 99) -> Contradiction | None:
    detector.observe(Observed.of(Message("assistant", text), seq))
    return detector.data.newest


UPLOAD = ("s3_upload", {"file": "tue.tar"}, "403 Forbidden")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("I uploaded tue.tar.", True),
        ("tue.tar has been uploaded", True),
        ("Successfully uploaded!", True),
        ("Der Bericht wurde hochgeladen.", True),
        ("Le fichier a été téléversé.", True),
        ("tue.tar has not been uploaded.", False),
        ("Once tue.tar is uploaded, I will tell you.", False),
        ("Was tue.tar uploaded?", False),
        ("I tried, but the upload was refused: nothing was uploaded.", False),
        ("I deleted the draft.", False),  # nobody tried to
        ("I uploaded mon.tar.", False),  # another file, of which nothing is known
    ],
)
def test_contradiction_detector_what_was_done_is_held_against_the_call_that_failed(text: str, wrong: bool) -> None:
    assert (claim(after(UPLOAD), text) is not None) is wrong


def test_contradiction_detector_a_later_success_makes_the_claim_right() -> None:
    assert claim(after(UPLOAD, ("s3_upload", {"file": "tue.tar"}, "ok")), "I uploaded tue.tar.") is None
    other = after(UPLOAD, ("s3_upload", {"file": "mon.tar"}, "ok"))
    assert claim(other, "I uploaded mon.tar.") is None
    found = claim(other, "All files have been uploaded.")
    assert found == Contradiction(99, "done", "All files have been uploaded.", 2, "403 Forbidden")


@pytest.mark.parametrize("text", ["All five tables were migrated.", "3 of 5 tables were migrated."])
def test_contradiction_detector_some_of_it_is_not_all(text: str) -> None:
    detector = after(("migrate", {}, "failed: notes\n3 of 5 tables migrated"))
    assert (claim(detector, text) is not None) is text.startswith("All")


@pytest.mark.parametrize(
    ("result", "text", "wrong"),
    [
        ("2 failed, 31 passed in 4.2s", "All tests pass.", True),
        ("2 failed, 31 passed in 4.2s", "31 tests pass and 2 fail.", False),
        ("2 failed, 31 passed in 4.2s", "The login test passes.", False),  # one of 31 that do
        ("33 passed in 4.2s", "All tests pass.", False),
        ("OK (skipped=13, expected failures=2)", "All tests passed.", False),
    ],
)
def test_contradiction_detector_tests_are_held_against_their_newest_run(result: str, text: str, wrong: bool) -> None:
    found = claim(after(("bash", {"command": "pytest -q"}, result)), text)
    assert (found is not None) is wrong
    assert found is None or (found.kind, found.result) == ("tests", result)


@pytest.mark.parametrize(
    ("result", "text", "wrong"),
    [
        ('{"id": "T-5503", "status": "closed"}', "Ticket T-5503 is still open.", True),
        ('{"id": "T-5503", "status": "closed"}', "Ticket T-5503 is not open.", False),
        ('{"id": "T-5503", "status": "closed"}', "Ticket T-5509 is open.", False),
        ('{"id": "T-5503", "paid": false}', "T-5503 has been paid.", True),
        ('{"id": "T-5503", "seats": {"window": 0}}', "T-5503 has plenty of window seats.", True),
        ('{"id": "T-5503", "seats": {"window": 4}}', "T-5503 has plenty of window seats.", False),
        ('{"id": "T-5503", "seats": {"window": 0}}', "T-5503 has no window seats.", False),
        ('[{"id": "T-5503", "paid": false}, {"id": "T-5504", "paid": true}]', "T-5504 is paid.", False),
        ('[{"id": "T-5503", "paid": false}, {"id": "T-5504", "paid": true}]', "T-5503 is paid.", True),
    ],
)
def test_contradiction_detector_states_are_held_against_the_record_of_the_same_thing(
    result: str, text: str, wrong: bool
) -> None:
    assert (claim(after(("get_ticket", {"id": "T-5503"}, result)), text) is not None) is wrong


def test_contradiction_detector_a_day_with_events_is_not_free() -> None:
    agenda = ("get_day_events", {"day": "2024-05-21"}, "- title: Offsite\n  start: 2024-05-21 09:00")
    assert claim(after(agenda), "The 21st is completely free.") is not None
    assert claim(after(agenda), "The 21st is free at 17:00.") is None
    assert claim(after(agenda), "May 22 is completely free.") is None


def test_contradiction_detector_numbers_beside_that_of_the_same_field_are_remembered() -> None:
    detector = after(("get_account", {"id": "40-77"}, '{"id": "40-77", "balance": 318.20}'))
    claim(detector, "The balance of 40-77 is 813.20 EUR.")
    assert [(each.value, each.result) for each in detector.data.amounts] == [("813.20", "balance: 318.2")]
    claim(detector, "The balance of 40-77 is 318.20 EUR, and 200 more is the total.")
    assert detector.data.amounts == []


def test_contradiction_detector_what_is_in_a_file_that_nobody_could_read() -> None:
    missing = ("read_file", {"path": "src/pay.py"}, "Error: src/pay.py: no such file")
    found = claim(after(missing, failed=True), "pay.py defines two functions.")
    assert found is not None
    assert found.kind == "unread"
    assert claim(after(missing, failed=True), "pay.py does not exist, so I checked nothing.") is None


def test_contradiction_detector_forgets_with_another_goal_and_is_bounded() -> None:
    detector = after(*[("save_note", {"id": f"N-{at}"}, "Error: disk full") for at in range(300)])
    assert len(detector.data.attempts) <= 32
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(detector.data), type=ClaimFacts) == detector.data
    detector.renumber()
    assert {each.seq for each in detector.data.attempts} == {0}
    detector.observe(Observed.of(Goal("another"), 700, goal="one"))
    assert detector.data == ClaimFacts(asked=["another"])


def test_contradiction_detector_a_megabyte_takes_no_longer_than_its_beginning() -> None:
    for piece in ("a", "x1 ", '{"a": [', "is open, ", '"ok": false, ', "1 of 2 ", "\\n", "uploaded "):
        long = piece * (1_000_000 // len(piece))
        begun = time.process_time()
        detector = after(UPLOAD, ("upload", {"file": long}, long))
        assert time.process_time() - begun < 0.5  # two calls and their results; 50 ms each on a quiet machine
        begun = time.process_time()
        claim(detector, long)
        assert time.process_time() - begun < 0.25


def test_done_acts_need_a_plain_statement() -> None:
    assert done_acts("the report was sent".split()) == {"send"}
    for text in ("the report could be sent", "if it was sent", "the sent report", "you sent it to the customer"):
        assert done_acts(text.split()) == set()


def test_statements_leave_code_and_quotations_out() -> None:
    assert statements("Done. It works!\n> not mine\n```\ncode.\n```\n1. First") == ["Done.", "It works!", "First"]
    assert statements("") == []
