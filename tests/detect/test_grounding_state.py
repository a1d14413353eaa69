"""Values that are given, stated, opened and used, event by event; and the bounds of what is remembered of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.config import GroundingConfig, MonitorConfig
from coherence.core.events import Event, Goal, Message, Outcome, Ticked, ToolCall, ToolResult
from coherence.core.readings import MAX_CLAIMS, Claim
from coherence.core.registry import register, unregister
from coherence.core.validation import to_json
from coherence.detect import extractors, grounding_state, sources
from coherence.detect.answer_text import without_thinking
from coherence.detect.extractors import DEFAULT, extract
from coherence.detect.grounding import MAX_JUDGED, judge
from coherence.detect.grounding_state import GroundingAccount
from coherence.detect.reckoned import Reckoning
from coherence.detect.sources import MAX_CHARS, MAX_FOLDED, MAX_PAIRS, Given, SeenNumber, take_source, unused_share
from coherence.detect.text_analysis import LONG, SKIMMED
from coherence.detect.values import fold
from coherence.state.reducer import AgentState
from coherence.testing.contract import HOSTILE_TEXTS
from detect.judging import CHOSEN, Agent, given_by

OSLO = "https://example.org/oslo"


def test_grounding_detector_an_address_that_is_listed_is_not_opened() -> None:
    agent = Agent()
    agent.call("search", query="Norway")
    agent.result(f"1. Oslo in winter {OSLO}\n2. Bergen in rain https://example.org/bergen")
    assert agent.says(f"See {OSLO}") == [("unopened", OSLO)]
    agent.call("fetch", url="https://www.example.org/oslo/?utm_source=list")
    agent.result("Not now", error=True)
    assert agent.says(f"See {OSLO}") != []
    agent.call("fetch", url="http://example.org/oslo/")
    agent.result("Snow.")
    assert agent.says(f"See {OSLO}") == []
    assert Agent(f"Is {OSLO} up?").says(f"{OSLO} is up") == []  # what the user named need not be opened


def test_grounding_detector_a_call_that_succeeded_gives_what_it_made() -> None:
    agent = Agent()
    agent.call("write_file", path="out/report-7b.csv", text="total,4711")
    assert agent.says("I wrote out/report-7b.csv.") == [("absent", "out/report-7b.csv")]  # not yet
    agent.result("permission denied", error=True)
    assert agent.says("I wrote out/report-7b.csv.") == [("absent", "out/report-7b.csv")]
    agent.call("write_file", path="out/report-7b.csv", text="total,4711")
    agent.result("ok")
    assert agent.says("I wrote 4711 into report-7b.csv.") == []
    assert "path:out/report-7b.csv" in agent.account.given.opened


def test_grounding_detector_the_agent_s_own_words_ground_nothing() -> None:
    agent = Agent("How high is it?")
    assert agent.says("It is 2,469 m high.") == agent.says("As I said, 2,469 m.") == [("absent", "2,469 m")]


def test_grounding_detector_judges_only_ids_and_addresses_of_a_call() -> None:
    agent = Agent("Pay the bill 59XX6W.")
    for bill, value in (("59XX6W", 1.0), ("59XX6V", 0.0)):
        agent.call("pay", bill=bill, amount=1300, date="2024-05-02", note="bills/59.txt")
        assert agent.account.newest is not None and agent.account.newest.value == value


def test_unused_share_counts_results_of_which_nothing_comes_back() -> None:
    agent = Agent("When does the museum in Bergen open?")
    agent.result("Museum Bergen: open 10:30-18:15, tel. 555-0199")
    agent.result("Weather: heavy showers, umbrella advised")
    agent.result("ok")  # says nothing: is not counted
    assert unused_share(agent.account.outputs) is None
    agent.says("It opens at 10:30.")
    assert unused_share(agent.account.outputs) is not None
    agent.says("Call 555-0199; take an umbrella, heavy showers come.")
    assert unused_share(agent.account.outputs) == 0.0  # both


@pytest.mark.slow
def test_judge_what_left_is_still_known_and_after_much_more_unknown_and_never_invented() -> None:
    quoted = "“quiet blue harbour of the northern islands”"
    seen = given_by(f"first order 11AA11 of the {quoted}")
    for seq in range(2, 102):
        take_source(seen, seq, " ".join(f"{seq}QX{number}Z" for number in range(100)), CHOSEN)
    assert len(seen.values) <= sources.MAX_VALUES
    assert (seen.faded.count > 0, seen.lost, seen.lost_words) == (True, 0, 0)
    assert judge(seen, "order 22BB22 of the “tall red lighthouse”", CHOSEN).value == 0.0
    known = judge(seen, f"order 11AA11 of the {quoted}, then 5QX7Z and 101QX7Z", CHOSEN)
    assert (known.value, known.checked) == (1.0, 4)
    for seq in range(102, 450):
        take_source(seen, seq, " ".join(f"{seq}QX{number}Z" for number in range(100)), CHOSEN)
    late = judge(seen, "order 22BB22", CHOSEN)
    assert (seen.lost > 0, late.value, late.unknown) == (True, None, 1)
    assert judge(seen, "order 449QX7Z", CHOSEN).value == 1.0


def test_grounding_account_of_an_older_release_is_taken_up() -> None:
    plain = msgspec.to_builtins(Agent("Pay 59XX6W: $1,200").account)
    for name in ("written", "faded", "faded_words", "lost_numbers"):
        del plain["given"][name]
    agent = Agent()
    agent.detector.restore(msgspec.convert(plain, GroundingAccount))
    agent.says("59XX6V for $1,300")
    assert agent.account.answer is not None  # how the near values were written is not known
    assert [flaw.near for flaw in agent.account.answer.flaws] == ["59xx6w", "1200usd"]


def test_grounding_detector_one_long_source_does_not_blind_the_tasks_after_it() -> None:
    agent = Agent()
    agent.result(f"order A-1001 {'filler ' * 10_000} order A-1002")
    assert agent.says("The order is A-1777.") == []  # it may stand in the middle, which was not read
    agent.observe(Outcome(True))
    agent.observe(Message("user", "And the next one?"))
    agent.result("order A-1003")
    assert agent.says("The order is A-1777.") != []
    assert agent.says("The order is A-1002.") == []  # what was read before is still known


def test_judge_reads_both_ends_of_a_huge_source_and_knows_that_more_may_stand_between() -> None:
    seen = given_by("head 11AA11 " + "x" * 10**6 + " tail 22BB22")
    assert judge(seen, "11AA11 and 22BB22", CHOSEN).value == 1.0
    assert judge(seen, "33CC33", CHOSEN).unknown == 1
    agent = Agent()
    agent.result(f"CVE-2021-44228 {'x ' * (LONG // 2)} CVE-2014-0160")  # a long result is skimmed
    assert judge(agent.account.given, "CVE-2021-44228 and CVE-2014-0160", CHOSEN).value == 1.0
    assert judge(agent.account.given, "CVE-2019-0708", CHOSEN).unknown == 1
    assert len(agent.account.given.pairs) <= SKIMMED


@pytest.mark.parametrize(("count", "flaws", "unknown"), [(1_000, 1, 0), (MAX_CLAIMS + 500, 0, 1)])
def test_judge_a_value_that_may_stand_among_those_not_looked_at_is_unknown(
    count: int, flaws: int, unknown: int
) -> None:
    text = " ".join(f"{at * 7 + 100_001}" for at in range(count))
    assert len(text) < MAX_CHARS
    found = judge(given_by(text), "It is 99173.", CHOSEN)  # no value of the source is near
    assert (len(found.flaws), found.unknown) == (flaws, unknown)


def test_judge_values_of_an_answer_beyond_the_most_are_unknown() -> None:
    answer = " ".join(f"AB-{at}" for at in range(100, 100 + MAX_JUDGED + 7))
    found = judge(given_by("nothing"), answer, CHOSEN)
    assert (found.checked, found.unknown) == (MAX_JUDGED, 7)


def test_take_source_is_bounded_by_the_text_as_it_is_folded_and_by_words() -> None:
    for size, lost in ((20_000, 1), (MAX_FOLDED // 8, 0)):
        seen = given_by("\ufdfb" * size)  # one character that stands for 8
        assert (seen.lost, seen.lost_words) == (lost, lost)
    agent = Agent()
    for seq in range(MAX_PAIRS // 50):
        agent.call(" ".join(f"t{seq}x{at}" for at in range(60)))
    assert len(agent.account.given.pairs) <= MAX_PAIRS


HOSTILE = ("1,1", "111,", "1 ", "(", "f(", "“", '"x', "a/", "[", "May ", "<think>")


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, *(piece * 20_000 for piece in HOSTILE)])
def test_grounding_detector_hostile_texts_are_only_texts(text: str) -> None:
    agent = Agent(text)
    arguments = msgspec.json.encode({"text": text, "deep": [[[text]]]}) if text.isascii() else b"{}"
    agent.observe(ToolCall(text[:100] or "t", msgspec.Raw(arguments), "c"))
    agent.result(text)
    agent.observe(Message("assistant", text))
    answer = agent.account.answer
    assert answer is None or answer.value in (None, 1.0)  # it says what it was given
    packed = msgspec.msgpack.encode(agent.account)
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(packed, type=GroundingAccount)) == packed


@examples(150)
@given(st.text(max_size=300))
def test_grave_every_text_is_grounded_in_itself(text: str) -> None:
    assert judge(given_by(text), text, CHOSEN).grave == ()
    assert all(0 <= claim.start <= len(fold(text)) for claim in extract(fold(text), CHOSEN))


def test_grounding_detector_goes_on_alike_where_an_account_is_taken_up_again() -> None:
    one, other = Agent("Pay 59XX6W by May 1, 2024"), Agent()
    one.call("read", path="bill.txt", sum="3 h 20 min, $1,200.50")
    other.detector.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(one.account), type=GroundingAccount))
    other.seq = one.seq
    for agent in (one, other):
        agent.result("59XX6W: 1200 USD")
        agent.says("59XX6W is 1300 USD")
    assert msgspec.json.encode(one.account) == msgspec.json.encode(other.account)


def looked_up() -> Agent:
    """Return an agent that was asked for K7-1207, looked it up, and found it for the customer ANNA_88."""
    agent = Agent("Cancel order K7-1207.")
    agent.call("get_order", order_id="K7-1207")
    agent.result('{"order": "K7-1207", "customer": "ANNA_88", "items": ["4107812777"]}')
    return agent


@pytest.mark.parametrize(
    ("tool", "arguments", "unknown"),
    [
        ("get_order", {"order_id": "B4-5511"}, "B4-5511"),
        ("get_customer", {"customer": "TOM_41"}, "TOM_41"),
        ("get_customer", {"customer": "anna_88"}, ""),  # the result named it
        ("get_item", {"item_id": "5538921006"}, ""),  # a number may count something
        ("create_order", {"order_id": "B4-5511"}, ""),  # it is what gives the order its id
        ("search", {"query": "orders like B4-5511 of March"}, ""),  # no argument of its own
        ("get_order", {"order_id": "K7-1208"}, ""),  # the next in a row of ids
    ],
)
def test_unknown_id_is_one_that_nothing_has_given(tool: str, arguments: dict[str, object], unknown: str) -> None:
    agent = looked_up()
    agent.call(tool, **arguments)
    assert (agent.account.unknown_id, agent.account.unknown) == (unknown, 1.0 if unknown else 0.0)


def test_unknown_counts_less_as_long_as_no_id_was_known() -> None:
    agent = Agent("Is anything late?")
    agent.call("get_order", order_id="B4-5511")
    assert agent.account.unknown == 0.0  # nothing was looked up yet: it may be told where nobody records it
    agent.result("Order is on its way.")
    agent.call("get_order", order_id="C9-6620")
    assert (agent.account.unknown_id, agent.account.unknown_seq, agent.account.unknown) == ("C9-6620", 4, 0.6)


def test_unknown_fades_and_the_id_is_known_once_its_call_has_succeeded() -> None:
    agent = looked_up()
    agent.call("get_order", order_id="B4-5511")
    agent.says("That is another order.")
    assert agent.account.unknown == pytest.approx(0.7)
    agent.result("shipped")
    agent.call("get_order", order_id="B4-5511")
    assert agent.account.unknown == pytest.approx(0.49)  # 0.7 * 0.7: it is no new one
    agent.detector.renumber()
    assert (agent.account.unknown_seq, agent.account.unknown > 0.0) == (0, True)
    agent.observe(Goal("Another task"))
    assert agent.account.unknown == 0.0


PARTS = st.sampled_from(["a", "b.py", ".", "/", "\\", "é", "x.", "..", " ", "\n", "\u00a0", "\x1c", "src/a.c", "1.5"])


@examples(150)
@given(st.lists(PARTS, max_size=30).map("".join))
@example("x.y x.y. /x.y x.y")
def test_paths_only_words_with_a_sign_hold_any(text: str) -> None:
    forms = re.compile(extractors._PATH_FORMS)
    words = [found.span() for found in re.finditer(r"\S+", text)]
    whole = [match.span() for place in words for match in forms.finditer(text, *place)]
    found = [match.span("found") for match in extractors._PATH.finditer(text) if match["found"]]
    assert found == whole


ID_PARTS = st.sampled_from([*"id ID _ - 1 12 ab AB # + ( ) = . é 年 ٣".split(), " ", ": ", " is", "DE12 3456"])


@examples(150)
@given(st.lists(ID_PARTS, max_size=14).map("".join))
@example("no id: 17, e-id: 18, ID_#19, DE12 3456 3456 3456, 年a1, éa1, +49 30 1234567, x-1-")
def test_ids_only_words_with_a_digit_hold_any(text: str) -> None:
    whole = [match.span() for match in re.finditer(extractors._ID_FORMS, text)]
    found = [match.span("found") for match in extractors._ID.finditer(text) if match["found"]]
    assert found == whole


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <think>b</think> c", "a   c"),
        ("a <think>b</thinking> c", "a <think>b</thinking> c"),
        ("<think><thinking>1</thinking>2", "<think> 2"),
        ("1 < 2 <think>x</think>3<thinking>y</thinking>4", "1 < 2  3 4"),
    ],
)
def test_without_thinking_leaves_out_what_the_agent_says_to_itself(text: str, left: str) -> None:
    assert without_thinking(text) == left


@given(st.lists(st.tuples(st.integers(200, 999), st.sampled_from(["", "usd", "%", "clock"])), max_size=6))
def test_reckoning_what_two_numbers_of_a_line_make_follows_from_them(told: list[tuple[int, str]]) -> None:
    numbers = [SeenNumber(float(value), unit, 1, place, 0) for place, (value, unit) in enumerate(told)]
    reckoning = Reckoning(Given(numbers=numbers))
    for (one, unit), (two, other) in pairwise(told):
        claim = Claim("number", str(one + two), 0, (f"n:{one + two}",), (), float(one + two), 1.0, "")
        if unit == other == "" and len(told) < 4 and one != two:
            assert reckoning.reaches(f"{one + two} in total", claim, ())
    far = Claim("number", "77777777", 0, ("n:77777777",), (), 77777777.0, 1.0, "")
    assert not reckoning.reaches("77777777 in total", far, ())


BROKEN: list[Claim] = [
    Claim("id", "x", 0, ()),
    Claim("id", "x", -1, ("id:x",)),
    Claim("id", "x", 0.5, ("id:x",)),  # type: ignore[arg-type]
    Claim("id", "x", 0, (5,)),  # type: ignore[arg-type]
    Claim("id", "x", 0, ("id:\ud800",)),
    Claim("number", "x", 0, ("n:x",), (), float("nan"), 1.0),
    "x",  # type: ignore[list-item]
]


@pytest.mark.parametrize("broken", BROKEN)
def test_grounding_detector_reports_a_broken_claim_of_a_plug_in_and_goes_on(broken: Claim) -> None:
    def find(text: str) -> Sequence[Claim]:
        return [Claim("id", text[:1], 0, (f"id:{text[:1]}",)), broken]

    register(find, name="broken", group="extractors")
    try:
        state = AgentState(MonitorConfig(grounding=GroundingConfig(extractors=("broken", *DEFAULT))))
        told: list[Event] = [Goal("AB-17"), ToolResult("AB-17 x"), Message("assistant", "AB-17"), Outcome(True)]
        for seq, event in enumerate(told, 1):
            state.fold(seq, float(seq), event)
    finally:
        unregister("broken", group="extractors")
    assert "broken" in state.grounding.data.failed
    assert state.grounding.data.newest is not None and state.grounding.data.newest.value == 1.0
    assert to_json("facts", state.facts)


def test_grounding_detector_a_waiting_message_is_held_against_the_records_once(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent("When do the trains leave?")
    agent.result("RE5: 07:42\nRE9: 08:15\nRE11: 09:30")
    agent.says("RE5 leaves at 08:15.")
    stored = msgspec.msgpack.encode(agent.account)
    assert agent.account.waits(agent.seq)
    assert msgspec.msgpack.encode(agent.account) == stored
    with monkeypatch.context() as patched:
        patched.setattr(grounding_state, "misplaced", None)
        assert agent.account.waits(agent.seq)
        agent.observe(Ticked("decide"))
    assert agent.account.answer is not None
    assert [flaw.flaw for flaw in agent.account.answer.flaws] == ["row"]
    for answer, wrong in (("RE9 leaves at 08:15.", False), ("RE9 leaves at 07:42.", True)):
        agent.says(answer)
        assert agent.account.waits(agent.seq) is wrong
