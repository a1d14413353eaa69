"""Receiver of OTLP by HTTP: spans and log records that agents export, as they come."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from coherence.core.errors import MissingExtraError
from coherence.integrations.bounded_server import BoundedServer
from coherence.providers.readers.otlp import is_otlp
from coherence.providers.readers.values import loads

LOG = logging.getLogger("coherence")
INSTALL = '  pip install "coherence-sensor[otel]"'

LOOPBACK = "127.0.0.1"

MAX_BODY = 1 << 24
"""Bytes of a request, also once decompressed: 16 MiB."""

KEPT_S = 60.0
"""Seconds that a connection stays open without a request."""

DRAIN_S = 1.0
"""Seconds of silence after which a connection that was refused is closed."""

JSON, PROTOBUF = "application/json", "application/x-protobuf"

SIGNALS = {"/v1/traces": "resourceSpans", "/v1/logs": "resourceLogs", "/v1/metrics": "resourceMetrics"}


class _RefusedError(Exception):
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


class OtlpReceiver(BoundedServer):
    """Take OTLP requests in JSON or protobuf, gzipped or not; metrics are taken and passed over.

    Parameters
    ----------
    take : callable
        Takes a request as JSON has it, one at a time or several at once.
    port : int
        0 = any that is free; ``server_port`` says which.
    host : str
        Address to listen on.

    Raises
    ------
    OSError
        If the port cannot be had.
    """

    def __init__(self, take: Callable[[dict[str, Any]], object], port: int, host: str = LOOPBACK) -> None:
        self.take = take
        super().__init__((host, port), _Handler)
        self.server_port: int = self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    server: OtlpReceiver
    protocol_version = "HTTP/1.1"
    timeout = KEPT_S
    wbufsize = 1 << 16

    def do_POST(self) -> None:
        try:
            kind = self.headers.get_content_type()
            request = self._request(kind)
            if self.path != "/v1/metrics":
                self.server.take(request)
        except _RefusedError as error:
            # what follows in the connection may be a body that was not read
            self.close_connection = True
            self._answer(error.status, JSON, json.dumps({"message": str(error)}).encode())
            return self._drain()
        except Exception:
            LOG.exception("coherence: an OTLP request could not be recorded")
            self.close_connection = True
            return self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, JSON, b'{"message": "it could not be recorded"}')
        return self._answer(HTTPStatus.OK, kind, b"{}" if kind == JSON else b"")

    def _drain(self) -> None:
        """Read for a moment what the sender goes on to send: it would not see the answer of a connection that broke."""
        self.wfile.flush()
        self.connection.settimeout(DRAIN_S)
        left = MAX_BODY
        with suppress(OSError):
            while left > 0 and (part := self.rfile.read1(1 << 16)):
                left -= len(part)

    def _request(self, kind: str) -> dict[str, Any]:
        """Return the request's body as JSON has it."""
        if self.headers.get("Origin") is not None:  # a page in a browser
            raise _RefusedError(HTTPStatus.FORBIDDEN, "requests of web pages are not taken")
        if self.path not in SIGNALS:
            raise _RefusedError(HTTPStatus.NOT_FOUND, f"expected one of {', '.join(SIGNALS)}")
        if kind not in (JSON, PROTOBUF):
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected {JSON} or {PROTOBUF}, not {kind}")
        body = self._body()
        if kind == PROTOBUF:
            return from_protobuf(self.path, body)
        try:
            request = loads(body.decode())
        except (ValueError, RecursionError) as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"not JSON: {error}") from error
        if request and not is_otlp(request):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"expected an object with {SIGNALS[self.path]}")
        return request if isinstance(request, dict) else {}

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "expected a Content-Length")
        if int(length[:20]) > MAX_BODY:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY} bytes: send smaller batches"
            )
        body = self.rfile.read(int(length))
        encoding = self.headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise _RefusedError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected gzip or no Content-Encoding, not {encoding}"
            )
        unzip = zlib.decompressobj(wbits=31)
        try:
            found = unzip.decompress(body, MAX_BODY + 1)
        except zlib.error as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"damaged gzip: {error}") from error
        if len(found) > MAX_BODY:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY} bytes decompressed")
        if not unzip.eof:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "truncated gzip")
        return found

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: what is printed is about agents."""


def from_protobuf(path: str, body: bytes) -> dict[str, Any]:
    """Return a request in protobuf as JSON has it, ids in another spelling.

    Raises
    ------
    _RefusedError
        If it is none, or the package that reads it is not installed.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as error:
        why = f"{MissingExtraError('opentelemetry-proto', INSTALL)}\nor have the exporter send {JSON} (http/json)"
        raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why) from error
    kinds: dict[str, Any] = {
        "/v1/traces": ExportTraceServiceRequest,
        "/v1/logs": ExportLogsServiceRequest,
        "/v1/metrics": ExportMetricsServiceRequest,
    }
    try:
        found: dict[str, Any] = MessageToDict(kinds[path].FromString(body))
    except (DecodeError, ValueError, RecursionError) as error:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, f"not a protobuf request: {error}") from error
    return found
