"""Server on a Unix socket: hooks hand it their payloads, each session's in order, and get answers."""

from __future__ import annotations

import logging
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from coherence.core.readings import excerpt
from coherence.core.validation import clean
from coherence.fleet.fleet import Fleet
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.control import (
    Command,
    CommandError,
    agent_records,
    is_command,
    read_command,
    schema_of,
    unblock_agents,
)
from coherence.integrations.daemon.refusals import forget_refusals, store_refusal
from coherence.integrations.host_session import HostSession
from coherence.integrations.hosts import HOSTS
from coherence.store.store import Store

LOGGER = logging.getLogger(__name__)

MAX_PAYLOAD = 16_000_000
"""Bytes of one request; a longer one is not read to its end, and the agent goes on."""

READ_S = 5.0
"""Seconds in which a request must have come."""

IDLE_S = 1_800.0
"""Seconds without a request after which the daemon ends."""

SESSION_IDLE_S = 3_600.0
"""Seconds without a request after which a session's monitors are closed; the next event opens them again."""

MAX_SESSION = 200
"""Characters of a session's name."""

FleetMaker = Callable[[Store], Fleet]


class Request(NamedTuple):
    """A payload, and by whom it was sent."""

    host: str
    """Client that has run the hook."""
    build: str
    """Of the package that the hook belongs to."""
    steers: bool
    payload: dict[str, Any]


class RequestError(ValueError):
    """A request that nothing can be made of."""


def read_request(raw: bytes) -> Request:
    r"""Return what a hook has sent.

    Raises
    ------
    RequestError
        If it is something else; the message says what.

    Examples
    --------
    >>> read_request(b'coherence-hook claude-code 17 steer\n{"session_id": "s1"}')
    Request(host='claude-code', build='17', steers=True, payload={'session_id': 's1'})
    """
    line, _, body = raw.partition(b"\n")
    words = line.decode("utf-8", "replace").split()
    if len(words) != 4 or words[0] != hook.HEADER or words[1] not in HOSTS:
        raise RequestError("not a request of a hook")
    try:
        payload = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the payload is no JSON that can be read: {error}") from error
    if not isinstance(payload, dict) or not isinstance(payload.get("session_id"), str) or not payload["session_id"]:
        raise RequestError("the payload names no session")
    return Request(words[1], words[2], words[3] != "observe", payload)


class _Open:
    """A session that is followed, with what keeps its events in order."""

    def __init__(self, session: HostSession) -> None:
        self.session, self.lock, self.used = session, threading.Lock(), time.monotonic()


class HookDaemon:
    """Follow the sessions of all clients of one user.

    Parameters
    ----------
    folder : Path
        State folder, which must be the current one: the names of sockets must be short.
    store : path
        File that keeps everything.
    idle_s : float
        Seconds without a request after which :meth:`serve` returns.
    make_fleet : callable, optional
        Makes a session's fleet on the store.
    """

    def __init__(
        self, folder: Path, store: str | Path, *, idle_s: float = IDLE_S, make_fleet: FleetMaker | None = None
    ) -> None:
        self.folder, self.idle_s = folder, idle_s
        self.build = hook.build()
        self.store = Store(store)
        self._make_fleet = make_fleet or (lambda kept: Fleet(store=kept, resume=True))
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()
        self._spool_lock = threading.Lock()
        self._unreadable: set[Path] = set()
        self._used = time.monotonic()
        self._retired = threading.Event()

    def handle(self, raw: bytes) -> bytes:
        """Return the answer to a request, empty where there is nothing to say. Never raises: the agent goes on."""
        if is_command(raw):  # keeps no daemon alive: a status line asks every few seconds
            return self._control(raw)
        self._used = time.monotonic()
        self.read_spool()  # a hook may just have missed the socket
        return self._take(raw)

    def _take(self, raw: bytes, late: set[str] | None = None) -> bytes:
        """Take in a request; of those that come late, ``late`` holds the sessions that had some before."""
        try:
            request = read_request(raw)
            if request.build != self.build:
                LOGGER.info("another version of the package is installed: this daemon ends")
                self._retired.set()
            answer = self._answer(request, late)
        except RequestError as error:
            LOGGER.warning("a request was passed over: %s", error)
            return b""
        except Exception:
            LOGGER.exception("a request failed; the agent goes on")
            return b""
        return msgspec.json.encode(answer) if answer else b""

    def _answer(self, request: Request, late: set[str] | None = None) -> dict[str, Any]:
        name = clean(request.payload["session_id"], MAX_SESSION)
        with self._held(name, request.host) as found:
            found.used = time.monotonic()
            if late is not None and name not in late:
                late.add(name)
                found.session.come_late()
            answer = found.session.handle(request.payload, steers=request.steers)
            if answer and found.session.refuses(answer):
                store_refusal(self.folder, name, hook.call_key(request.payload), msgspec.json.encode(answer))
            if found.session.ended:
                self._close(name)
                forget_refusals(self.folder, name)
            return answer

    @contextmanager
    def _held(self, name: str, host: str) -> Iterator[_Open]:
        """Give a session, opened if it is not, for this thread alone."""
        while True:
            found = self._session(name, host)
            with found.lock:
                if self._open.get(name) is found:  # else it was closed meanwhile
                    yield found
                    return

    def _session(self, name: str, host: str) -> _Open:
        with self._lock:
            if name not in self._open:
                self._open[name] = _Open(HOSTS[host](self._make_fleet(self.store), name))
            return self._open[name]

    def _control(self, raw: bytes) -> bytes:
        try:
            command = read_command(raw)
            commands = {"status": self._status, "stop": self._stop, "unblock": self._unblock}
            if command.do not in commands:
                raise CommandError(f"unknown command {excerpt(command.do)}; there are {', '.join(commands)}")
            found = {"schema": schema_of(command.do), "pid": os.getpid(), **commands[command.do](command)}
        except CommandError as error:
            found = {"error": str(error)}
        except Exception:
            LOGGER.exception("a command failed")
            found = {"error": f"it failed: see {self.folder / hook.LOG}"}
        return msgspec.json.encode(found)

    def _status(self, command: Command) -> dict[str, Any]:
        now = time.monotonic()
        newest_first = sorted(self._open.copy().items(), key=lambda pair: -pair[1].used)
        sessions = [
            {"session": name, "idle_s": round(now - each.used, 1), "agents": agent_records(each.session.fleet)}
            for name, each in newest_first
            if command.session in (None, name)
        ]
        return {"build": self.build, "sessions": sessions}

    def _stop(self, command: Command) -> dict[str, Any]:
        self._retired.set()
        return {}

    def _unblock(self, command: Command) -> dict[str, Any]:
        name = clean(command.session, MAX_SESSION) if command.session is not None else self._newest()
        with self._held(name, self._host(name)) as found:
            agents = unblock_agents(found.session.fleet, command.agent, command.reason)
            return {"session": name, "agents": agents, "refusals": forget_refusals(self.folder, name)}

    def _host(self, name: str) -> str:
        """Return the client of a session, also of one that is over."""
        if name in self._open:
            return self._open[name].session.HOST
        for row in self.store.sessions():
            if row.session == name and row.agent in HOSTS:
                return row.agent
        raise CommandError(f"nothing is known of the session {excerpt(name)}")

    def _newest(self) -> str:
        used = {each.used: name for name, each in self._open.copy().items()}
        if not used:
            raise CommandError("no session is followed now; name one: --session")
        return used[max(used)]

    def read_spool(self) -> int:
        """Take in the payloads that came while no daemon ran, in their order; return how many."""
        with self._spool_lock:
            taken: list[Path] = []
            late: set[str] = set()
            for path in sorted({*(self.folder / hook.SPOOL).glob("*.payload")} - self._unreadable):
                try:
                    raw = path.read_bytes()
                except OSError:
                    LOGGER.exception("a payload is left in the spool")
                    self._unreadable.add(path)
                else:
                    self._take(raw, late)
                    taken.append(path)
            if taken:
                self._flush()  # before they go: a daemon may be killed at any time
            for path in taken:
                path.unlink(missing_ok=True)
            return len(taken)

    def _flush(self) -> None:
        for each in self._open.copy().values():
            with each.lock:
                each.session.fleet.flush()

    def serve(self) -> None:
        """Answer hooks until there are none for a while, or somebody stops it; then close all sessions."""
        try:
            self.read_spool()
            with _Server(self) as server:
                (self.folder / hook.WAKING).unlink(missing_ok=True)
                while not self._retired.is_set() and time.monotonic() - self._used < self.idle_s:
                    self.read_spool()
                    server.handle_request()
                    self._close_idle()
        finally:
            self.close()

    def _close_idle(self) -> None:
        for name, each in list(self._open.items()):
            if time.monotonic() - each.used > SESSION_IDLE_S and each.lock.acquire(blocking=False):
                try:
                    self._close(name)
                finally:
                    each.lock.release()

    def _close(self, name: str) -> None:
        with self._lock:
            found = self._open.pop(name, None)
        if found is not None:
            try:
                found.session.close()
            finally:
                found.session.fleet.close()

    def close(self) -> None:
        """Close all sessions and the store."""
        for name in list(self._open):
            self._close(name)
        self.store.close()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A thread for each request."""

    daemon_threads = False  # those that are at work are waited for at the end
    request_queue_size = 512
    timeout = 0.5

    def __init__(self, daemon: HookDaemon) -> None:
        self.daemon = daemon
        Path(hook.SOCKET).unlink(missing_ok=True)  # of a daemon that was killed: its lock is free
        super().__init__(hook.SOCKET, _Handler)
        os.chmod(hook.SOCKET, 0o600)

    def server_close(self) -> None:
        Path(hook.SOCKET).unlink(missing_ok=True)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOGGER.debug("a hook went away", exc_info=True)


class _Handler(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        self.request.settimeout(READ_S)
        parts, size = [], 0
        while part := self.request.recv(1 << 20):
            size += len(part)
            if size > MAX_PAYLOAD:
                LOGGER.warning("a payload of more than %s bytes was passed over", f"{MAX_PAYLOAD:,}")
                return
            parts.append(part)
        answer = self.server.daemon.handle(b"".join(parts))
        if answer:
            self.request.sendall(answer)
