"""One agent of a session, whose transcript may be written later than its hooks are asked."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from coherence.core.events import Message, ToolCall
from coherence.integrations.claude_code.agent import Agent
from coherence.monitor.monitor import Monitor

LINE = {
    "type": "assistant",
    "message": {
        "id": "m1",
        "model": "m",
        "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}],
    },
}


def test_agent_with_lag_s_waits_for_the_message_of_a_call(tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(json.dumps({"type": "user", "message": {"content": "Go."}}) + "\n")

    def write() -> None:
        with transcript.open("a") as file:
            file.write(json.dumps(LINE) + "\n")

    for lag_s, known in ((0.0, False), (30.0, True)):
        with Monitor(embedder=False, config={"tick": "manual"}) as monitor:
            agent = Agent(monitor, transcript, lag_s=lag_s)
            writer = threading.Timer(0.1, write)
            if lag_s:
                writer.start()
            agent.prepare("c1")
            said = [record.event for record in monitor.events() if isinstance(record.event, Message)]
            assert any(each.content == "I look." for each in said) == known
            if lag_s:
                writer.join()


def test_agent_with_lag_s_waits_in_vain_but_once(tmp_path: Path) -> None:
    with Monitor(embedder=False, config={"tick": "manual"}) as monitor:
        agent = Agent(monitor, tmp_path / "missing.jsonl", lag_s=0.2)
        waited = []
        for call in ("c1", "c2"):
            began = time.monotonic()
            agent.prepare(call)
            waited.append(time.monotonic() - began)
            agent.call(call, "Bash", {})
        agent.close()
        calls = [record.event.call_id for record in monitor.events() if isinstance(record.event, ToolCall)]
    assert waited[0] >= 0.2 > waited[1]
    assert sorted(calls) == ["c1", "c2"]
