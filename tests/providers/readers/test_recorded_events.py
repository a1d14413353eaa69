"""An exported session is read again as the runs that it was, and nothing else is taken for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coherence.core.errors import TranscriptError
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step


def head(*agents: dict[str, Any]) -> dict[str, Any]:
    return {"schema": "coherence.export/1", "version": "1", "session": "s", "agents": list(agents)}


def agent(name: str, events: int, **changed: Any) -> dict[str, Any]:
    told = {"agent": name, "session": "s", "parent": None, "source": "hook", "started": 1.0, "events": events}
    return {**told, "without_text": False, "label": None, **changed}


def said(name: str, content: str, ts: float = 1.0) -> dict[str, Any]:
    event = {"kind": "message", "role": "user", "content": content}
    return {"agent": name, "session": "s", "ts": ts, "event": event}


def write(folder: Path, *lines: object) -> Path:
    path = folder / "s.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_read_export_each_agent_is_a_run(tmp_path: Path) -> None:
    agents = agent("a", 2, label="bad"), agent("a/b", 1), agent("c", 0)
    lines = said("a", "one"), said("a/b", "two"), said("a", "three", 2.0)
    first, second = read_transcripts(write(tmp_path, head(*agents), *lines))
    assert (first.id, first.outcome, first.went_wrong, second.id) == ("a/s", "bad", True, "a/b/s")
    assert first.steps == (Step(role="user", content="one", ts=1.0), Step(role="user", content="three", ts=2.0))


def test_read_export_a_session_that_was_played_again_has_no_times(tmp_path: Path) -> None:
    (run,) = read_transcripts(write(tmp_path, head(agent("a", 1, source="replay")), said("a", "one")))
    assert run.steps[0].ts is None


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((head(agent("a", 2)), said("a", "one")), "a/s has 1 event, expected 2: it was cut"),
        ((head(agent("a", 1)), said("b", "one")), "the first line names no b/s"),
        ((head(agent("a", 1)), {**said("a", ""), "event": {"kind": "dance"}}), "not an event"),
        ((head(agent("a", 1)), {"agent": "a"}), "expected a session as coherence export writes it"),
        ((head(agent("a", 1, without_text=True)), said("a", "#1:1")), "recorded without texts"),
        ((head(),), "a session without a step"),
        (({**head(), "schema": "coherence.export/9"},), "coherence.export/9 is not known"),
    ],
)
def test_read_export_what_is_none_is_refused(tmp_path: Path, lines: tuple[object, ...], says: str) -> None:
    with pytest.raises(TranscriptError) as found:
        read_transcripts(write(tmp_path, *lines))
    assert says in str(found.value)
