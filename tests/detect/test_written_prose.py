"""Prose that a call writes for people, and its judgement."""

from __future__ import annotations

from typing import Any

import pytest

from coherence.core.readings import Claim
from coherence.detect.written_prose import facts_of, plans, prose_of
from detect.judging import Agent

SAID = "The total is 40 euros."


@pytest.mark.parametrize(
    ("tool", "arguments", "prose"),
    [
        ("send_email", {"to": "a@x.org", "subject": "Hello", "body": SAID}, SAID),
        ("complete_task", {"result": SAID}, SAID),
        ("write_file", {"path": "notes.md", "content": SAID}, SAID),
        ("write_file", {"path": "pay.py", "content": SAID}, ""),
        ("write_file", {"path": "tests/example.md", "content": SAID}, ""),
        ("write_file", {"path": "a.md", "content": "def pay():\n    return 40"}, ""),
        ("write_file", {"path": "a.md", "content": "Call `pay()` with `total` and `tax`."}, ""),
        ("search_files", {"content": SAID}, ""),
        ("reply", {"text": "ok"}, ""),
        ("reply", SAID, ""),
        ("slack_post", {"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": SAID}}]}, SAID),
        ("notiz_anlegen", {"notiz": SAID}, SAID),
        ("write_file", {"path": "settings.json", "content": '{"total": 40}'}, ""),
        ("sheets_set_cell", {"cell": "B2", "value": 40}, "40"),
        ("edit_file", {"path": "notes.md", "old_string": "no", "new_string": SAID}, SAID),
        ("TodoWrite", {"todos": [{"content": SAID}]}, ""),
        ("Task", {"description": SAID, "prompt": SAID}, ""),
        ("apply_patch", {"text": SAID}, ""),
        ("translate", {"text": SAID}, ""),
        ("bash", {"description": SAID}, ""),
        ("bash", {"command": f"git commit -qam '{SAID}'"}, SAID),
        ("bash", {"command": f'gh pr create --title "To pay" --body "{SAID}"'}, f"To pay\n{SAID}"),
        ("bash", {"command": f"git commit -m \"$(cat <<'EOF'\n{SAID}\nEOF\n)\""}, SAID),
        ("bash", {"command": f"cat > NOTES.md <<'EOF'\n{SAID}\nEOF"}, SAID),
        ("bash", {"command": f"echo '{SAID}' >> log.txt"}, SAID),
        ("bash", {"command": f"cat > pay.py <<'EOF'\n{SAID}\nEOF"}, ""),
        ("bash", {"command": "python pay.py > out.txt"}, ""),
    ],
)
def test_prose_of_is_what_people_read(tool: str, arguments: Any, prose: str) -> None:
    assert prose_of(tool, arguments) == prose


def test_prose_of_a_megabyte_is_read_from_both_ends() -> None:
    assert len(prose_of("send_email", {"body": "word " * 200_000})) <= 4_010


def test_facts_of_what_is_written_are_not_names_of_what_is_to_come() -> None:
    values = {"R-88213": "id", "slice1": "id", "pay": "function", "a/b.md": "path", "7": "number", "a b c": "quote"}
    claims = [Claim(kind, text, 0, ("x:",)) for text, kind in values.items()]
    told = [claim.text for claim in facts_of(claims, "", planned=False)]
    assert told == ["R-88213", "7", "a b c"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The shop opened on 4 May 2023.", True),
        ("Could we meet on 4 May 2023?", False),
        ("It was sold.\nI suggest 4 May 2023.", False),
        ("I suggest another one. It was sold on 4 May 2023.", True),
    ],
)
def test_facts_of_what_is_written_are_no_days_of_a_plan(text: str, told: bool) -> None:
    claim = Claim("date", "4 May 2023", text.index("4 May"), ("d:2023-05-04",))
    assert bool(facts_of([claim], text, planned=False)) is told
    assert facts_of([claim], text, planned=True) == []


def test_plans_is_told_by_the_tool_or_the_title() -> None:
    assert plans("create_calendar_event", "Lunch")
    assert plans("write_file", "# Agenda of the week")
    assert not plans("write_file", "# Survey")


def written(content: str, *results: str) -> list[tuple[str, str]]:
    agent = Agent()
    for result in results:
        agent.result(result)
    agent.call("write_file", path="summary.md", content=content)
    assert agent.account.written is not None
    return [(flaw.kind, flaw.text) for flaw in agent.account.written.flaws]


def test_written_is_judged_by_what_was_given() -> None:
    survey = "north: 572\nsouth: 258"
    assert written("830 people answered, 572 in the north (69 %).", survey) == []
    assert written("883 people answered, 79 % in the north.", survey) == [("number", "883"), ("amount", "79 %")]


def test_written_is_unknown_where_the_host_leaves_out_what_was_written() -> None:
    agent = Agent()
    agent.call("Write")
    agent.call("send_mail", body="See R-88213 for it.")
    assert agent.account.written is not None
    assert (agent.account.written.flaws, agent.account.written.unknown) == ((), 1)
