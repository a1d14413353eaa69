"""Receiver of OTLP by HTTP: spans and log records that agents export, as they come."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from coherence.core.errors import MissingExtraError
from coherence.integrations.bounded_server import BoundedServer
from coherence.integrations.http_requests import JSON, LOOPBACK, RefusedError, RequestHandler
from coherence.providers.readers.otlp import is_otlp
from coherence.providers.readers.values import loads

LOG = logging.getLogger("coherence")
INSTALL = '  pip install "coherence-sensor[otel]"'

PROTOBUF = "application/x-protobuf"

SIGNALS = {"/v1/traces": "resourceSpans", "/v1/logs": "resourceLogs", "/v1/metrics": "resourceMetrics"}


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


class _Handler(RequestHandler):
    server: OtlpReceiver

    def do_POST(self) -> None:  # noqa: N802 - by http.server
        try:
            kind = self.headers.get_content_type()
            request = self._request(kind)
            if self.path != "/v1/metrics":
                self.server.take(request)
        except RefusedError as error:
            return self.refuse(error)
        except Exception:
            LOG.exception("coherence: an OTLP request could not be recorded")
            return self.fail()
        return self.answer(HTTPStatus.OK, kind, b"{}" if kind == JSON else b"")

    def _request(self, kind: str) -> dict[str, Any]:
        """Return the request's body as JSON has it."""
        self.no_page()
        if self.path not in SIGNALS:
            raise RefusedError(HTTPStatus.NOT_FOUND, f"expected one of {', '.join(SIGNALS)}")
        if kind not in (JSON, PROTOBUF):
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected {JSON} or {PROTOBUF}, not {kind}")
        body = self.body()
        if kind == PROTOBUF:
            return from_protobuf(self.path, body)
        try:
            request = loads(body.decode())
        except (ValueError, RecursionError) as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"not JSON: {error}") from error
        if request and not is_otlp(request):
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"expected an object with {SIGNALS[self.path]}")
        return request if isinstance(request, dict) else {}


def from_protobuf(path: str, body: bytes) -> dict[str, Any]:
    """Return a request in protobuf as JSON has it, ids in another spelling.

    Raises
    ------
    RefusedError
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
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why) from error
    kinds: dict[str, Any] = {
        "/v1/traces": ExportTraceServiceRequest,
        "/v1/logs": ExportLogsServiceRequest,
        "/v1/metrics": ExportMetricsServiceRequest,
    }
    try:
        found: dict[str, Any] = MessageToDict(kinds[path].FromString(body))
    except (DecodeError, ValueError, RecursionError) as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"not a protobuf request: {error}") from error
    return found
