"""Cost and context from the status line: each dollar is recorded once, and tokens are not counted twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from integrations.claude_code.payloads import bash, event, recorded, write
from integrations.running import running, tell

from coherence.core.events import Usage
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code import statusline
from coherence.integrations.claude_code.costs import CostFeed
from coherence.integrations.claude_code.session import ClaudeCodeSession
from coherence.integrations.daemon.control import session_records
from coherence.integrations.daemon.folder import control
from coherence.monitor.monitor import Monitor


def told(cost: Any, context: Any = None) -> dict[str, Any]:
    return {"cost": {"total_cost_usd": cost}, "context_window": {"used_percentage": context}}


def fed(costs: CostFeed, *totals: Any) -> float | None:
    for total in totals:
        costs.feed(told(total))
    return costs.take()


def test_feed_records_what_was_added_and_begins_anew_where_the_client_does() -> None:
    with Monitor(embedder=False) as monitor:
        costs = CostFeed(monitor)
        assert costs.take() is None  # nobody has told anything
        assert fed(costs, 0.0, 0.25, 0.25) == 0.25
        assert fed(costs) == 0.0
        assert fed(costs, 0.0, 0.5) == 0.5  # a client that was started again counts from 0


def test_feed_what_an_earlier_process_has_recorded_is_not_recorded_again() -> None:
    with Monitor(embedder=False) as monitor:
        monitor.usage(tokens_in=100, cost_usd=0.25)
        monitor.flush()
        assert fed(CostFeed(monitor), 0.75) == 0.5


def test_feed_where_the_settings_name_prices_they_count() -> None:
    with Monitor(embedder=False, config={"prices": {"m": {"input": 1, "output": 2}}}) as monitor:
        costs = CostFeed(monitor)
        assert fed(costs, 0.75) is None
        costs.feed(told(0.75, 12))
        assert costs.context_percent == 12


@pytest.mark.parametrize("value", [None, True, "1", -1, float("nan"), float("inf"), 10**400, [], {}])
def test_feed_passes_over_what_is_no_figure(value: Any) -> None:
    with Monitor(embedder=False) as monitor:
        costs = CostFeed(monitor)
        costs.feed(told(value, value))
        costs.feed({"cost": value, "context_window": value})
        assert (costs.take(), costs.context_percent) == (None, None)


def test_session_cost_goes_with_the_tokens_of_the_transcript_once(tmp_path: Path) -> None:
    at: dict[str, Any] = {"transcript_path": str(tmp_path / "s1.jsonl")}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
    with Fleet(embedder=False) as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        session.feed(told(9.0, 9))  # of a session in which nothing has happened yet
        assert session.figures() == (0.0, None)
        session.handle(event("UserPromptSubmit", prompt="List the files.", **at))
        session.feed(told(0.25, 7))
        (record,) = session_records(session)
        assert (record["cost_usd"], record["context_percent"]) == (0.25, 7)
        for id, call in (("m1", 1), ("m2", 2)):
            block = {"type": "tool_use", "id": f"t{call}", "name": "Bash", "input": {}}
            write(
                tmp_path / "s1.jsonl",
                {"type": "assistant", "message": {"id": id, "model": "c", "content": [block], "usage": usage}},
            )
            session.handle(event("PreToolUse", **bash("ls", call), **at))
        session.handle(event("Stop", last_assistant_message="", **at))
        session.feed(told(0.75, 8))
        assert session_records(session)[0]["cost_usd"] == 0.75
        session.handle(event("SessionEnd", reason="other", **at))
        used = [each for each in recorded(fleet) if isinstance(each, Usage)]
        found = [(each.input_tokens, each.cached_tokens, each.cost_usd) for each in used]
        assert found == [(100, 90, 0.25), (100, 90, 0.0), (None, None, 0.5)]
        spent = session.monitor.state.spent
        assert (spent.tokens, spent.cost_usd, spent.unpriced) == (210, 0.75, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")
def test_statusline_tells_the_daemon_what_the_client_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # back again at the end
    folder = tmp_path / "state"
    with running(folder):
        tell("UserPromptSubmit", "s1", prompt="List the files.")
        for cost in (0.056088, 0.056088, float("nan")):
            payload = {"session_id": "s1", "cost": {"total_cost_usd": cost}, "context_window": {"used_percentage": 13}}
            command = [sys.executable, "-I", "-S", statusline.__file__, str(folder)]
            line = "busy"
            while "busy" in line:  # the machine, that is: the line waits for 0.2 s
                done = subprocess.run(command, input=json.dumps(payload), capture_output=True, text=True, check=True)
                line = done.stdout
            assert "context 13%" in line
        found = control(folder, "status")
    assert found is not None
    (agent,) = found["sessions"][0]["agents"]
    assert (agent["cost_usd"], agent["context_percent"]) == (0.056088, 13)
