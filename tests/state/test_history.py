"""History of an agent, folded from events: failures by kind, files, judgements, spending; and its bounds."""

from __future__ import annotations

import msgspec
import pytest

from coherence.core.config import MonitorConfig
from coherence.core.events import Event, Feedback, Message, ToolCall, ToolResult, Usage
from coherence.core.validation import to_json
from coherence.state.reducer import (
    MAX_FAILURE_EVENTS,
    MAX_FAILURES,
    MAX_FILES,
    MAX_FOUND,
    MAX_QUALITIES,
    RECENT,
    AgentState,
    is_same,
)


def call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall(tool, msgspec.Raw(to_json("arguments", arguments)), "c")


def after(*events: Event) -> AgentState:
    state = AgentState()
    for seq, event in enumerate(events, 1):
        state.fold(seq, float(seq), event)
    return state


def failed(text: str, tool: str = "Bash") -> ToolResult:
    return ToolResult(text, error=True, tool_name=tool)


def test_failures_are_counted_by_tool_and_kind_whatever_their_numbers() -> None:
    state = after(
        failed("4 tests failed"),
        failed("no such file"),
        Message("user", "again"),
        failed("3 tests failed"),
        failed("3 tests failed", "Other"),
        ToolResult("4 tests failed", tool_name="Bash"),  # which is no error
    )
    known = [(kind.tool, kind.first_line, kind.count, kind.turns, kind.seqs) for kind in state.facts.failures.values()]
    assert known == [
        ("Bash", "no such file", 1, [0], [2]),
        ("Bash", "3 tests failed", 2, [0, 1], [1, 4]),
        ("Other", "3 tests failed", 1, [1], [5]),
    ]


def test_history_failures_are_bounded_and_the_newest_stay() -> None:
    state = after(*[failed(f"cannot find {'abcdefgh'[at // 8]}{'ijklmnop'[at % 8]}") for at in range(64)])
    assert len(state.facts.failures) == MAX_FAILURES
    assert next(reversed(state.facts.failures.values())).first_line == "cannot find hp"
    again = after(*[failed("boom")] * 50)
    (kind,) = again.facts.failures.values()
    assert (kind.count, kind.seqs) == (50, list(range(51 - MAX_FAILURE_EVENTS, 51)))


def test_history_a_file_is_known_once_it_was_read_written_or_shown_by_a_search() -> None:
    state = after(
        call("Read", file_path="/a.py"),
        ToolResult("text"),
        call("Grep", pattern="def"),
        ToolResult("src/b.py:12: def b\nsrc/c.py:3:1: def c\nno file here: 12\n  src/d.py:4: indented"),
        call("Read", file_path="/missing.py"),
        ToolResult("no such file", error=True),
    )
    assert [path for path in state.facts.files if "py" in path] == ["/a.py", "src/b.py", "src/c.py"]
    assert state.facts.files["/a.py"] == 2


def test_history_files_are_bounded_and_the_newest_stay() -> None:
    events: list[Event] = []
    for number in range(MAX_FILES + 20):
        events += [call("Read", file_path=f"/{number}.py"), ToolResult("text")]
    files = list(after(*events).facts.files)
    assert (len(files), files[0], files[-1]) == (MAX_FILES, "/20.py", f"/{MAX_FILES + 19}.py")
    shown = "\n".join(f"f{number}.py:1: x" for number in range(100_000))
    found = after(call("Grep", pattern="x"), ToolResult(shown)).facts.files
    assert sum(path.startswith("f") for path in found) == MAX_FOUND


def blind(*events: Event) -> str:
    return after(*events, ToolResult("done")).facts.actions[-1].blind


def test_history_an_edit_of_a_file_that_was_never_read_is_blind() -> None:
    edit = call("Edit", file_path="/a.py", old_string="x", new_string="y")
    assert blind(edit) == "/a.py"
    assert blind(call("Read", file_path="/a.py"), ToolResult("x"), edit) == ""
    assert blind(call("Read", file_path="/b.py"), ToolResult("x"), edit) == "/a.py"
    assert after(edit, ToolResult("no such file", error=True)).facts.actions[-1].blind == ""  # nothing was changed


def test_history_writing_a_whole_file_is_blind_only_over_one_that_was_seen_to_be_there() -> None:
    write = call("Write", file_path="/src/a.py", content="x")
    assert blind(write) == ""
    listed = (call("Bash", command="ls src"), ToolResult("a.py\nb.py"))
    assert blind(*listed, write) == "/src/a.py"
    others = (call("Bash", command="ls src"), ToolResult("data.py\na.pyc\nmy-a.py\nanna.py"))
    assert blind(*others, write) == ""


@pytest.mark.parametrize("name", ["(((((", "[a-", "a" * 10_000, ".*", "\\", "ü\u202e"])
def test_history_a_hostile_file_name_is_a_name(name: str) -> None:
    seen = (call("Bash", command="ls"), ToolResult(f"x\n{name}\ny"))
    assert isinstance(blind(*seen, call("Write", file_path=f"/src/{name}", content="x")), str)


def test_history_judgements_and_spending_keep_the_newest() -> None:
    state = AgentState(MonitorConfig())
    state.fold(1, 0.0, Feedback(1.0, about="loop-1"))  # of a firing, not of the work
    for seq in range(1, 101):
        state.fold(2 * seq, 0.0, Feedback(1.0 if seq % 2 else -0.5))
        state.fold(2 * seq + 1, 0.0, Usage(seq, 1, 0.25))
    facts = state.facts
    assert (len(facts.qualities), len(facts.spending)) == (MAX_QUALITIES, RECENT)
    # a score in [-1, 1] becomes a quality in [0, 1]: -0.5 -> 0.25, 1 -> 1
    assert [(rated.seq, rated.quality) for rated in facts.qualities[-2:]] == [(198, 1.0), (200, 0.25)]
    assert (facts.spending[-1].seq, facts.spending[-1].tokens, facts.spending[-1].cost_usd) == (201, 101, 0.25)


def test_history_the_same_call_with_the_same_result_is_the_same() -> None:
    one, two, other, worse = after(
        *[event for text in "aab" for event in (call("Read", path="x"), ToolResult(text))],
        call("Read", path="x"),
        ToolResult("a", error=True),
    ).facts.actions
    assert is_same(one, two)
    assert not is_same(one, other) and not is_same(one, worse)
