"""Scores sent to a server on the loopback device that checks what the APIs of the platforms document."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from score_server import PROJECT, RUN, TRACE, Server, standing

from coherence import Monitor
from coherence.cli.main import main
from coherence.export import webhook
from coherence.export.scores import PLATFORMS, PlatformError, PlatformName, ScoreSink, Standing, Target, platform_of
from coherence.store.store import Store


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(webhook, "FIRST_PAUSE_S", 0.01)
    made = Server()
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    yield made
    made.shutdown()
    made.server_close()
    assert made.wrong == []


def sent(server: Server, platform: PlatformName, *found: Standing, target: Target | None = None) -> list[Any]:
    sink = ScoreSink(platform, target=target)
    for each in found:
        sink.send(each)
    assert sink.close(30)
    assert sink.counts().failed == 0
    return [body for _, _, body in server.got]


def test_score_sink_sends_langfuse_a_numeric_and_a_categorical_score(server: Server) -> None:
    index, decision = sent(server, "langfuse", standing("langfuse"))
    shared = {
        "traceId": TRACE,
        "timestamp": "2025-01-01T00:00:00+00:00",
        "metadata": {"agent": "fixer", "light": "orange"},
    }
    numeric = {"name": "coherence.index", "value": 0.25, "dataType": "NUMERIC", "comment": "orange"}
    assert index == {"id": index["id"], **numeric, **shared}
    assert decision == {
        "id": decision["id"], "name": "coherence.decision", "value": "warn", "dataType": "CATEGORICAL",
        "comment": "It loops.", **shared,
    }  # fmt: skip
    assert index["id"] != decision["id"]
    path, headers, _ = server.got[0]
    assert path == "/api/public/scores"
    assert headers["Authorization"] == f"Basic {base64.b64encode(b'pk-lf-1:sk-lf-2').decode()}"


def test_score_sink_sends_phoenix_two_annotations(server: Server) -> None:
    [body] = sent(server, "phoenix", standing("phoenix"))
    shared = {
        "trace_id": TRACE,
        "annotator_kind": "CODE",
        "identifier": "coherence:fixer",
        "metadata": {"agent": "fixer"},
    }
    assert body["data"] == [
        {"name": "coherence.index", "result": {"score": 0.25, "label": "orange"}, **shared},
        {"name": "coherence.decision", "result": {"label": "warn", "explanation": "It loops."}, **shared},
    ]
    assert server.got[0][0] == "/v1/trace_annotations"
    assert server.got[0][1]["Authorization"] == "Bearer px"


def test_score_sink_sends_langsmith_feedback_on_the_first_run_of_the_trace(server: Server) -> None:
    index, decision = sent(server, "langsmith", standing("langsmith", index=0.123456))
    shared = {
        "run_id": RUN, "trace_id": RUN, "feedback_source": {"type": "api", "metadata": {}},
        "extra": {"agent": "fixer", "light": "orange"},
    }  # fmt: skip
    assert index == {"id": index["id"], "key": "coherence.index", "score": 0.1235, "comment": "orange", **shared}
    assert decision == {
        "id": decision["id"], "key": "coherence.decision", "value": "warn", "comment": "It loops.", **shared
    }  # fmt: skip
    assert uuid.UUID(index["id"]) != uuid.UUID(decision["id"])
    assert server.got[0][1]["x-api-key"] == "ls" and server.got[0][1]["X-Tenant-Id"] == "w"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_score_sink_sends_the_same_again_and_no_index_where_none_was_measured(
    server: Server, platform: PlatformName
) -> None:
    unknown = standing(platform, index=None, light="unknown", why="")
    bodies = sent(server, platform, unknown, unknown)
    assert len(bodies) == 2 and bodies[0] == bodies[1]
    assert "coherence.index" not in json.dumps(bodies)


@pytest.mark.parametrize(
    ("session", "target", "key"),
    [("chat-1", None, "session"), (TRACE, None, "trace"), (TRACE, "session", "session"), ("t-1", "trace", "trace")],
)
def test_score_sink_takes_a_name_for_what_it_looks_like_or_what_it_is_told(
    server: Server, session: str, target: Target | None, key: str
) -> None:
    bodies = sent(server, "langfuse", standing("langfuse", session=session), target=target)
    assert {body.get(f"{key}Id") for body in bodies} == {session}
    server.got.clear()
    if session != "t-1":  # which is no trace of Phoenix
        [body] = sent(server, "phoenix", standing("phoenix", session=session), target=target)
        assert {each.get(f"{key}_id") for each in body["data"]} == {session}
        assert server.got[0][0] == f"/v1/{key}_annotations"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_score_sink_tries_again_where_the_platform_fails(server: Server, platform: PlatformName) -> None:
    server.failures = 2
    assert sent(server, platform, standing(platform))


def test_score_sink_of_a_monitor_sends_when_its_session_ends(server: Server) -> None:
    sink = ScoreSink("langfuse")
    with Monitor(agent="fixer", session=TRACE, goal="Make the tests pass", embedder=False, sinks=[sink]) as m:
        for at in range(4):
            m.message("assistant", f"I run them, take {at}.")
            call = m.tool_call("Bash", {"command": "pytest -q"})
            m.tool_result("ImportError: no module named x", error=True, call=call)
        decision, reading = m.decide(), m.latest
        assert server.got == []
    assert sink.close(30)
    assert reading is not None
    values = {body["name"]: body["value"] for _, _, body in server.got}
    assert values == {"coherence.index": reading.coherence_index, "coherence.decision": decision.kind}


def test_platform_of_says_which_variable_is_missing() -> None:
    with pytest.raises(PlatformError, match="LANGFUSE_SECRET_KEY is not set"):
        platform_of("langfuse", {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": " "})
    with pytest.raises(PlatformError, match="LANGSMITH_API_KEY is not set"):
        platform_of("langsmith", {})
    with pytest.raises(ValueError, match="platform must be one of langfuse, phoenix, langsmith, not 'other'"):
        platform_of("other", {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="target must be one of trace, session or None, not 'span'"):
        ScoreSink("phoenix", target="span")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="project must be the id of a project, a UUID, not 'default'"):
        platform_of("langsmith", {"LANGSMITH_API_KEY": "k"}, project="default")
    with pytest.raises(ValueError, match="project is for langsmith alone, not for phoenix"):
        platform_of("phoenix", {}, project=PROJECT)
    assert platform_of("phoenix", {}).headers == {}
    posts = platform_of("phoenix", {"PHOENIX_COLLECTOR_ENDPOINT": "http://h/v1/traces"}).posts
    assert [post.url for post in posts(standing("phoenix"), None)] == ["http://h/v1/trace_annotations"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    with Store(path) as kept:
        for session in (TRACE, RUN, "chat-1"):
            with Monitor(agent="fixer", session=session, goal="Look.", embedder=False, store=kept) as m:
                m.message("assistant", "I look.")
                m.tool_result("a.py", tool="ls")
                m.decide()
        Monitor(agent="idle", session="chat-2", embedder=False, store=kept).close()
    return path


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["send-scores", *map(str, arguments)])


def test_send_scores_sends_every_session_of_a_store(server: Server, store: Path) -> None:
    result = call(store, "--to", "langfuse")
    assert (result.exit_code, result.stdout) == (0, "3 sessions to langfuse: 6 requests accepted\n")
    assert {body.get("traceId", body.get("sessionId")) for _, _, body in server.got} == {TRACE, RUN, "chat-1"}
    server.got.clear()
    result = call("fixer/chat-1", "--store", store, "--to", "phoenix")
    assert (result.exit_code, result.stdout) == (0, "1 session to phoenix: 1 request accepted\n")


def test_send_scores_passes_over_what_a_platform_cannot_know(server: Server, store: Path) -> None:
    result = call(store, "--to", "langsmith", "--project", PROJECT)
    assert result.exit_code == 1
    # a trace's id in 32 digits is a UUID, too
    assert result.stdout == "2 sessions to langsmith: 4 requests accepted\n"
    assert {body["session_id"] for _, _, body in server.got} == {PROJECT}
    assert "passed over: fixer/chat-1: LangSmith takes feedback on traces" in result.stderr


def test_send_scores_says_why_it_cannot(server: Server, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGFUSE_BASE_URL", "cloud.langfuse.com")
    result = call(store, "--to", "langfuse")
    assert (result.exit_code, "url must be http://host/path" in result.stderr) == (2, True)
    monkeypatch.delenv("LANGFUSE_PUBLIC_KEY")
    result = call(store, "--to", "langfuse")
    assert (result.exit_code, "LANGFUSE_PUBLIC_KEY is not set" in result.stderr) == (2, True)
    monkeypatch.setenv("PHOENIX_ENDPOINT", f"{server.url}/elsewhere")
    result = call(store, "--to", "phoenix")
    assert (result.exit_code, "error: 3 requests could not be sent" in result.stderr) == (1, True)
    assert len(server.wrong) == 3
    server.wrong.clear()
