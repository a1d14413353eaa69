"""Receiver of events by plain HTTP: programs in any language tell what their agents do, and are told how they stand."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from coherence.core.decisions import Decision
from coherence.core.readings import Band
from coherence.integrations.bounded_server import BoundedServer
from coherence.integrations.http_requests import JSON, LOOPBACK, RefusedError, RequestHandler
from coherence.integrations.live_monitors import LiveMonitors
from coherence.integrations.told_events import BadEventError, Check, ToldEvent, read_events, tell
from coherence.monitor.monitor import Monitor

LOG = logging.getLogger("coherence")

EVENTS, HEALTH = "/v1/events", "/health"

JSON_LINES = ("application/x-ndjson", "application/jsonl")

_BY_METHOD, _BY_YOU = "m.unblock() lets it through", "if the user agrees, run it all the same"
"""End of the reason of a refusal, which names a method, and what replaces it: no event ends a block."""

SCHEMA = "coherence.collect/1"
"""Schema of an answer."""


class EventReceiver(BoundedServer):
    """Take events of agents, tell them to monitors, and answer with the newest decision on each agent.

    A request of a web page is refused, and one that names this server by another name than an address, ``localhost`` or
    ``host``: a page whose own name leads here would else be answered.

    Parameters
    ----------
    monitors : LiveMonitors
        Who records; to be closed by the caller.
    port : int
        0 = any that is free; ``server_port`` says which.
    host : str
        Address to listen on.

    Raises
    ------
    OSError
        If the port cannot be had.
    """

    def __init__(self, monitors: LiveMonitors, port: int, host: str = LOOPBACK) -> None:
        self.monitors, self.host = monitors, host
        super().__init__((host, port), _Handler)
        self.server_port: int = self.server_address[1]

    def take(self, told: Sequence[ToldEvent]) -> dict[str, Any]:
        """Record events in their order, and return how each agent stands that they are of."""
        of_agents: dict[tuple[str, str], list[ToldEvent]] = {}
        for event in told:
            of_agents.setdefault((event.agent, event.session), []).append(event)
        agents = []
        for (agent, session), events in of_agents.items():
            with self.monitors.using(agent, session) as monitor:
                answers = tell(monitor, events)
                agents.append(_standing(agent, session, monitor, answers))
        return {"schema": SCHEMA, "recorded": len(told), "agents": agents}


def _standing(agent: str, session: str, monitor: Monitor, answers: list[tuple[Check, Decision]]) -> dict[str, Any]:
    """Return an agent's newest light and decision; measured first, if anything has happened."""
    decision, reading = monitor.decide(), monitor.latest
    guidance = decision.guidance or None  # one that is withheld is none
    return {
        "agent": agent,
        "session": session,
        "light": str(Band.UNKNOWN if reading is None else reading.band),
        "index": None if reading is None else reading.coherence_index,
        "decision": decision.kind,
        "message": decision.message,
        "hint": "" if guidance is None else guidance.text,
        "guidance": None if guidance is None else guidance.id,
        "checks": [
            {
                "tool": check.tool,
                "decision": answer.kind,
                "message": answer.message.replace(_BY_METHOD, _BY_YOU),
                "refusal": monitor.refusal_id(answer) or None,
            }
            for check, answer in answers
        ],
    }


class _Handler(RequestHandler):
    server: EventReceiver

    def do_GET(self) -> None:  # noqa: N802 - by http.server
        try:
            self._check_sender()
            if self.path != HEALTH:
                raise RefusedError(HTTPStatus.NOT_FOUND, f"expected POST {EVENTS} or GET {HEALTH}")
        except RefusedError as error:
            return self.refuse(error)
        told = {"status": "ok", "agents": len(self.server.monitors)}
        return self.answer_json(HTTPStatus.OK, told)

    def do_POST(self) -> None:  # noqa: N802 - by http.server
        try:
            answer = self.server.take(self._events())
        except RefusedError as error:
            return self.refuse(error)
        except Exception:
            LOG.exception("coherence: events could not be recorded")
            return self.fail()
        return self.answer_json(HTTPStatus.OK, answer)

    def _events(self) -> list[ToldEvent]:
        """Return the events of a request; of one that is refused, nothing is recorded."""
        self._check_sender()
        if self.path != EVENTS:
            raise RefusedError(HTTPStatus.NOT_FOUND, f"expected POST {EVENTS} or GET {HEALTH}")
        kind = self.headers.get_content_type()
        if kind not in (JSON, *JSON_LINES):
            raise RefusedError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected Content-Type {JSON} or {JSON_LINES[0]}, not {kind}"
            )
        try:
            return read_events(self.body().decode())
        except UnicodeDecodeError as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"not UTF-8 at byte {error.start}") from error
        except BadEventError as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from error

    def _check_sender(self) -> None:
        self.no_page()
        given = self.headers.get_all("Host") or []
        name = _host_name(given[0]) if len(given) == 1 else ""
        if name not in ("localhost", self.server.host.lower()) and not _is_address(name):
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "expected a Host header with an address, localhost or the name given as --host"
            )


def _host_name(given: str) -> str:
    """Return the name in a ``Host`` header, without port and brackets.

    Examples
    --------
    >>> [_host_name(given) for given in ("127.0.0.1:80", "[::1]:80", "LOCALHOST")]
    ['127.0.0.1', '::1', 'localhost']
    """
    if given.startswith("["):
        return given[1:].partition("]")[0]
    return given.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
