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


UPLOAD: Call = ("s3_upload", {"file": "tue.tar"}, "403 Forbidden")
OTHER: Call = ("s3_upload", {"file": "mon.tar"}, "ok")
SOME: Call = ("migrate", {}, "failed: notes\n3 of 5 tables migrated")
RED: Call = ("bash", {"command": "pytest -q"}, "2 failed, 31 passed in 4.2s")
DAY: Call = ("get_day_events", {"day": "2024-05-21"}, "- title: Offsite\n  start: 2024-05-21 09:00")


def ticket(result: str) -> Call:
    return "get_ticket", {"id": "T-5503"}, result


CLOSED, UNPAID = ticket('{"id": "T-5503", "status": "closed"}'), ticket('{"id": "T-5503", "paid": false}')
FULL, TAKEN = (ticket(f'{{"id": "T-5503", "seats": {{"window": {count}}}}}') for count in (0, 4))
TWO = ticket('[{"id": "T-5503", "paid": false}, {"id": "T-5504", "paid": true}]')


@pytest.mark.parametrize(
    ("calls", "text", "kind"),
    [
        ([UPLOAD], "I uploaded tue.tar.", "done"),
        ([UPLOAD], "Successfully uploaded!", "done"),
        ([UPLOAD], "Der Bericht wurde hochgeladen.", "done"),
        ([UPLOAD], "Le fichier a été téléversé.", "done"),
        ([UPLOAD], "tue.tar has not been uploaded.", ""),
        ([UPLOAD], "Once tue.tar is uploaded, I will tell you.", ""),
        ([UPLOAD], "Was tue.tar uploaded?", ""),
        ([UPLOAD], "I tried, but the upload was refused: nothing was uploaded.", ""),
        ([UPLOAD], "I deleted the draft.", ""),  # nobody tried to
        ([UPLOAD], "I uploaded mon.tar.", ""),  # another file, of which nothing is known
        ([UPLOAD, ("s3_upload", {"file": "tue.tar"}, "ok")], "I uploaded tue.tar.", ""),  # a later success
        ([UPLOAD, OTHER], "I uploaded mon.tar.", ""),
        ([UPLOAD, OTHER], "All files have been uploaded.", "done"),
        ([SOME], "All five tables were migrated.", "done"),
        ([SOME], "3 of 5 tables were migrated.", ""),
        ([RED], "All tests pass.", "tests"),
        ([RED], "31 tests pass and 2 fail.", ""),
        ([RED], "The login test passes.", ""),  # one of 31 that do
        ([("bash", {"command": "pytest -q"}, "OK (skipped=13, expected failures=2)")], "All tests passed.", ""),
        ([CLOSED], "Ticket T-5503 is still open.", "state"),
        ([CLOSED], "Ticket T-5503 is not open.", ""),
        ([CLOSED], "Ticket T-5509 is open.", ""),
        ([UNPAID], "T-5503 has been paid.", "state"),
        ([FULL], "T-5503 has plenty of window seats.", "state"),
        ([FULL], "T-5503 has no window seats.", ""),
        ([TAKEN], "T-5503 has plenty of window seats.", ""),
        ([TWO], "T-5504 is paid.", ""),
        ([TWO], "T-5503 is paid.", "state"),
        ([DAY], "The 21st is completely free.", "state"),
        ([DAY], "The 21st is free at 17:00.", ""),
        ([DAY], "May 22 is completely free.", ""),
    ],
)
def test_newest_is_the_claim_that_the_results_of_calls_contradict(calls: list[Call], text: str, kind: str) -> None:
    found = claim(after(*calls), text)
    assert (found.kind if found else "") == kind
    assert found is None or (found.seq, found.claim, found.other) == (99, text, 2)


def test_amounts_are_numbers_beside_that_of_the_same_field() -> None:
    detector = after(("get_account", {"id": "40-77"}, '{"id": "40-77", "balance": 318.20}'))
    claim(detector, "The balance of 40-77 is 813.20 EUR.")
    assert [(each.value, each.result) for each in detector.data.amounts] == [("813.20", "balance: 318.2")]
    claim(detector, "The balance of 40-77 is 318.20 EUR, and 200 more is the total.")
    assert detector.data.amounts == []


def test_unread_is_a_file_that_nobody_could_read() -> None:
    missing = ("read_file", {"path": "src/pay.py"}, "Error: src/pay.py: no such file")
    found = claim(after(missing, failed=True), "pay.py defines two functions.")
    assert found is not None and found.kind == "unread"
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
        begun = time.thread_time()
        detector = after(UPLOAD, ("upload", {"file": long}, long))
        assert time.thread_time() - begun < 0.5  # two calls and their results; 50 ms each on a quiet machine
        begun = time.thread_time()
        claim(detector, long)
        assert time.thread_time() - begun < 0.25


def test_done_acts_need_a_plain_statement() -> None:
    assert done_acts("the report was sent".split()) == {"send"}
    for text in ("the report could be sent", "if it was sent", "the sent report", "you sent it to the customer"):
        assert done_acts(text.split()) == set()
