from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.readings import Counters
from coherence.providers import Step, Transcript, TranscriptCall, TranscriptState


def user(text: str) -> Step:
    return Step(role="user", content=text)


def agent(text: str = "", *calls: TranscriptCall, usage: Counters | None = None) -> Step:
    return Step(role="assistant", content=text, tool_calls=calls, usage=usage)


def tool(text: str, *, is_error: bool = False, usage: Counters | None = None) -> Step:
    return Step(role="tool", content=text, is_error=is_error, usage=usage)


def at_end(state: TranscriptState) -> TranscriptState:
    while state.advance():
        pass
    return state


def test_transcript_state_the_source_s_goal_is_the_task_and_the_first_user_message_a_further_one() -> None:
    state = at_end(TranscriptState(Transcript(id="r", steps=(user("hello"),), goal=" book a flight ")))
    assert state.get_goals() == ["book a flight", "hello"]
    assert not state.advance() and state.position == 0
    again = at_end(TranscriptState(Transcript(id="r", steps=(user(" book a flight\n"),), goal="book a flight")))
    assert again.get_goals() == ["book a flight"]


def test_transcript_state_only_the_latest_requests_count_beside_the_task() -> None:
    steps = [user(" \n"), user("task"), user(""), *(user(f"request {n}") for n in range(6))]
    assert at_end(TranscriptState(steps)).get_goals() == ["task", *(f"request {n}" for n in range(2, 6))]
    assert at_end(TranscriptState(steps, max_requests=1)).get_goals() == ["task", "request 5"]
    assert at_end(TranscriptState(steps, max_requests=0)).get_goals() == ["task"]


def test_context_steps_the_window_keeps_the_last_messages_of_agent_and_tools() -> None:
    state = TranscriptState([user("task"), agent("a"), tool("b"), user("u"), agent("c"), agent("d")], window=2)
    seen = []
    while state.advance():
        seen.append((state.get_recent_context(), state.context_steps))
    assert seen == [
        ([], []),
        (["a"], [1]),
        (["a", "b"], [1, 2]),
        (["a", "b"], [1, 2]),  # the user's words push nothing out
        (["b", "c"], [2, 4]),
        (["c", "d"], [4, 5]),
    ]


def test_transcript_call_a_call_without_words_is_context() -> None:
    state = at_end(TranscriptState([agent("", TranscriptCall("ls", "-la"), TranscriptCall("now"))]))
    assert state.get_recent_context() == ["ls(-la)\nnow(null)"]


def test_get_counters_are_of_the_results_and_the_usage_that_steps_tell() -> None:
    steps = [
        agent("a", TranscriptCall("ls"), usage=Counters(tokens_in=100, tokens_out=10)),
        tool("b", is_error=True),
        Step(role="assistant", content="hm", is_error=True, usage=Counters(tokens_in=50, cost_usd=0.25)),
        tool("d", usage=Counters(cost_usd=0.5, calls=9, errors=9)),
    ]
    # two tool results, one of them failed; 100 + 50 tokens in, 10 out, 0.25 + 0.5 dollars
    expected = Counters(calls=2, errors=1, tokens_in=150, tokens_out=10, cost_usd=0.75)
    assert at_end(TranscriptState(steps)).get_counters() == expected


def test_a_memory_is_there_from_its_step_on() -> None:
    memories = ((2, "learnt later"), (0, "known from the beginning"))
    state = TranscriptState(Transcript(id="r", steps=(user("task"), agent("a"), agent("b")), memories=memories))
    seen = []
    while state.advance():
        assert state.get_all_memories() == state.get_goal_relevant_memories()
        seen.append(state.get_goal_relevant_memories())
    known = ["known from the beginning"]
    assert seen == [known, known, ["learnt later", *known]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"window": 0}, ValueError, "window must be 1 or more, not 0"),
        ({"window": 2.0}, TypeError, r"window must be an int, not 2\.0"),
        ({"window": True}, TypeError, "window must be an int, not True"),
        ({"max_requests": -1}, ValueError, "max_requests must be 0 or more, not -1"),
        ({"max_requests": None}, TypeError, "max_requests must be an int, not None"),
    ],
)
def test_transcript_state_bad_arguments_are_refused_by_name(
    arguments: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TranscriptState([], **arguments)


texts = st.text(max_size=8)
counts = st.none() | st.integers(0, 1000)
usages = st.none() | st.builds(
    Counters, tokens_in=counts, tokens_out=counts, cost_usd=st.none() | st.integers(0, 64).map(lambda n: n / 8)
)
steps = st.builds(
    Step,
    role=st.sampled_from(["user", "assistant", "tool"]),
    content=texts,
    tool_calls=st.lists(st.builds(TranscriptCall, name=texts, arguments=st.none() | texts), max_size=2).map(tuple),
    is_error=st.booleans(),
    usage=usages,
)


def shown(state: TranscriptState) -> list[object]:
    return [
        state.position,
        state.get_goals(),
        state.get_recent_context(),
        state.context_steps,
        state.get_goal_relevant_memories(),
        state.get_all_memories(),
        state.get_counters(),
    ]


@given(
    run=st.lists(steps, max_size=12),
    goal=texts,
    memories=st.lists(st.tuples(st.integers(0, 12), texts), max_size=3).map(tuple),
    window=st.integers(1, 5),
    max_requests=st.integers(0, 3),
)
def test_transcript_state_after_n_steps_the_state_is_that_of_a_run_of_n_steps(
    run: list[Step], goal: str, memories: tuple[tuple[int, str], ...], window: int, max_requests: int
) -> None:
    def state_of(steps: list[Step]) -> TranscriptState:
        transcript = Transcript(id="r", steps=tuple(steps), goal=goal, memories=memories)
        return TranscriptState(transcript, window=window, max_requests=max_requests)

    moving = state_of(run)
    for n in range(1, len(run) + 1):
        moving.advance()
        assert shown(moving) == shown(at_end(state_of(run[:n])))


@given(run=st.lists(steps, max_size=12), window=st.integers(1, 5))
def test_every_message_of_the_context_is_the_text_of_its_step(run: list[Step], window: int) -> None:
    state = TranscriptState(run, window=window)
    while state.advance():
        assert [run[at].text() for at in state.context_steps] == state.get_recent_context()
        said = [at for at in range(state.position + 1) if run[at].role != "user" and run[at].text().strip()]
        assert state.context_steps == said[-window:]
