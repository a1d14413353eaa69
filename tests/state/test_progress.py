"""Progress of what the agent does."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from coherence.core.events import Goal, ToolCall, ToolResult
from coherence.state.progress import (
    ALIKE_AGAIN,
    CHANGED,
    CHANGED_AGAIN,
    EMPTY,
    EMPTY_AGAIN,
    REPEATS_FADE,
    SUCCESS,
    TAKEN_BACK,
    UNDONE,
    WITHIN,
    ProgressFacts,
    is_mutating,
)
from coherence.state.reducer import AgentState


def run(actions: Iterable[tuple[str, object, str]], *, error: bool = False) -> ProgressFacts:
    """Fold calls with their results, and return what is remembered."""
    state = AgentState()
    state.fold(1, 0.0, Goal("find the cause"))
    seq = 1
    for tool, arguments, result in actions:
        state.fold(seq + 1, 0.0, ToolCall(tool, msgspec.Raw(msgspec.json.encode(arguments)), f"c{seq}"))
        state.fold(seq + 2, 0.0, ToolResult(call_id=f"c{seq}", result=result, error=error))
        seq += 2
    return state.progress.data


def test_progress_the_same_call_with_the_same_result_adds_up() -> None:
    data = run([("grep", {"q": "login"}, "src/login.py: def login")] * 4)
    assert round(data.stall, 3) == round(1 + 0.9 + 0.81, 3)  # the first repeats nothing


def test_progress_other_words_for_a_search_that_finds_nothing_add_up() -> None:
    words = ("login error", "login error handling", "error in login", "login errors", "the login error")
    assert run(("search", {"query": query}, "[]") for query in words).stall > 2.0
    assert run(("search", {"query": query}, "[]") for query in words).failures == pytest.approx(4 * EMPTY_AGAIN)
    found = run(("search", {"query": query}, f"{query}: page {len(query)}") for query in words)
    assert found.stall == found.failures == 0.0


def test_progress_waiting_and_gauges_and_calls_without_arguments_stay_calm() -> None:
    assert (
        run([("job", {"id": "a"}, '{"status": "pending"}')] * 6).stall < 0.62
    )  # 0.15 (1 + 0.9 + ... + 0.9**4) = 0.614
    assert run([("read_sensor", {}, "67 C")] * 6).stall < 0.62
    assert run([("Edit", {}, "The file was updated.")] * 6).stall < 0.62
    assert run([("job", {"id": "a"}, f"{share} % of the files are copied") for share in range(6)]).stall == 0.0


def test_progress_failures_in_a_row_count_whether_flagged_or_not() -> None:
    calls = [("bash", {"command": f"tool{at}"}, f"bash: tool{at}: command not found") for at in range(5)]
    alike = 1.0 + 4 * ALIKE_AGAIN
    assert run(calls).failures == run(calls, error=True).failures == pytest.approx(alike)
    mended = run([*calls, ("bash", {"command": "ls"}, "a.py")])
    assert mended.failures == pytest.approx(SUCCESS * alike)


def test_progress_failures_of_different_kinds_count_in_full() -> None:
    told = ("HTTP 403 Forbidden", '{"error": "invalid_grant"}', "java.lang.NullPointerException\n\tat a.Macro.run")
    assert run(("api", {"step": at}, text) for at, text in enumerate(told)).failures == 3.0


def test_progress_a_call_after_a_change_repeats_half() -> None:
    read = ("Bash", {"command": "pytest -q"}, "1 failed, as before")
    write = ("Write", {"file_path": "/a.py", "content": "x = 2"}, "ok, it is written")
    assert run([read, read]).stall == 1.0
    assert run([read, write, read]).stall == CHANGED
    assert run([("Bash", {"command": f"sed -i {line}d a.py"}, "") for line in range(5)]).stall == 0.0


def test_progress_what_is_remembered_is_bounded_and_another_goal_begins_anew() -> None:
    data = run([("grep", {"q": str(at)}, f"line {at} of text") for at in range(200)])
    assert len(data.tried) == WITHIN
    assert not data.open
    assert len(msgspec.json.encode(data)) < 20_000
    state = AgentState()
    state.progress.data = data
    state.fold(1, 0.0, Goal("another task"))
    assert state.progress.data == ProgressFacts()


def test_progress_identical_calls_are_counted_until_something_is_changed() -> None:
    look = ("search", {"q": "rates"}, "rate: 4.1 % (source: table 3)")
    assert run([look] * 3).repeats == 2.0
    other = ("search", {"q": "fees"}, "fee: 12 euros (source: table 9)")
    assert run([look, look, look, other]).repeats == pytest.approx(2.0 * REPEATS_FADE)
    write = ("write_file", {"path": "a.txt", "content": "4.1"}, "ok")
    assert run([look, write, look]).repeats == 0.0, "what is read after a change may have changed"
    assert run([("set_price", {"sku": "a", "price": 4}, "ok, saved")] * 3).repeats == 2.0, "a change made again is none"


def test_progress_a_result_that_differs_in_its_time_is_not_identical() -> None:
    readings = [("sensor", {"id": "kitchen"}, f'{{"value": 21.5, "at": "17:{minute}"}}') for minute in range(10, 14)]
    assert run(readings).repeats == 0.0
    waits = [("sensor", {"id": "kitchen"}, '{"value": 21.5}'), ("sleep", {"minutes": 15}, "done")] * 4
    assert run(waits).repeats < 1.0, "what is asked again after waiting is a poll"


def test_progress_reversal_counts_other_values_of_the_same_thing_and_most_what_was_taken_back() -> None:
    def moved(*times: str) -> float:
        return run(("reschedule_event", {"event_id": "25", "start": at}, f"moved to {at}") for at in times).reversals

    assert moved("10:00") == 0.0
    assert moved("10:00", "15:00") == pytest.approx(CHANGED_AGAIN)
    assert moved("10:00", "15:00", "10:00") == pytest.approx(CHANGED_AGAIN + TAKEN_BACK)
    tags = [("set_tag", {"id": at, "tag": "archived"}, "ok") for at in range(6)]
    assert run(tags).reversals == 0.0, "each is another thing"
    pages = [("leer_documento", {"id": "PI-014", "paginas": at}, f"página {at}") for at in (1, 2, 1, 3)]
    assert run(pages).reversals == 0.0, "reading changes nothing"


def test_progress_reversal_an_edit_undone_and_made_again() -> None:
    there = ("bash", {"command": "sed -i '42s/</<=/' app.py && pytest -q tests/test_edge.py"}, "1 failed")
    back = ("bash", {"command": "sed -i '42s/<=/</' app.py && pytest -q tests/test_edge.py"}, "1 failed")
    assert run([there, back]).reversals == 0.0
    assert run([there, back, there]).reversals == pytest.approx(UNDONE)
    good = (*back[:2], "all passed")
    assert run([there, good, there]).reversals == 0.0, "what failed is taken back for a reason"


def test_progress_a_fix_taken_back_to_see_a_test_fail_is_no_reversal() -> None:
    there = ("bash", {"command": "sed -i '42s/</<=/' app.py"}, "")
    back = ("bash", {"command": "sed -i '42s/<=/</' app.py"}, "")
    test = ("bash", {"command": "pytest -q tests/test_edge.py"}, "1 failed")
    assert run([there, back, there]).reversals == pytest.approx(UNDONE)
    assert run([there, test, back, test, there]).reversals == 0.0


def test_progress_reversal_an_edit_that_shows_the_file_a_swap_and_a_command_line() -> None:
    def edit(old: str, new: str) -> tuple[str, object, str]:
        return "Edit", {"file_path": "a.js", "old_string": old, "new_string": new}, f"updated: 12 {new}"

    serial, parallel = edit("post(event);", "await post(event);"), edit("await post(event);", "post(event);")
    assert run([serial, parallel, serial]).reversals == pytest.approx(UNDONE), "each shows another text"
    swap, back = (
        ("swap", {"class": "7b", "a": a, "b": b}, f"swapped {a}") for a, b in (("Tue", "Wed"), ("Wed", "Tue"))
    )
    assert run([swap, back, swap]).reversals == pytest.approx(UNDONE)
    more, less = (
        ("kubectl", {"args": f"set resources deploy/api --limits={limit}"}, "updated") for limit in (768, 512)
    )
    assert run([more, less, more]).reversals == pytest.approx(UNDONE)
    looks = [("kubectl", {"args": f"get pods -l app={name}"}, "1/1 Running") for name in ("api", "web", "api")]
    assert run(looks).reversals == 0.0


def repeated(tool: str, key: str, texts: Iterable[str], result: str = "No matches found.") -> float:
    """Return how often a call counts as made before, after calls that differ in one argument."""
    return run((tool, {key: text}, result) for text in texts).repeats


@pytest.mark.parametrize(
    ("tool", "key", "texts"),
    [
        ("read_file", "path", ("check.txt", "./check.txt", "check.TXT")),
        ("search_flight", "origin", ("ORD", "ord", "ORD ")),
        ("search_mail", "query", ("actions", "the actions", "Actions of last week")),
        (
            "bash",
            "command",
            ("grep -rn 'epub_registry' .", "git grep epub_registry", "find . | xargs grep epub_registry"),
        ),
    ],
)
def test_varies_a_search_spelt_in_another_way_that_finds_nothing_was_made_before(
    tool: str, key: str, texts: tuple[str, ...]
) -> None:
    assert repeated(tool, key, texts) == 2.0


def test_varies_another_term_or_something_found_or_changed_is_no_repeat() -> None:
    assert (
        repeated("bash", "command", ("grep -rn 'retry' .", "grep -rn 'backoff' .", "grep -rn 'sleep_until' .")) == 0.0
    )
    assert repeated("get_item", "id", ("41", "42", "43")) == 0.0
    assert repeated("search", "q", ("rates", "the rates"), "rate: 4.1 % (source: table 3)") == 0.0
    look, again = (("read_file", {"path": path}, "file not found") for path in ("a.txt", "./a.txt"))
    assert run([look, ("write_file", {"path": "b.txt", "content": "x"}, "ok"), again]).repeats == 0.0


def test_progress_a_search_that_finds_nothing_is_no_success() -> None:
    failed = ("api", {"path": "/orders"}, "HTTP 503 Service Unavailable")
    assert run([failed, ("search", {"q": "orders"}, "[]")]).failures == pytest.approx(EMPTY)
    assert run([failed, ("search", {"q": "orders"}, "order 17, paid")]).failures == pytest.approx(SUCCESS)


def test_progress_a_log_that_speaks_of_limits_is_no_wait() -> None:
    log = ("read_log", {"file": "server.log"}, "[WARN] Can't keep up! Is the server overloaded? 124 ticks behind")
    assert run([log] * 4).repeats == 3.0


@pytest.mark.parametrize("tool", ["get_open_orders", "checkStatus", "http", "sensor_read", "fetch_and_send"])
def test_is_mutating_the_first_verb_decides(tool: str) -> None:
    assert not is_mutating(tool)
    assert is_mutating("mcp__crm__update_" + tool)


def test_progress_short_answers_to_calls_all_but_the_same_say_nothing() -> None:
    edits = [
        ("edit_line", {"path": f"src/shaders/file{at}.glsl", "text": "// Copyright (c) 2019-2025"}, "ok")
        for at in range(6)
    ]
    assert run(edits).stall == 0.0


@pytest.mark.parametrize("error", [False, True])
def test_progress_searches_that_exit_with_1_are_no_failures(error: bool) -> None:
    names = ("fare_table", "load_zones", "night_tariff", "child_ticket")
    looks = [("bash", {"command": f"grep -rn {name} src/"}, "Exit code 1") for name in names]
    assert run(looks, error=error).failures < 1.0
    crash = "Exit code 1\nTraceback (most recent call last):\nKeyError: 12"
    assert run([("bash", {"command": f"python {name}.py"}, crash) for name in names], error=error).failures > 3.0


def test_progress_a_file_that_is_written_anew_line_by_line_is_no_reversal_and_half_a_stall() -> None:
    def write(*lines: str) -> list[tuple[str, object, str]]:
        first = ("bash", {"command": "echo 'import csv' > load.py"}, "")
        return [first, *(("bash", {"command": f"echo '{line}' >> load.py"}, "") for line in lines)]

    rounds = [*write("rows = csv.reader(a)", "print(rows)"), *write("rows = list(csv.reader(a))", "print(rows)")]
    data = run(rounds)
    assert data.reversals == 0.0
    assert data.stall == pytest.approx(CHANGED * 0.9**2 + CHANGED)  # the first line, then the last one, after changes


def test_progress_changes_whose_arguments_the_host_left_out_are_not_known_to_be_the_same() -> None:
    edits = [("Edit", {"text": ""}, "The file src/fares.py has been updated successfully.")] * 10
    data = run(edits)
    assert data.repeats == data.stall == data.reversals == 0.0
    assert run([("list_orders", {}, "order 17 (paid), order 18 (open)")] * 4).repeats == 3.0, "it takes no arguments"
