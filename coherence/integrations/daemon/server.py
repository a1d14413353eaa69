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
from coherence.integrations.daemon.canary import take_canary
from coherence.integrations.daemon.config import usable_config
from coherence.integrations.daemon.control import (
    Command,
    CommandError,
    is_command,
    read_command,
    schema_of,
    session_records,
    unblock_agents,
)
from coherence.integrations.daemon.deduplication import Deduplicator, recorded
from coherence.integrations.daemon.folder import MAX_SESSION
from coherence.integrations.daemon.http_door import HttpDoor
from coherence.integrations.daemon.journal import SETTLE_S, Journal
from coherence.integrations.daemon.log import empty_log, rotate_log
from coherence.integrations.daemon.purge import forget_session
from coherence.integrations.daemon.refusals import forget_refusal, forget_refusals, store_refusal
from coherence.integrations.host_session import HostSession, context, text_of
from coherence.integrations.hosts import HOSTS
from coherence.monitor.session_header import base_of
from coherence.store.errors import StoreError
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

MAX_WAITING = 64_000_000
"""Bytes of requests that wait in memory for room on the disk; what comes beyond them is not recorded."""

FleetMaker = Callable[[Store, Path | None], Fleet]
"""Makes the fleet of a session on a store, for an agent that works in a folder, ``None`` = unknown."""


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

    def __init__(self, session: HostSession, deduplicator: Deduplicator) -> None:
        self.session, self.lock, self.used = session, threading.Lock(), time.monotonic()
        self.deduplicator = deduplicator


def _make_fleet(store: Store, folder: Path | None) -> Fleet:
    """Return the fleet of a session; settings that change hold from the next session on."""
    return Fleet(store=store, resume=True, config=usable_config(folder))


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
        self._make_fleet = make_fleet or _make_fleet
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()
        self._spool_lock = threading.Lock()
        self._unreadable: set[Path] = set()
        self._used = time.monotonic()
        self._retired = threading.Event()
        self._door = HttpDoor(folder, self.handle, MAX_PAYLOAD)
        self._journal = Journal(folder)
        self._waiting: list[tuple[bytes, Path | None]] = []
        """Requests of sessions that cannot be opened now, in their order, each with its file."""
        self._recovers = False
        """True while what a killed daemon had taken is read: the store may have it already."""

    def handle(self, raw: bytes) -> bytes:
        """Return the answer to a request, empty where there is nothing to say. Never raises: the agent goes on."""
        if is_command(raw):  # keeps no daemon alive: a status line asks every few seconds
            return self._control(raw)
        self._used = time.monotonic()
        self.read_spool()  # a hook may just have missed the socket
        kept = self._journal.begin(raw)
        answer = self._take(raw, is_heard=True)
        if answer is None:
            if sum(len(each) for each, _ in self._waiting) < MAX_WAITING:
                self._waiting.append((raw, kept))
            return b""
        self._journal.done(kept)
        return answer

    def _take(self, raw: bytes, late: set[str] | None = None, *, is_heard: bool = False) -> bytes | None:
        """Return the answer to a request of a hook; ``None`` if it must be taken again, once there is room to write.

        ``is_heard``: the hook waits for it. Of requests that come late, ``late`` holds the sessions that had some
        before.
        """
        try:
            request = read_request(raw)
            if request.build != self.build:
                LOGGER.info("another version of the package is installed: this daemon ends")
                self._retired.set()
            answer = self._answer(request, late, is_heard=is_heard)
        except RequestError as error:
            LOGGER.warning("a request was passed over: %s", error)
            return b""
        except StoreError as error:
            LOGGER.warning("a request waits: %s", error)
            return None
        except Exception:
            LOGGER.exception("a request failed; the agent goes on")
            return b""
        return msgspec.json.encode(answer) if answer else b""

    def _answer(self, request: Request, late: set[str] | None, *, is_heard: bool) -> dict[str, Any]:
        name = clean(request.payload["session_id"], MAX_SESSION)
        with self._held(name, request.host, text_of(request.payload, "cwd")) as found:
            found.used = time.monotonic()
            earlier = found.deduplicator.answer_to(request.payload)
            if earlier is not None:
                return earlier
            if late is not None and name not in late:
                late.add(name)
                found.session.come_late()
            found.deduplicator.add(request.payload, {})
            try:
                answer = found.session.handle(request.payload, steers=request.steers)
            except StoreError:
                found.deduplicator.forget(request.payload)
                raise
            answer = answer or self._warning(request.payload)
            refuses = bool(answer) and found.session.refuses(answer)
            if refuses:
                found.deduplicator.add(request.payload, answer)
                store_refusal(self.folder, name, hook.call_key(request.payload), msgspec.json.encode(answer))
            elif request.steers and (self.folder / hook.BLOCKED).exists():  # somebody may have let the call through
                forget_refusal(self.folder, name, hook.call_key(request.payload))
            self._keep_standing(name, found.session)
            if found.session.unblocked:
                found.session.unblocked = False
                forget_refusals(self.folder, name)
            if found.session.ended:
                self._close(name)
                forget_refusals(self.folder, name)
            # never beside another text: that one is looked for as it is
            if is_heard and request.steers and not answer and found.session.carries(request.payload):
                return self._canary(request.payload, name)
            return answer

    def _warning(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return what the person must know, and refuse the prompt if another user's process would get what follows."""
        if not self._door.shut:
            return {}
        told = f"coherence: {self._door.shut}; the hooks of each step are not answered. Run: coherence init --yes"
        event = payload.get("hook_event_name")
        if event == "UserPromptSubmit" and self._door.is_strangers():
            return {"decision": "block", "reason": f"{told}, and start the client again"}
        return {"systemMessage": told} if event == "SessionStart" else {}

    def _canary(self, payload: dict[str, Any], name: str) -> dict[str, Any]:
        """Return the answer that ``coherence doctor --delivery`` has asked for, empty if nobody has."""
        line = take_canary(self.folder, name, text_of(payload, "transcript_path"))
        return context(text_of(payload, "hook_event_name"), line) if line else {}

    def _keep_standing(self, name: str, session: HostSession) -> None:
        """Have hooks refuse all calls of agents that are refused all, also when no daemon runs."""
        while session.standing:
            (event, agent), answer = session.standing.popitem()
            asked: dict[str, object] = {
                "hook_event_name": event,
                "session_id": session.session,
                "agent_id": agent or None,
            }
            if answer is None:
                forget_refusal(self.folder, name, hook.agent_key(asked))
            else:
                store_refusal(self.folder, name, hook.agent_key(asked), msgspec.json.encode(answer))

    @contextmanager
    def _held(self, name: str, host: str, folder: str = "") -> Iterator[_Open]:
        """Give a session, opened if it is not, for this thread alone; ``folder`` is where its agent works."""
        while True:
            found = self._session(name, host, folder)
            with found.lock:
                if self._open.get(name) is found:  # else it was closed meanwhile
                    yield found
                    return

    def _session(self, name: str, host: str, folder: str) -> _Open:
        with self._lock:
            if name not in self._open:
                fleet = self._make_fleet(self.store, Path(folder) if os.path.isabs(folder) else None)
                deduplicator = Deduplicator(recorded(self.store, name) if self._recovers else ())
                self._open[name] = _Open(HOSTS[host](fleet, name), deduplicator)
            return self._open[name]

    def _control(self, raw: bytes) -> bytes:
        try:
            command = read_command(raw)
            commands = {
                "status": self._status,
                "stop": self._stop,
                "unblock": self._unblock,
                "prove": self._prove,
                "purge": self._purge,
            }
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
        if command.feed is not None:
            for name, each in newest_first:
                if name == command.session:
                    each.session.feed(command.feed)
        sessions = [
            {"session": name, "idle_s": round(now - each.used, 1), "agents": session_records(each.session)}
            for name, each in newest_first
            if command.session in (None, name)
        ]
        return {"build": self.build, "sessions": sessions}

    def _stop(self, command: Command) -> dict[str, Any]:
        self._retired.set()
        return {}

    def _prove(self, command: Command) -> dict[str, Any]:
        """Return what shows whether this process listens on its port, which may have been named a moment ago."""
        self._door.mind()
        word, answer = self._door.prove()
        return {"port": self._door.port, "shut": self._door.shut, "word": word, "answer": answer}

    def _unblock(self, command: Command) -> dict[str, Any]:
        name = clean(command.session, MAX_SESSION) if command.session is not None else self._newest()
        with self._held(name, self._host(name)) as found:
            agents = unblock_agents(found.session.fleet, command.agent, command.reason)
            return {"session": name, "agents": agents, "refusals": forget_refusals(self.folder, name)}

    def _purge(self, command: Command) -> dict[str, Any]:
        if command.session is None:
            raise CommandError("name the session to purge")
        if command.store is not None and not os.path.samefile(command.store, self.store.path):
            return {"session": command.session, "report": None, "removed": None}
        name = clean(command.session, MAX_SESSION)
        with self._spool_lock:
            removed = forget_session(self.folder, name)
        base = base_of(name) if base_of(name) in self._open else name
        try:
            host = self._host(base)
        except CommandError:
            report = self.store.purge(session=name)
        else:
            with self._held(base, host) as found:
                try:
                    found.session.fleet.close()
                    report = self.store.purge(session=name)
                    forget_refusals(self.folder, name)
                finally:  # only now: an event that comes meanwhile would open it again
                    self._open.pop(base, None)
        empty_log(self.folder)
        return {"session": name, "report": msgspec.to_builtins(report), "removed": msgspec.to_builtins(removed)}

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
            while self._waiting and self._take(self._waiting[0][0]) is not None:
                self._journal.done(self._waiting.pop(0)[1])
            taken: list[Path] = []
            late: set[str] = set()
            for path in sorted({*(self.folder / hook.SPOOL).glob("*.payload")} - self._unreadable):
                try:
                    raw = path.read_bytes()
                except OSError:
                    LOGGER.exception("a payload is left in the spool")
                    self._unreadable.add(path)
                else:
                    if self._take(raw, late) is None:
                        break
                    taken.append(path)
            if taken:
                self._write()  # before they go: a daemon may be killed at any time
            for path in taken:
                path.unlink(missing_ok=True)
            return len(taken)

    def serve(self) -> None:
        """Answer hooks until there are none for a while, or somebody stops it; then close all sessions."""
        try:
            self._recovers = self._journal.recover()
            self.read_spool()
            self._recovers = False
            with _Server(self) as server, self._settling():
                (self.folder / hook.WAKING).unlink(missing_ok=True)
                while not self._retired.is_set() and (self._is_waited_for() or not self._is_idle()):
                    self.read_spool()
                    self._door.mind()
                    rotate_log()
                    server.handle_request()
                    self._close_idle()
            self.read_spool()  # there may be room to write by now
        finally:
            self.close()

    def _is_idle(self) -> bool:
        return time.monotonic() - self._used >= self.idle_s

    def _is_waited_for(self) -> bool:
        """Tell whether a session goes on whose hooks cannot start the daemon themselves."""
        return self._door.is_open and bool(self._open)

    @contextmanager
    def _settling(self) -> Iterator[None]:
        """Write what was taken every second, and once more at the end."""
        ended = threading.Event()

        def settle() -> None:
            while not ended.wait(SETTLE_S):
                try:
                    self._journal.settle(self._write)
                except Exception as error:
                    LOGGER.warning("what cannot be written is kept in the spool: %s", error)

        thread = threading.Thread(target=settle, name="coherence-journal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _write(self) -> None:
        for each in self._open.copy().values():
            _write_all(each.session.fleet)

    def _close_idle(self) -> None:
        for name, each in list(self._open.items()):
            over = each.session.ended or time.monotonic() - each.used > SESSION_IDLE_S
            if over and each.lock.acquire(blocking=False):
                try:
                    self._close(name)
                finally:
                    each.lock.release()

    def _close(self, name: str, *, at_end: bool = False) -> None:
        """Close a session; one that cannot be written is kept open until it can, or until the end."""
        with self._lock:
            found = self._open.get(name)
        if found is None:
            return
        found.session.close()
        self._keep_standing(name, found.session)
        try:
            _write_all(found.session.fleet)
        except StoreError as error:
            if not at_end:
                return
            LOGGER.warning("the next daemon takes in again what cannot be written: %s", error)
            self._journal.leave()
        with self._lock:
            self._open.pop(name, None)
        found.session.fleet.close()

    def close(self) -> None:
        """Close the door, all sessions and the store."""
        self._door.close()
        for name in list(self._open):
            self._close(name, at_end=True)
        self._journal.settle(lambda: None)
        for raw, kept in self._waiting:
            if kept is None:
                self._journal.begin(raw)
        self.store.close()


def _write_all(fleet: Fleet) -> None:
    """Write what was recorded, or raise StoreError."""
    for monitor in fleet:
        if not monitor._worker.closed:
            monitor._worker.flush(raising=True)


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
        self.request.sendall(hook.TAKEN + answer)
