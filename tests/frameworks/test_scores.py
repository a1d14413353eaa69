"""Scores are sent as the real clients of the platforms send them, to the same server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import score_server
from score_server import PROJECT, RUN, TRACE, Server, standing

from coherence.export.scores import PlatformName, ScoreSink, platform_of

pytestmark = pytest.mark.frameworks

pytest.importorskip("langfuse")
langsmith = pytest.importorskip("langsmith")
phoenix = pytest.importorskip("phoenix.client")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    yield made
    made.shutdown()
    made.server_close()


def ours(server: Server, platform: PlatformName) -> list[tuple[str, dict[str, str], Any]]:
    sink = ScoreSink(platform_of(platform, project=PROJECT if platform == "langsmith" else None))
    sink.send(standing(platform))
    assert sink.close(30)
    found, server.got = server.got, []
    return found


def test_score_sink_sends_what_the_client_of_langsmith_sends(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = ours(server, "langsmith")
    client = langsmith.Client(info={}, auto_batch_tracing=False)
    monkeypatch.setitem(score_server.FEEDBACK, "additionalProperties", True)  # the client adds times
    for _, _, body in sent:
        fields = {name: body[name] for name in ("key", "score", "value", "comment", "extra") if name in body}
        client.create_feedback(RUN, trace_id=RUN, session_id=PROJECT, feedback_id=body["id"], **fields)
    assert server.wrong == []
    for (path, headers, body), (other_path, other_headers, other) in zip(sent, server.got, strict=True):
        assert path == other_path
        assert headers["x-api-key"] == other_headers["x-api-key"]
        assert body == {name: other[name] for name in body}
        assert other.keys() - body.keys() <= {"created_at", "modified_at", "extend_trace_retention"}


def test_score_sink_sends_what_the_client_of_phoenix_sends(server: Server) -> None:
    [(path, headers, body)] = ours(server, "phoenix")
    phoenix.Client().traces.log_trace_annotations(trace_annotations=body["data"])
    [(other_path, other_headers, other)] = server.got
    assert (path, body) == (other_path, other)
    assert headers["Authorization"] == {name.title(): value for name, value in other_headers.items()}["Authorization"]


def test_score_sink_sends_scores_that_the_client_of_langfuse_knows(server: Server) -> None:
    from langfuse.api import CreateScoreRequest
    from langfuse.api.core.pydantic_utilities import parse_obj_as

    for _, _, body in ours(server, "langfuse"):
        score = parse_obj_as(CreateScoreRequest, body)
        assert (score.model_extra or {}) == {}, "no field is unknown"
        assert (score.trace_id, score.name, score.value) == (TRACE, body["name"], body["value"])
        assert (score.id, score.data_type.value, score.comment) == (body["id"], body["dataType"], body["comment"])
        assert score.timestamp == datetime(2025, 1, 1, tzinfo=UTC)
