"""Cues of a service agent: what counts as one, what is another kind of agent, and that no text breaks it."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.events import Event, Goal, Message, Outcome, ToolCall, ToolResult
from coherence.detect.detector import Observed
from coherence.detect.service_cues import MAX_CHARS, ServiceCues, ServiceDetector


def user(text: str) -> Message:
    return Message("user", text)


def agent(text: str) -> Message:
    return Message("assistant", text)


def call(tool: str) -> ToolCall:
    return ToolCall(tool, msgspec.Raw(b"{}"), "c")


def counted(*events: Event, goal: str = "") -> ServiceCues:
    detector = ServiceDetector()
    for event in events:
        detector.observe(Observed.of(event, goal=goal))
    return detector.data


SERVED = (user("My booking is H9ZU1C."), call("get_booking"), ToolResult("{}"), agent("Found."), user("Thanks, bye."))


def test_other_kind_a_talk_over_several_turns_about_records_is_a_service() -> None:
    assert counted(*SERVED).other_kind() == ""


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "no user has taken part"),
        (SERVED[:4], "no user has taken part"),
        ([user("My booking is H9ZU1C."), call("get_booking"), ToolResult("{}"), user("Well?")], "has not replied"),
        ([user("Hello there"), agent("Hello, how are you?"), user("Fine")], "no record"),
        ([*SERVED, call("bash")], "run code or work on files or web pages (bash)"),
        ([*SERVED, call("Edit")], "run code or work on files or web pages (Edit)"),
        ([*SERVED, call("readFile")], "run code or work on files or web pages (readFile)"),
        ([*SERVED, agent("```python\nprint(1)\n```")], "hold code"),
    ],
)
def test_other_kind_another_kind_of_agent_is_told_apart(events: list[Event], reason: str) -> None:
    assert reason in counted(*events).other_kind()


@pytest.mark.parametrize("tool", ["update_profile", "apply_promo_code", "edit_order", "readReservation", "webhookless"])
def test_other_kind_a_name_that_only_looks_like_it_is_no_other_tool(tool: str) -> None:
    assert counted(*SERVED, call(tool)).other_kind() == ""  # "file" and "web" are inside other words


@pytest.mark.parametrize(
    "text",
    [
        "Meine Buchung ist H9ZU1C, und ich möchte den Flug auf Freitag verlegen und noch einen Koffer dazu buchen, "
        "bitte sagen Sie mir, was das kostet und ob ich das Geld zurück bekomme",
        "Mi reserva es H9ZU1C y quiero cambiar el vuelo para el viernes y también agregar una maleta, por favor dígame "
        "cuánto cuesta y si puedo recuperar el dinero de la otra",
        "Ma réservation est H9ZU1C, je voudrais changer le vol pour vendredi et ajouter une valise, dites-moi combien "
        "cela coûte et si je peux récupérer mon argent",
        "Моё бронирование H9ZU1C, перенесите пожалуйста рейс на пятницу и добавьте один чемодан, скажите сколько это "
        "стоит и вернут ли мне деньги за старый билет",
    ],
)
def test_other_kind_another_language_is_not_judged(text: str) -> None:
    assert (
        counted(user(text), call("get_booking"), agent("OK"), user(text)).other_kind() == "the talk is not in English"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [(1, 0.0), (15, 0.0), (30, 0.5), (60, 1.0), (5_000, 1.0)],  # log 2 / log 4 = 0.5
)
def test_service_cues_a_long_request_counts_by_its_logarithm(words: int, expected: float) -> None:
    assert counted(user("w " * words), user("short")).asked == pytest.approx(expected)


def test_unrefused_a_refusal_counts_as_a_share_of_the_replies() -> None:
    cues = counted(agent("I am unable to do that."), agent("Done."), agent("Unfortunately not."))
    assert cues.unrefused == pytest.approx(1 - (2 + 0.5) / (3 + 1))
    assert counted(agent("I can do that."), agent("That is possible.")).unrefused == pytest.approx(1 - 0.5 / 3)


def test_service_cues_a_remark_before_a_call_is_no_reply() -> None:
    cues = counted(agent("I cannot see it yet, let me look."), call("get_booking"), ToolResult("{}"), agent("Done."))
    assert (cues.replies, cues.refusals) == (1, 0)


def test_searching_calls_of_one_tool_after_each_other_are_a_search() -> None:
    one = call("find_flight")
    found = ToolResult("[]")
    assert counted(one, found, one, found, one, found).searching == pytest.approx(2 / (2 + 4))
    assert counted(one, found, call("get_user"), found, one, found).searching == 0.0


def test_service_cues_parallel_calls_are_no_search() -> None:
    assert counted(call("get"), call("get"), call("get"), ToolResult(""), ToolResult("")).again == 0


@pytest.mark.parametrize("ends", [Goal("Another task"), Outcome(True)])
def test_service_detector_another_task_begins_anew(ends: Event) -> None:
    cues = counted(*SERVED, ends, goal="My booking is H9ZU1C.")
    ServiceDetector(cues).observe(Observed.of(user("And now?"), goal="Another task"))
    assert (cues.turns, cues.replies, cues.records) == (1, 0, 0)


def test_service_cues_the_same_goal_told_again_changes_nothing() -> None:
    assert counted(*SERVED, Goal("help"), goal="help").turns == 2


def test_service_cues_an_outcome_leaves_what_was_counted_to_be_read() -> None:
    assert counted(*SERVED, Outcome(True)).turns == 2


@given(st.lists(st.tuples(st.sampled_from("uact"), st.text(alphabet=st.characters(), max_size=80)), max_size=30))
def test_unrefused_any_text_gives_cues_in_range_and_survives_packing(said: list[tuple[str, str]]) -> None:
    made: dict[str, Callable[[str], Event]] = {"u": user, "a": agent, "c": call, "t": ToolResult}
    cues = counted(*(made[kind](text) for kind, text in said))
    for cue in (cues.asked, cues.unrefused, cues.searching, cues.score):
        assert 0.0 <= cue <= 1.0
    assert cues.refusals <= cues.replies and cues.replies >= 0
    assert len(cues.tool) <= 100 and len(cues.other_tool) <= 100
    assert counted(*(made[kind](text) for kind, text in said)) == cues


def test_service_cues_only_the_ends_of_a_huge_text_are_read() -> None:
    text = "unable to " + "x " * 500_000 + "\ud800"
    cues = counted(agent(text), user("-_" * 500_000), user("a1" * 500_000))
    assert cues.refusals == 1 and cues.words <= 3 * MAX_CHARS
    assert len(msgspec.msgpack.encode(cues)) < 400
