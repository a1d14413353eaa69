"""A recorded session of Claude Code, played back: payloads of hooks, and transcripts that grow meanwhile."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from coherence.core.events import NOTE
from coherence.fleet.fleet import Fleet
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.server import HookDaemon
from coherence.integrations.host_session import ABSENT
from coherence.providers.hashing import HashingEmbedder
from coherence.store.rows import SessionRow
from coherence.store.store import Store

SESSION = Path(__file__).parents[2] / "data" / "claude_code" / "session"
HOOKS: list[dict[str, Any]] = [json.loads(line) for line in (SESSION / "hooks.jsonl").read_text().splitlines()]
"""Each with the payload, and how many lines the transcripts had then."""

ID: str = HOOKS[0]["payload"]["session_id"]


class Player:
    """The client of the session: it writes transcripts and runs hooks, with a daemon or without.

    Parameters
    ----------
    folder : Path
        State folder, empty; it becomes the current one.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        os.chdir(folder)
        self.folder, self.transcript = folder, folder.parent / "projects" / f"{ID}.jsonl"
        self.daemon: HookDaemon | None = None

    def start(self) -> None:
        """Start a daemon."""
        make = lambda kept, _: Fleet(store=kept, embedder=HashingEmbedder(), resume=True)  # noqa: E731
        self.daemon = HookDaemon(self.folder, self.folder / "store.db", make_fleet=make)

    def stop(self) -> None:
        """Stop the daemon."""
        if self.daemon is not None:
            self.daemon.close()
        self.daemon = None

    def save(self) -> None:
        """Remember what is on the disk by now."""
        assert self.daemon is not None
        self.daemon._write()
        with closing(sqlite3.connect("store.db")) as store, closing(sqlite3.connect("saved.db")) as saved:
            store.backup(saved)

    def kill(self) -> None:
        """Have the daemon killed, so that nothing is on the disk of what came after :meth:`save`."""
        self.stop()
        for path in self.folder.glob("store.db*"):
            path.unlink()
        (self.folder / "saved.db").rename("store.db")

    def play(self, at: int) -> bytes:
        """Let the client do what it did up to one of the hooks, and run the hook."""
        self.write(HOOKS[at]["lines"])
        payload = {**HOOKS[at]["payload"], "transcript_path": str(self.transcript)}
        raw = json.dumps(payload).encode()
        if self.daemon is None:
            hook.keep(raw, observe=False)
            return b""
        return self.daemon.handle(hook.request(raw, observe=False))

    def write(self, lines: dict[str, int]) -> None:
        """Bring the transcripts to so many lines."""
        for name, count in lines.items():
            path = self.transcript.with_suffix("") / "subagents" / name if name != "main.jsonl" else self.transcript
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join((SESSION / name).read_text().splitlines(keepends=True)[:count]))

    def told(self) -> dict[str, list[Any]]:
        """Return what the store holds, by agent."""
        with Store(self.folder / "store.db") as store:
            return {row.agent: list(told(store, row)) for row in store.sessions() if row.session == ID}


def told(store: Store, session: SessionRow) -> Iterator[Any]:
    """Yield what the record of a session says: one value an event, measurements with their decisions.

    Left out is what cannot be the same on principle:

    - what a hook asked before a call: nobody asks when a transcript is scored;
    - guidance, and whether it has reached the agent: a scored run has nobody to guide;
    - times, durations, and numbers of events, which count those questions too;
    - the note that no daemon answered for a time, and what hooks tell beside the agents' life;
    - names of models and ids of answers, which a scored run is not told;
    - pressure of subagents that reaches the main agent: a transcript is that of one agent.
    """
    for event in store.events(session.id):
        data = json.loads(event.data)
        if (event.kind == "fault" and data["where"] == ABSENT) or data.get("about") == NOTE:
            continue
        if event.kind != "tick" and not data.get("coherence.firing"):
            yield event.kind, *(data.get(name) for name in _MEANING[event.kind])
        elif "gen_ai.tool.name" not in data and event.reading is not None and event.decision is not None:
            measured, decision = json.loads(event.reading.data), json.loads(event.decision.data)
            reading = {name: measured["reading"][name] for name in _READING if name in measured["reading"]}
            pressure = {name: measured["appraisal"][name] for name in ("pressure", "mode", "signals", "floor")}
            yield reading, pressure, decision["kind"], _findings(decision)


def _findings(decision: dict[str, Any]) -> list[list[Any]]:
    found = [each for each in decision.get("findings", ()) if each["rule"] != "received_pressure"]
    return [[_EVENT.sub("", str(each.get(name))) for name in _FINDING] for each in found]


_EVENT = re.compile(r" \(event \d+\)")


_READING = ("metrics", "coherence_index", "band", "cause", "risk", "losses", "coverage", "scale", "unknown", "errors")
"""Fields of a reading that are compared; its evidence names events by their numbers."""

_FINDING = ("rule", "severity", "active", "score", "why")
_MEANING = {
    "message": ("role", "content"),
    "tool_call": ("gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.id"),
    "tool_result": ("gen_ai.tool.call.result", "error", "gen_ai.tool.call.id"),
    "usage": ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    "fault": ("where", "message"),
    "feedback": ("text",),
}
"""Kind of an event -> fields that say what it means."""
