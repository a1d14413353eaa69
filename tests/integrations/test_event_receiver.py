"""The receiver of events on the loopback device, with a real HTTP client."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence import Monitor
from coherence.cli.documents import read_schema
from coherence.integrations import live_monitors, told_events
from coherence.integrations.event_receiver import EventReceiver
from coherence.integrations.live_monitors import LiveMonitors
from coherence.integrations.told_events import BadEventError, read_events
from coherence.providers import HashingEmbedder
from coherence.store.store import Store

JSON = {"Content-Type": "application/json"}
GOAL = {"kind": "goal", "session": "s1", "text": "Make the tests pass"}


@contextmanager
def listening(store: Store, embedder: Any = False) -> Iterator[EventReceiver]:
    monitors = LiveMonitors(store, embedder=embedder)
    with EventReceiver(monitors, 0) as receiver:
        thread = Thread(target=receiver.serve_forever, daemon=True)
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()
    monitors.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "runs.db") as kept:
        yield kept


def ask(receiver: EventReceiver, body: bytes | None, path: str = "/v1/events", **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", receiver.server_port, timeout=30)
    given = {**(JSON if body is not None else {}), **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("GET" if body is None else "POST", path, body, given)
    answer = connection.getresponse()
    told = answer.read()
    connection.close()
    return answer.status, json.loads(told)


def post(receiver: EventReceiver, *told: dict[str, Any]) -> dict[str, Any]:
    lines = "\n".join(json.dumps({"session": "s1", "agent": "fixer", **event}) for event in told)
    status, answer = ask(receiver, lines.encode(), Content_Type="application/x-ndjson")
    assert status == 200, answer
    return answer  # type: ignore[no-any-return]


def recorded(store: Store, agent: str = "fixer") -> list[tuple[str, Any]]:
    """Return the kinds and the data of an agent's events; ids that a monitor makes are left out."""
    [row] = [each for each in store.sessions() if each.agent == agent]
    found = []
    for event in store.events(row.id):
        data = json.loads(event.data)
        if str(data.get("gen_ai.tool.call.id", "")).startswith("call-"):
            del data["gen_ai.tool.call.id"]
        found.append((event.kind, data))
    return found


def failing(at: int) -> list[dict[str, Any]]:
    return [
        {"kind": "message", "role": "assistant", "text": f"I run the tests again, take {at}."},
        {"kind": "usage", "tokens_in": 900, "tokens_out": 20, "model": "m-1"},
        {"kind": "tool_call", "tool": "Bash", "arguments": {"command": "pytest -q"}, "call": f"c{at}"},
        {"kind": "tool_result", "text": "ImportError: no module named x", "error": True, "call": f"c{at}"},
    ]


STEPS: list[list[dict[str, Any]]] = [
    [{"kind": "goal", "text": "Make the tests pass"}, {"kind": "message", "role": "user", "text": "Make them pass"}],
    *map(failing, range(5)),
    [{"kind": "check", "tool": "Bash", "arguments": {"command": "rm -rf /"}}],
    [{"kind": "memory", "text": "x is missing", "id": "m"}, {"kind": "correction", "text": "with pip, please"}],
    [{"kind": "feedback", "score": -0.5, "text": "slow"}, {"kind": "compaction", "summary": "the tests fail"}],
    [{"kind": "note", "text": "another model"}, {"kind": "fault", "where": "host", "message": "timeout"}],
    [{"kind": "outcome", "success": False, "score": 0.1, "text": "gave up"}],
]


def by_hand(m: Monitor, event: dict[str, Any]) -> Any:
    fields = {name: value for name, value in event.items() if name != "kind"}
    if event["kind"] == "fault":
        return m.fault(fields["where"], fields["message"])
    positional = {"message": ("role", "text"), "outcome": ("success",), "feedback": ("score",)}
    first = [fields.pop(name) for name in positional.get(event["kind"], ())]
    return getattr(m, event["kind"])(*first, **fields)


def test_event_receiver_records_and_decides_as_a_monitor_fed_by_hand(tmp_path: Path, store: Store) -> None:
    answers = []
    with listening(store, HashingEmbedder()) as receiver:
        for step in STEPS:
            [now] = post(receiver, *step)["agents"]
            answers.append(now)
    with Store(tmp_path / "hand.db") as kept:
        m = Monitor(agent="fixer", session="s1", store=kept, embedder=HashingEmbedder())
        for step, now in zip(STEPS, answers, strict=True):
            checks = [
                answer for event in step if (answer := by_hand(m, event)) is not None and event["kind"] == "check"
            ]
            decision, reading = m.decide(), m.latest
            assert (now["decision"], now["message"]) == (decision.kind, decision.message)
            assert now["hint"] == (decision.guidance.text if decision.guidance else "")
            assert (now["light"], now["index"]) == (
                ("unknown", None) if reading is None else (reading.band, reading.coherence_index)
            )
            assert [(each["decision"], each["message"]) for each in now["checks"]] == [
                (
                    each.kind,
                    each.message.replace("m.unblock() lets it through", "if the user agrees, run it all the same"),
                )
                for each in checks
            ]
        m.close()
        expected = recorded(kept)
    found = recorded(store)
    assert [kind for kind, _ in found] == [kind for kind, _ in expected]
    told = [data for kind, data in found if kind != "tick"]
    assert told == [data for kind, data in expected if kind != "tick"]
    kinds = {now["decision"] for now in answers}
    assert "continue" in kinds and kinds & {"guide", "warn", "block"}, "the run shows both"
    [refused] = answers[6]["checks"]
    assert "m.unblock" not in refused["message"] and "run it all the same" in refused["message"]
    assert refused["decision"] == "block" and refused["refusal"].startswith("refusal-")


def test_event_receiver_answers_what_the_schema_says(store: Store) -> None:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(read_schema("collect"))
    with listening(store, HashingEmbedder()) as receiver:
        for step in STEPS:
            answer = post(receiver, *step)
            validator.validate(answer)
            assert answer["recorded"] == len(step)


def test_event_receiver_takes_an_object_a_list_and_lines_for_several_agents(store: Store) -> None:
    other = {**GOAL, "agent": "other"}
    with listening(store) as receiver:
        one = ask(receiver, json.dumps(GOAL, indent=1).encode())[1]
        both = ask(receiver, json.dumps([GOAL, other]).encode())[1]
        lines = ask(receiver, f"{json.dumps(GOAL)}\n\n{json.dumps(other)}\n".encode(), Content_Type="application/jsonl")
        health = ask(receiver, None, "/health")
    assert [(each["agent"], each["session"]) for each in one["agents"]] == [("main", "s1")]
    assert [each["agent"] for each in both["agents"]] == ["main", "other"]
    assert (lines[1]["recorded"], len(lines[1]["agents"])) == (2, 2)
    assert health == (200, {"status": "ok", "agents": 2})
    assert sorted((row.agent, row.session) for row in store.sessions()) == [("main", "s1"), ("other", "s1")]


def test_event_receiver_records_that_a_hint_was_delivered(store: Store) -> None:
    with listening(store) as receiver:
        for step in STEPS[:6]:
            [now] = post(receiver, *step)["agents"]
            if now["guidance"] is not None:
                break
        assert now["guidance"] is not None and now["hint"]
        post(receiver, {"kind": "delivered", "guidance": now["guidance"]})
    assert [data["coherence.firing"] for _, data in recorded(store) if "coherence.firing" in data] == [now["guidance"]]


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (b"", {}, 400, "no event, expected a JSON object"),
        (b"{", {}, 400, "not JSON at line 1, column 2"),
        (b"\xff", {}, 400, "not UTF-8 at byte 0"),
        (b"[" * 100_000, {}, 400, "nested too deep"),
        (b'{"kind": "goal", "session": "s", "text": "a"}\n{', {}, 400, "not JSON at line 2, column 2"),
        (b'{"kind": "goal", "session": "s", "text": "a"}\n7', {}, 400, "line 2: Expected `object`, got `int`"),
        (b'{"kind": "dance", "session": "s"}', {}, 400, "the event: Invalid value 'dance' - at `$.kind`"),
        (b'{"kind": "goal", "text": "a"}', {}, 400, "missing required field `session`"),
        (b'{"kind": "goal", "session": " ", "text": "a"}', {}, 400, "at `$.session`"),
        (b'{"kind": "goal", "session": "s", "text": "a", "txt": 1}', {}, 400, "unknown field `txt`"),
        (b'{"kind": "message", "session": "s", "role": "boss", "text": ""}', {}, 400, "'boss' - at `$.role`"),
        (b'{"kind": "usage", "session": "s", "tokens_in": -1}', {}, 400, "at `$.tokens_in`"),
        (b'{"kind": "usage", "session": "s", "cost_usd": NaN}', {}, 400, "at `$.cost_usd`"),
        (b'[{"kind": "tool_call", "session": "s", "tool": ""}]', {}, 400, "event 1: Expected"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "expected Content-Type application/json"),
        (b"{}", {"Content_Encoding": "gzip"}, 400, "damaged gzip"),
        (b"{}", {"Origin": "https://example.org"}, 403, "requests of web pages are not taken"),
        (b"{}", {"Host": "evil.example:80"}, 403, "expected a Host header with an address"),
    ],
)
def test_event_receiver_says_what_is_wrong_where_and_records_nothing(
    store: Store, body: bytes, headers: dict[str, str], status: int, why: str
) -> None:
    with listening(store) as receiver:
        found, answer = ask(receiver, body, **headers)
        assert (found, why in answer["message"]) == (status, True), answer
        assert ask(receiver, b"{}", "/")[0] == ask(receiver, None, "/v1/events")[0] == 404
        assert {ask(receiver, None, "/health", Host=name)[0] for name in ("localhost:1", "[::1]", "10.0.0.1")} == {200}
        assert ask(receiver, None, "/health", Host="page.example")[0] == 403
    assert store.sessions() == []


@given(st.binary() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_read_events_of_anything_raises_nothing_but_its_error(told: bytes | str) -> None:
    try:
        read_events(told.decode("utf-8", "replace") if isinstance(told, bytes) else told)
    except BadEventError:
        return


def test_live_monitors_close_the_agent_that_was_silent_the_longest_and_it_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_monitors, "MAX_MONITORS", 2)
    monitors = LiveMonitors(store, embedder=False)
    with monitors.using("a", "s") as first:
        for agent in ("b", "c"):
            with monitors.using(agent, "s") as monitor:
                monitor.goal("go")
        first.goal("go")  # in use, so it was not closed
        assert len(monitors) == 2
    with monitors.using("b", "s") as again:
        assert again.state.facts.goal == "go"
    monitors.close()
    assert sorted(row.agent for row in store.sessions()) == ["a", "b", "c"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_event_receiver_the_program_of_the_page_runs_in_node(store: Store, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "http.md").read_text("utf-8")
    [program] = re.findall(r"^```ts\n(.*?)^```", page, re.M | re.S)
    with listening(store) as receiver:
        (tmp_path / "page.mjs").write_text(program.replace("4319", str(receiver.server_port)))
        said = subprocess.run(["node", tmp_path / "page.mjs"], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("refused: ")
    kinds = [kind for kind, _ in recorded(store) if kind != "tick"]
    assert kinds == ["goal", "message"]


def test_told_events_the_reference_names_every_kind_and_field() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "events.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .* \|$", page, re.M))
    told = {str(each.__struct_config__.tag): each for each in get_args(told_events.AnyEvent)}
    assert rows.keys() == told.keys()
    for kind, each in told.items():
        fields = {each.name: each.required for each in msgspec.structs.fields(each)}
        del fields["session"], fields["agent"]
        assert set(re.findall(r"`(\w+)`", rows[kind])) == fields.keys(), kind
        needed = {name for name, required in fields.items() if required}
        assert set(re.findall(r"\*\*`(\w+)`\*\*", rows[kind])) == needed, kind
