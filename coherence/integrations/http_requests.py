"""Requests that a server takes from programs on this machine: their bodies, bounded, and answers that say why not."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

LOOPBACK = "127.0.0.1"

MAX_BODY = 1 << 24
"""Bytes of a request, also once decompressed: 16 MiB."""

KEPT_S = 60.0
"""Seconds that a connection stays open without a request."""

DRAIN_S = 1.0
"""Seconds of silence after which a connection that was refused is closed."""

JSON = "application/json"


class RefusedError(Exception):
    """A request that is not taken.

    Parameters
    ----------
    status : HTTPStatus
        Answer to it.
    reason : str
        In words, for the sender.
    """

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class RequestHandler(BaseHTTPRequestHandler):
    """Handler of a connection that reads bodies up to :data:`MAX_BODY`, plain or gzipped."""

    protocol_version = "HTTP/1.1"
    timeout = KEPT_S
    # Headers and body in one write: two small ones would wait for each other.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def no_page(self) -> None:
        """Refuse a request of a page in a browser.

        Raises
        ------
        RefusedError
            If it comes from one.
        """
        if self.headers.get("Origin") is not None:
            raise RefusedError(HTTPStatus.FORBIDDEN, "requests of web pages are not taken")

    def body(self) -> bytes:
        """Return the request's body, decompressed.

        Raises
        ------
        RefusedError
            If it has no length, is too large, or is damaged.
        """
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "expected a Content-Length")
        if int(length[:20]) > MAX_BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY} bytes: send smaller batches")
        body = self.rfile.read(int(length))
        encoding = self.headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise RefusedError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected gzip or no Content-Encoding, not {encoding}"
            )
        unzip = zlib.decompressobj(wbits=31)
        try:
            found = unzip.decompress(body, MAX_BODY + 1)
        except zlib.error as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"damaged gzip: {error}") from error
        if len(found) > MAX_BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY} bytes decompressed")
        if not unzip.eof:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "truncated gzip")
        return found

    def answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        """Answer with a body."""
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, status: HTTPStatus, document: dict[str, Any]) -> None:
        """Answer with JSON."""
        self.answer(status, JSON, json.dumps(document).encode())

    def refuse(self, error: RefusedError) -> None:
        """Say why a request is not taken, and end the connection: what follows in it may be a body that was not read.

        What the sender goes on to send is read for a moment: it would not see the answer of a connection that broke.
        """
        self.close_connection = True
        self.answer_json(error.status, {"message": str(error)})
        self.wfile.flush()
        self.connection.settimeout(DRAIN_S)
        left = MAX_BODY
        with suppress(OSError):
            while left > 0 and (part := self.rfile.read1(1 << 16)):
                left -= len(part)

    def fail(self) -> None:
        """Say that something failed here, and end the connection."""
        self.close_connection = True
        self.answer_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"message": "it could not be recorded"})

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: what is printed is about agents."""
