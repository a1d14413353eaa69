"""An agent class under guard as it is: plain, asynchronous and streaming methods, watched by a monitor.

The model is a stand-in; everything else is real, and so is the web server that is told of a patch.
"""

import asyncio
import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from coherence import Monitor
from coherence.export.webhook import Webhook
from coherence.guard import Bound, Bounds, Guard


class Agent:  # the existing class, which knows of no guard
    """Answers questions about invoices."""

    def __init__(self, model: Callable[[str, float], str]) -> None:
        self.model = model
        self.temperature = 1.5

    def ask(self, question: str) -> str:
        return self.model(question, self.temperature)

    async def ask_async(self, question: str) -> str:
        return await asyncio.to_thread(self.model, question, self.temperature)

    def stream(self, question: str) -> Iterator[str]:
        for word in self.model(question, self.temperature).split():
            yield f"{word} "


def model(question: str, temperature: float) -> str:
    """Stand in for a model: tell the monitor what goes in and out, as a client's hooks would."""
    monitor.message("user", question)
    if temperature > 1 and "June" in question:
        raise ValueError("the model's answer breaks off")
    answer = f"About your question “{question}”: the invoice is in the mail."
    monitor.message("assistant", answer)
    return answer


class Temperature:
    """Owns what may be patched, and proposes to lower it."""

    def get_config(self, *, agent_id: str) -> dict[str, Any]:
        return {"temperature": agent.temperature}

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
        agent.temperature = config_patch["temperature"]
        return True

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
        agent.temperature = backup_config["temperature"]

    def analyze(self, **about: Any) -> dict[str, Any]:  # agent_id, traces, before_metrics
        return {"temperature": 0.5}


class Hook(BaseHTTPRequestHandler):
    """Your chat or pager."""

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        received.append(f"{told['kind']} {told['patch'] or ''}".rstrip())
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing else."""


received: list[str] = []
server = HTTPServer(("127.0.0.1", 0), Hook)
threading.Thread(target=server.serve_forever, daemon=True).start()
webhook = Webhook(f"http://127.0.0.1:{server.server_port}/hook")
agent, owner = Agent(model), Temperature()
with (
    tempfile.TemporaryDirectory() as folder,
    Monitor(agent="invoices", goal="Answer questions about invoices") as monitor,
    Guard(
        store=f"{folder}/guard.db",
        strategy=owner,
        config_adapter=owner,
        bounds=Bounds({"temperature": Bound(least=0, most=2, step=1)}),
        monitor=monitor,
        notifier=webhook.emit,
    ) as guard,
):
    for method in ("ask", "ask_async", "stream"):  # all that there is to add
        setattr(agent, method, guard.wrap(agent="invoices")(getattr(agent, method)))

    for month in ("May", "June", "June"):
        question = f"Where is the invoice of {month}?"
        with suppress(ValueError):
            agent.ask(question)
        with suppress(ValueError):
            asyncio.run(agent.ask_async(question))
        with suppress(ValueError):
            print("".join(agent.stream(question)))

    for trace in guard.traces("invoices"):
        index = "unknown" if trace.index is None else f"{trace.index:.2f} {trace.band}"
        print(f"{trace.task:<15} index {index:<10} {'patched' if trace.patched else trace.error or ''}".rstrip())
    print("temperature on trial:", agent.temperature)
    guard.rollback("invoices", "not before the holidays")
    print("temperature:", agent.temperature)
webhook.close()  # sends what waits
print("the server was told:", *received, sep="\n  ")
