"""Server on a loopback port: the hooks that a client posts itself are answered as those that run a command."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

from coherence.core.errors import CoherenceError
from coherence.integrations.bounded_server import BoundedServer
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.http_place import HOST, HttpPlace, owner_of, path_of, read_place
from coherence.integrations.hosts import HOSTS

LOGGER = logging.getLogger(__name__)

KEPT_S = 60.0
"""Seconds that a connection stays open without a request."""

MAX_PROOFS = 16
"""Questions for a proof that wait to be asked."""

_SCHEME = "Bearer "


class Proof(NamedTuple):
    """A word that the door takes once in place of the token, and what it then answers.

    Whoever has it from the daemon's socket, which only the user can reach, learns who listens on the port.
    """

    word: str
    answer: str


class HttpDoor:
    """Answer hooks on the port that a state folder names, as long as it names one.

    Nothing is answered without the token, to a page in a browser (``Origin``), or under another name of this machine
    (``Host``).

    Parameters
    ----------
    folder : Path
        State folder.
    handle : callable
        Takes a request as a hook sends it, and returns the answer.
    max_body : int
        Bytes of a payload; a longer one is not read.
    """

    def __init__(self, folder: Path, handle: Callable[[bytes], bytes], max_body: int) -> None:
        self.handle, self.max_body = handle, max_body
        self.paths = {path_of(host, mode): (host, mode == "observe") for host in HOSTS for mode in ("steer", "observe")}
        self.shut = ""
        """Reason for which the port is not answered; empty if it is, or none is named."""
        self._folder = folder
        self._place: HttpPlace | None = None
        self._server: _Server | None = None
        self._proofs: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """True while hooks are answered."""
        return self._server is not None

    @property
    def port(self) -> int | None:
        """Port that the state folder names."""
        return self._place.port if self._place is not None else None

    def mind(self) -> None:
        """Open, move or close, as the state folder says now; a port that is taken is tried again."""
        with self._lock:
            before, shut = self.shut, ""
            try:
                place = read_place(self._folder)
            except CoherenceError as error:
                place, shut = None, str(error)
            if place != self._place or place is None:
                self._close()
            self._place = place
            if place is not None and self._server is None:
                try:
                    self._server = _Server(self, place)
                    LOGGER.info("hooks are answered on port %s", place.port)
                except OSError as error:
                    shut = f"port {place.port} belongs to another process ({error.strerror})"
            self.shut = shut
            if shut and shut != before:
                LOGGER.warning("%s", shut)

    def is_strangers(self) -> bool:
        """Tell whether another user's process has the port."""
        return (
            self._place is not None and self._server is None and owner_of(self._place.port) not in (None, os.getuid())
        )

    def prove(self) -> Proof:
        """Return a new proof; who listens on the port cannot know its answer, unless it is this process."""
        proof = Proof(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        while len(self._proofs) >= MAX_PROOFS:
            self._proofs.pop(next(iter(self._proofs)), None)
        self._proofs[proof.word] = proof.answer
        return proof

    def proven(self, word: str) -> str | None:
        """Return the answer to a proof's word, which is used up then."""
        return self._proofs.pop(word, None)

    def close(self) -> None:
        """Answer nobody any more."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._server is not None:
            self._server.end()
        self._server = None


class _Server(BoundedServer):
    """Server of one port and token, on a thread of its own."""

    def __init__(self, door: HttpDoor, place: HttpPlace) -> None:
        self.door, self.place = door, place
        super().__init__((HOST, place.port), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, name="coherence-http", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Take no more connections; those that are open are answered no more than what they ask now."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = KEPT_S
    # Headers and body in one write: two small ones would wait for each other, 40 ms a hook.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        door = self.server.door
        given = self.headers.get("Authorization", "")
        if not given.startswith(_SCHEME) or not self._is_for_us():
            return self._end(HTTPStatus.UNAUTHORIZED)
        word = given.removeprefix(_SCHEME)
        if (answer := door.proven(word)) is not None:
            return self._answer(answer.encode())
        if not hmac.compare_digest(word.encode("utf-8", "replace"), self.server.place.token.encode()):
            return self._end(HTTPStatus.UNAUTHORIZED)
        if self.path not in door.paths:
            return self._end(HTTPStatus.NOT_FOUND)
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            return self._end(HTTPStatus.LENGTH_REQUIRED)
        if int(length[:20]) > door.max_body:
            return self._end(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        host, observe = door.paths[self.path]
        request = hook.request(self.rfile.read(int(length)), observe=observe, host=host)
        return self._answer(door.handle(request) or b"{}")

    def _is_for_us(self) -> bool:
        """Tell whether a request names the port as the settings do, and comes from no page in a browser."""
        here = f"{HOST}:{self.server.place.port}"
        return self.headers.get_all("Host") == [here] and self.headers.get("Origin") is None

    def _answer(self, body: bytes) -> None:
        self.send_response_only(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _end(self, status: HTTPStatus) -> None:
        """Answer without a word, and close the connection: what follows in it is not read."""
        self.send_response_only(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is none, or of another method, without a word."""
        self._end(HTTPStatus(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: the log of the daemon is about agents."""
