"""``coherence mcp`` with the real mcp package: its client, and a server behind the proxy."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor
from coherence.core.events import ToolCall, ToolResult, decode_event
from coherence.integrations.mcp.own_state import OwnState
from coherence.integrations.mcp.server import make_server
from coherence.providers import HashingEmbedder
from coherence.store.store import Store

pytest.importorskip("mcp.server.mcpserver")  # of version 2
mcp = pytest.importorskip("mcp")

pytestmark = pytest.mark.frameworks

TOOLS = {
    "coherence_status",
    "coherence_explain",
    "lessons_for_error",
    "record_lesson",
    "declare_goal",
    "declare_constraint",
}
COHERENCE = (sys.executable, "-m", "coherence", "mcp")
SHOP = str(Path(__file__).with_name("mcp_shop.py"))


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Store of an agent that goes on, after a loop and a refused call."""
    path = tmp_path / "runs.db"
    with Monitor(agent="a", goal="make the tests pass", store=path, embedder=HashingEmbedder()) as m:
        for _ in range(4):
            m.tool_result("ImportError: no module x", error=True, call=m.tool_call("Bash", {"command": "pytest"}))
            m.decide()
        m.check("Bash", {"command": "rm -rf /"})
        m.flush()
        yield path


def run(server: Any, work: Callable[[Any], Awaitable[Any]], **options: Any) -> Any:
    async def with_client() -> Any:
        async with mcp.Client(server, **options) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(with_client(), 60))


def started(*command: str, **env: str) -> Any:
    return mcp.StdioServerParameters(command=command[0], args=list(command[1:]), env={**os.environ, **env})


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


async def ask_everything(client: Any) -> None:
    """Use each tool and resource once."""
    listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS and all(tool.description for tool in listed)
    assert all("context" not in tool.input_schema.get("properties", {}) for tool in listed)
    status = await client.call_tool("coherence_status", {})
    assert not status.is_error and text_of(status).startswith("light ") and "session a/1" in text_of(status)
    assert "was refused" in text_of(await client.call_tool("coherence_explain", {}))
    told = {"error": "ImportError: no module x", "fix": "pip install x", "tool": "Bash"}
    assert text_of(await client.call_tool("record_lesson", told)) == "lesson 1 is kept"
    found = await client.call_tool("lessons_for_error", {"error": told["error"]})
    assert "pip install x" in text_of(found)
    assert "make the tests pass" in text_of(await client.call_tool("declare_goal", {"text": "fix the import"}))
    assert not (await client.call_tool("declare_constraint", {"text": "Do not push to main."})).is_error
    refused = await client.call_tool("declare_constraint", {"text": "You may push."})
    assert refused.is_error and "forbids nothing" in text_of(refused)
    with pytest.raises(mcp.MCPError, match="nothing is recorded of b in"):
        await client.read_resource("coherence://readings/b")
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "coherence://readings/{agent}"
    (content,) = (await client.read_resource("coherence://readings/a")).contents
    readings = json.loads(content.text)
    assert len(readings) == 4 and readings[0]["decision"] == "warn"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_make_server_in_memory(path: Path, mode: str) -> None:
    own = OwnState(path, embedder=HashingEmbedder())
    run(make_server(own), ask_everything, mode=mode)
    own.close()


def test_make_server_finds_the_session_by_the_call_that_claude_code_names(path: Path) -> None:
    with Monitor(agent="b", goal="count the files", store=path, embedder=HashingEmbedder()) as m:
        m.tool_call("mcp__coherence__coherence_status", {}, call="toolu_1")
        m.flush()
        with Monitor(agent="c", goal="wait", store=path, embedder=HashingEmbedder()) as other:
            other.flush()

        async def ask(client: Any) -> Any:
            return await client.call_tool("coherence_status", {}, meta={"claudecode/toolUseId": "toolu_1"})

        own = OwnState(path, embedder=False)
        assert "session b/1" in text_of(run(make_server(own), ask))
        own.close()


def test_serve_on_standard_input_and_output(path: Path) -> None:
    run(started(*COHERENCE, "--store", str(path)), ask_everything)


def test_serve_by_streamable_http_on_the_loopback(path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*COHERENCE, "--store", str(path), "--http", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            until = time.monotonic() + 30
            while True:
                with socket.socket() as line:
                    if line.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert time.monotonic() < until and process.poll() is None
                time.sleep(0.1)
            run(f"http://127.0.0.1:{port}/mcp", ask_everything)
            page = http.client.HTTPConnection("127.0.0.1", port, timeout=30)  # of a browser whose page names this port
            headers = {"Host": f"evil.example:{port}", "Content-Type": "application/json"}
            page.request("POST", "/mcp", body="{}", headers=headers)
            assert page.getresponse().status == 421
            page.close()
        finally:
            process.terminate()


async def shop(client: Any) -> list[Any]:
    """Return everything that a client can learn from the shop, as data."""
    found: list[Any] = [(await client.list_tools()).model_dump(), (await client.list_prompts()).model_dump()]
    found += [(await client.read_resource("shop://stock")).model_dump()]
    found += [(await client.get_prompt("greet", {"name": "Ada"})).model_dump()]
    progress: list[float] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    found += [(await client.call_tool("search", {"word": "tea"}, progress_callback=note)).model_dump(), progress]
    while not progress:  # a callback may come after the result
        await asyncio.sleep(0.01)
    found += [(await client.call_tool("search", {"word": ""})).model_dump()]
    found += [(await client.call_tool("book", {"thing": "tea"})).model_dump()]
    try:
        found += [(await client.call_tool("nothing", {})).model_dump()]
    except mcp.MCPError as error:
        found += [str(error)]
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_proxy_gives_a_client_what_the_server_alone_gives(tmp_path: Path, mode: str) -> None:
    async def agree(context: Any, params: Any) -> Any:
        from mcp.types import ElicitResult

        return ElicitResult(action="accept", content={"sure": True})

    store = tmp_path / "runs.db"
    options = {"mode": mode, "elicitation_callback": agree}
    alone = run(started(sys.executable, SHOP), shop, **options)
    proxied = run(started(*COHERENCE, "--store", str(store), "--proxy", sys.executable, SHOP), shop, **options)
    assert proxied == alone
    with Store(store) as kept:
        (row,) = kept.sessions()
        events = [decode_event(event.data) for event in kept.events(row.id)]
    calls = [(e.tool_name, json.loads(bytes(e.arguments))) for e in events if isinstance(e, ToolCall)]
    assert calls == [
        ("search", {"word": "tea"}),
        ("search", {"word": ""}),
        ("book", {"thing": "tea"}),
        ("nothing", {}),
    ]
    results = [(e.result, e.error) for e in events if isinstance(e, ToolResult)]
    assert results[0] == ("green tea", False) and results[2] == ("tea is booked: True", False)
    assert [error for _, error in results] == [False, True, False, True]


def test_proxy_refuses_a_destructive_call_and_the_server_goes_on(tmp_path: Path) -> None:
    async def wipe(client: Any) -> tuple[Any, Any]:
        return await client.call_tool("shell", {"command": "rm -rf /"}), await client.call_tool(
            "search", {"word": "tea"}
        )

    command = (*COHERENCE, "--store", str(tmp_path / "a.db"), "--goal", "Find tea.", "--proxy", sys.executable, SHOP)
    refused, found = run(started(*command, SHOP_LOG=str(tmp_path / "log")), wipe)
    assert refused.is_error and text_of(refused).startswith("coherence refused this call: ")
    assert text_of(found) == "green tea"
    assert (tmp_path / "log").read_text().split() == ["search"]  # the server has not seen the other
