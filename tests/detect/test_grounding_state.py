"""Values that are given, stated, opened and used, event by event."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example
from hypothesis import given as given_that
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.events import ToolCall, ToolResult
from coherence.detect import extractors, sources
from coherence.detect.detector import Observed
from coherence.detect.extractors import DEFAULT, extract
from coherence.detect.grounding import judge
from coherence.detect.grounding_state import (
    GroundingAccount,
    GroundingDetector,
    begin_task,
    note_call,
    note_given,
    note_message,
    note_result,
)
from coherence.detect.sources import Given, take_source, unused_share
from coherence.detect.values import fold
from coherence.testing.contract import HOSTILE_TEXTS
from detect.judging import CHOSEN

LISTING = "1. Oslo in winter https://example.org/oslo\n2. Bergen in rain https://example.org/bergen"


def call(account: GroundingAccount, seq: int, tool: str, **arguments: object) -> None:
    note_call(account, seq, f"c{seq}", tool, arguments, CHOSEN)


def result(account: GroundingAccount, seq: int, text: str, *, error: bool = False) -> None:
    note_result(account, seq, None, text, CHOSEN, error=error)


def flaws(account: GroundingAccount, seq: int, text: str) -> list[tuple[str, str]]:
    note_message(account, seq, text, CHOSEN)
    assert account.answer is not None
    return [(flaw.flaw, flaw.text) for flaw in account.answer.flaws]


def test_grounding_account_listed_is_not_opened() -> None:
    account = GroundingAccount()
    call(account, 1, "search", query="Norway")
    result(account, 2, LISTING)
    assert flaws(account, 3, "See https://example.org/oslo") == [("unopened", "https://example.org/oslo")]
    call(account, 4, "fetch", url="https://www.example.org/oslo/?utm_source=list")
    result(account, 5, "Not now", error=True)
    assert flaws(account, 6, "See https://example.org/oslo") != []  # it could not be opened
    call(account, 7, "fetch", url="http://example.org/oslo/")
    result(account, 8, "Snow.")
    assert flaws(account, 9, "See https://example.org/oslo") == []


def test_note_given_what_the_user_named_need_not_be_opened() -> None:
    account = GroundingAccount()
    note_given(account, 1, "Is https://example.org/oslo up?", CHOSEN)
    assert flaws(account, 2, "https://example.org/oslo is up") == []


def test_grounding_account_what_the_agent_made_by_a_call_that_succeeded_is_known() -> None:
    account = GroundingAccount()
    call(account, 1, "write_file", path="out/report-7b.csv", text="total,4711")
    assert flaws(account, 2, "I wrote out/report-7b.csv.") == [("absent", "out/report-7b.csv")]  # not yet
    result(account, 3, "permission denied", error=True)
    assert flaws(account, 4, "I wrote out/report-7b.csv.") == [("absent", "out/report-7b.csv")]
    call(account, 5, "write_file", path="out/report-7b.csv", text="total,4711")
    result(account, 6, "ok")
    assert flaws(account, 7, "I wrote 4711 into report-7b.csv.") == []


def test_note_given_the_agent_s_own_words_ground_nothing() -> None:
    account = GroundingAccount()
    note_given(account, 1, "How high is it?", CHOSEN)
    assert flaws(account, 2, "It is 2,469 m high.") == [("absent", "2,469 m")]
    assert flaws(account, 3, "As I said, 2,469 m.") == [("absent", "2,469 m")]


def test_of_a_call_only_ids_and_addresses_are_judged() -> None:
    account = GroundingAccount()
    note_given(account, 1, "Pay the bill 59XX6W.", CHOSEN)
    call(account, 2, "pay", bill="59XX6W", amount=1300, date="2024-05-02", note="bills/59.txt")
    assert account.call is not None
    assert account.call.value == 1.0
    call(account, 3, "pay", bill="59XX6V")
    assert account.newest is not None
    assert account.newest.value == 0.0


def test_note_message_results_of_which_nothing_comes_back_are_unused() -> None:
    account = GroundingAccount()
    note_given(account, 1, "When does the museum in Bergen open?", CHOSEN)
    result(account, 2, "Museum Bergen: open 10:30-18:15, tel. 555-0199")
    result(account, 3, "Weather: heavy showers, umbrella advised")
    result(account, 4, "ok")  # says nothing: is not counted
    assert unused_share(account.outputs) is None
    note_message(account, 5, "It opens at 10:30.", CHOSEN)
    assert unused_share(account.outputs) is not None
    note_message(account, 6, "Call 555-0199; take an umbrella, heavy showers come.", CHOSEN)
    assert unused_share(account.outputs) == 0.0  # both


@pytest.mark.slow
def test_judge_what_left_is_still_known_and_after_much_more_unknown_and_never_invented() -> None:
    seen = Given()
    take_source(seen, 1, "first order 11AA11 of the “quiet blue harbour of the northern islands”", CHOSEN)
    for seq in range(2, 102):
        take_source(seen, seq, " ".join(f"{seq}QX{number}Z" for number in range(100)), CHOSEN)
    assert len(seen.values) <= sources.MAX_VALUES
    assert (seen.faded.count > 0, seen.lost, seen.lost_words) == (True, 0, 0)
    assert judge(seen, "order 22BB22 of the “tall red lighthouse”", CHOSEN).value == 0.0
    known = judge(
        seen, "order 11AA11 of the “quiet blue harbour of the northern islands”, then 5QX7Z and 101QX7Z", CHOSEN
    )
    assert (known.value, known.checked) == (1.0, 4)
    for seq in range(102, 450):
        take_source(seen, seq, " ".join(f"{seq}QX{number}Z" for number in range(100)), CHOSEN)
    assert seen.lost > 0
    late = judge(seen, "order 22BB22", CHOSEN)
    assert (late.value, late.unknown) == (None, 1)
    assert judge(seen, "order 449QX7Z", CHOSEN).value == 1.0


def test_grounding_account_an_account_of_an_older_release_is_taken_up() -> None:
    one = GroundingAccount()
    note_given(one, 1, "Pay 59XX6W: $1,200", CHOSEN)
    plain = msgspec.to_builtins(one)
    for name in ("written", "faded", "faded_words", "lost_numbers"):
        del plain["given"][name]
    old = msgspec.convert(plain, GroundingAccount)
    note_message(old, 2, "59XX6V for $1,300", CHOSEN)
    assert old.answer is not None
    assert [flaw.near for flaw in old.answer.flaws] == ["59xx6w", "1200usd"]  # how it was written is not known


def test_begin_task_one_long_source_does_not_blind_the_tasks_after_it() -> None:
    account = GroundingAccount()
    call(account, 1, "read")
    result(account, 2, f"order A-1001 {'filler ' * 10_000} order A-1002")
    assert flaws(account, 3, "The order is A-1777.") == []  # it may stand in the middle, which was not read
    begin_task(account)
    call(account, 4, "read")
    result(account, 5, "order A-1003")
    assert flaws(account, 6, "The order is A-1777.") != []
    assert flaws(account, 7, "The order is A-1002.") == []  # what was read before is still known


def test_judge_of_a_huge_source_both_ends_are_read() -> None:
    seen = Given()
    take_source(seen, 1, "head 11AA11 " + "x" * 10**6 + " tail 22BB22", CHOSEN)
    assert judge(seen, "11AA11 and 22BB22", CHOSEN).value == 1.0
    assert judge(seen, "33CC33", CHOSEN).unknown == 1


@pytest.mark.parametrize(
    "text",
    [
        *HOSTILE_TEXTS,
        *(piece * 20_000 for piece in ("1,1", "111,", "1 ", "(", "f(", "“", '"x', "a/", "[", "May ", "<think>")),
    ],
)
def test_grounding_account_hostile_texts_are_only_texts(text: str) -> None:
    account = GroundingAccount()
    note_given(account, 1, text, CHOSEN)
    call(account, 2, text[:100] or "t", text=text, deep=[[[text]]])
    result(account, 3, text)
    note_message(account, 4, text, CHOSEN)
    assert account.answer is None or account.answer.value in (None, 1.0)  # it says what it was given
    packed = msgspec.msgpack.encode(account)
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(packed, type=GroundingAccount)) == packed


@examples(150)
@given_that(st.text(max_size=300))
def test_grave_every_text_is_grounded_in_itself(text: str) -> None:
    seen = Given()
    take_source(seen, 1, text, CHOSEN)
    found = judge(seen, text, CHOSEN)
    assert found.grave == ()
    for claim in extract(fold(text), CHOSEN):
        assert 0 <= claim.start <= len(fold(text))


def test_grounding_account_an_account_taken_up_again_goes_on_alike() -> None:
    one = GroundingAccount()
    note_given(one, 1, "Pay 59XX6W by May 1, 2024", CHOSEN)
    call(one, 2, "read", path="bill.txt")
    other = msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=GroundingAccount)
    for account in (one, other):
        result(account, 3, "59XX6W: 1200 USD")
        note_message(account, 4, "59XX6W is 1300 USD", CHOSEN)
    assert msgspec.json.encode(one) == msgspec.json.encode(other)


def looked_up(*calls: tuple[str, dict[str, object]]) -> GroundingAccount:
    """Return an account in which K7-1207 was asked for, looked up, and found for the customer ANNA_88."""
    account = GroundingAccount()
    note_given(account, 1, "Cancel order K7-1207.", CHOSEN)
    call(account, 2, "get_order", order_id="K7-1207")
    result(account, 3, '{"order": "K7-1207", "customer": "ANNA_88", "items": ["4107812777"]}')
    for seq, (tool, arguments) in enumerate(calls, 4):
        call(account, seq, tool, **arguments)
    return account


@pytest.mark.parametrize(
    ("tool", "arguments", "unknown"),
    [
        ("get_order", {"order_id": "B4-5511"}, "B4-5511"),
        ("get_customer", {"customer": "TOM_41"}, "TOM_41"),
        ("get_customer", {"customer": "ANNA_88"}, ""),  # the result named it
        ("get_customer", {"customer": "anna_88"}, ""),
        ("get_item", {"item_id": "5538921006"}, ""),  # a number may count something
        ("create_order", {"order_id": "B4-5511"}, ""),  # it is what gives the order its id
        ("search", {"query": "orders like B4-5511 of March"}, ""),  # no argument of its own
        ("note", {"text": "checked\nB4-5511\ntwice"}, ""),
        ("get_page", {"page": 12}, ""),  # too short to name one thing
        ("get_order", {"order_id": "K7-1208"}, ""),  # the next in a row of ids
    ],
)
def test_note_call_remembers_an_id_that_nothing_has_given(
    tool: str, arguments: dict[str, object], unknown: str
) -> None:
    account = looked_up((tool, arguments))
    assert (account.unknown_id, account.unknown) == (unknown, 1.0 if unknown else 0.0)


def test_note_call_an_unknown_id_counts_less_as_long_as_no_id_was_known() -> None:
    account = GroundingAccount()
    note_given(account, 1, "Is anything late?", CHOSEN)
    call(account, 2, "get_order", order_id="B4-5511")
    assert account.unknown == 0.0  # nothing was looked up yet: it may be told where nobody records it
    result(account, 3, "Order is on its way.")
    call(account, 4, "get_order", order_id="C9-6620")
    assert (account.unknown_id, account.unknown_seq, account.unknown) == ("C9-6620", 4, 0.6)


def test_note_call_an_unknown_id_fades_and_is_known_once_its_call_has_succeeded() -> None:
    account = looked_up(("get_order", {"order_id": "B4-5511"}))
    note_message(account, 5, "That is another order.", CHOSEN)
    assert account.unknown == pytest.approx(0.7)
    result(account, 6, "shipped")
    call(account, 7, "get_order", order_id="B4-5511")
    assert account.unknown == pytest.approx(0.49)  # 0.7 * 0.7: it is no new one
    begin_task(account)
    assert account.unknown == 0.0


def test_grounding_account_renumber_forgets_which_call_named_the_unknown_id() -> None:
    account = looked_up(("get_order", {"order_id": "B4-5511"}))
    account.renumber()
    assert (account.unknown_seq, account.unknown) == (0, 1.0)


def test_grounding_detector_that_knows_what_a_call_holds_does_as_one_that_looks_again() -> None:
    calls = [(b'{"path": "a/b.txt", "sum": "3 h 20 min, $1,200.50"}', "c1"), (b'{"id": "59XX6W"}', "c2")]
    alike = GroundingDetector(DEFAULT), GroundingDetector(DEFAULT)
    for detector in alike:
        for seq, (arguments, call_id) in enumerate(calls, 1):
            detector.observe(Observed.of(ToolCall("read", msgspec.Raw(arguments), call_id), seq))
    alike[1]._found.clear()
    for detector in alike:
        for seq, (_, call_id) in enumerate(calls, 3):
            detector.observe(Observed.of(ToolResult("done, 7 pages", call_id=call_id), seq))
    assert msgspec.json.encode(alike[0].data) == msgspec.json.encode(alike[1].data)
    assert "path:a/b.txt" in alike[0].data.given.opened


PARTS = st.sampled_from(["a", "b.py", ".", "/", "\\", "é", "x.", "..", " ", "\n", "\u00a0", "\x1c", "src/a.c", "1.5"])


@examples(150)
@given_that(st.lists(PARTS, max_size=30).map("".join))
@example("x.y x.y. /x.y x.y")
def test_paths_only_words_with_a_sign_hold_any(text: str) -> None:
    forms = re.compile(extractors._PATH_FORMS)
    words = [found.span() for found in re.finditer(r"\S+", text)]
    whole = [match.span() for place in words for match in forms.finditer(text, *place)]
    found = [match.span("found") for match in extractors._PATH.finditer(text) if match["found"]]
    assert found == whole


ID_PARTS = st.sampled_from([*"id ID _ - 1 12 ab AB # + ( ) = . é 年 ٣".split(), " ", ": ", " is", "DE12 3456"])


@examples(150)
@given_that(st.lists(ID_PARTS, max_size=14).map("".join))
@example("no id: 17, e-id: 18, ID_#19, DE12 3456 3456 3456, 年a1, éa1, +49 30 1234567, x-1-")
def test_ids_only_words_with_a_digit_hold_any(text: str) -> None:
    whole = [match.span() for match in re.finditer(extractors._ID_FORMS, text)]
    found = [match.span("found") for match in extractors._ID.finditer(text) if match["found"]]
    assert found == whole
