"""Whatever happens to an agent: the state stays small, can be kept at any moment, and raises nothing."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.events import ToolCall, ToolResult
from coherence.lessons.troubles import MAX_CALLS, MAX_OPEN, Solved, Troubles

TEXT = st.text(max_size=60)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
COMMANDS = st.sampled_from(
    [
        "python app.py",
        "pip install a",
        "pip install a==1",
        "pytest a.py",
        "make",
        "cd x && make",
        "make | tail",
        "ls",
        "",
    ]
)
ARGUMENTS = st.one_of(
    VALUE,
    st.fixed_dictionaries({"command": COMMANDS | TEXT}),
    st.fixed_dictionaries({"path": st.sampled_from(["a", "b"]), "old_string": TEXT, "new_string": TEXT}),
)
TOOLS = st.sampled_from(["Bash", "Edit", "Read", "send", "add_user", "apply_patch", ""]) | TEXT
RESULTS = st.sampled_from(["ok", "", "ValueError: bad", "KeyError: 'a'", "KeyError: 'b'", "429 rate limit"]) | TEXT
STEPS = st.one_of(
    st.tuples(st.just("call"), TOOLS, ARGUMENTS, st.sampled_from("abc")),
    st.tuples(st.just("result"), RESULTS, st.booleans(), st.sampled_from(["a", "b", "c", "z", None])),
    st.tuples(st.sampled_from(["end_task", "renumber"])),
)


def apply(troubles: Troubles, seq: int, step: tuple[Any, ...]) -> tuple[Solved, ...]:
    if step[0] == "call":
        raw = msgspec.Raw(msgspec.json.encode(step[2]))
        troubles.observe_call(ToolCall(step[1], raw, step[3]))
    elif step[0] == "result":
        return troubles.observe_result(seq, ToolResult(step[1], error=step[2], call_id=step[3]))
    else:
        getattr(troubles, step[0])()
    return ()


@examples(150)
@given(st.lists(STEPS, max_size=40), st.integers(0, 40))
def test_troubles_any_life_is_bounded_and_can_be_kept_in_the_middle(steps: list[tuple[Any, ...]], middle: int) -> None:
    plain, kept = Troubles(), Troubles()
    for seq, step in enumerate(steps, 1):
        if seq == middle:
            kept = msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Troubles)
            kept = msgspec.json.decode(msgspec.json.encode(kept), type=Troubles)
        solved = apply(plain, seq, step)
        assert solved == apply(kept, seq, step)
        for lesson in solved:
            assert lesson.fix_text
            assert len(lesson.fix_text) <= 600
            assert "\n" not in lesson.fix_text
            assert list(lesson.seqs) == sorted(set(lesson.seqs))
            assert lesson.pattern
    assert plain == kept
    assert len(plain.open) <= MAX_OPEN
    assert len(plain.calls) <= MAX_CALLS
    for trouble in plain.open:
        assert len(trouble.steps) <= 5
        assert len(trouble.error_text) <= 4_000
        assert all(len(step.text) <= 240 for step in trouble.steps)


@examples(200)
@given(st.binary(max_size=80), st.text(max_size=40), st.text(max_size=200))
def test_troubles_bytes_that_are_no_json_and_lone_surrogates_break_nothing(
    arguments: bytes, tool: str, result: str
) -> None:
    troubles = Troubles()
    for name in (tool, "Bash", "Edit", "\ud800"):
        troubles.observe_call(ToolCall(name, msgspec.Raw(arguments), "\udfff"))
        troubles.observe_result(2, ToolResult(f"Error: {result}\ud800", error=True))
    msgspec.json.decode(msgspec.json.encode(troubles), type=Troubles)


def test_troubles_a_state_of_large_events_stays_small() -> None:
    troubles = Troubles()
    for number in range(200):
        text = f"{chr(97 + number % 26)}" * 200_000
        for tool, key in (("Bash", "command"), ("Write", "content"), ("add_thing", "text")):
            raw = msgspec.Raw(msgspec.json.encode({key: f"python {text}", "path": text}))
            troubles.observe_call(ToolCall(tool, raw, "c" * 10_000))
            troubles.observe_result(number, ToolResult(f"Error: {text}", error=number % 2 == 0))
    assert len(msgspec.msgpack.encode(troubles)) < 100_000  # 8 errors of 4,000 characters, 5 steps of 240 each
