"""Server of the metrics of a store, for Prometheus to scrape."""

from __future__ import annotations

import logging
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from coherence.core.errors import CoherenceError
from coherence.core.readings import one_line
from coherence.export.agent_totals import MAX_AGENTS
from coherence.export.prometheus import CONTENT_TYPE, PrometheusSink
from coherence.export.store_records import StoreRecords
from coherence.integrations.bounded_server import BoundedServer

LOG = logging.getLogger("coherence")

LOOPBACK = "127.0.0.1"

KEPT_S = 60.0
"""Seconds that a connection stays open without a request."""

PATH = "/metrics"


class StoreMetrics:
    """Metrics of the agents in a store. Needs the extra ``prometheus``.

    Parameters
    ----------
    path : Path
        The store's file.
    max_agents : int
        Agents that are exposed at most, 1 to 10,000.

    Raises
    ------
    MissingExtraError
        If prometheus_client is not installed.
    """

    def __init__(self, path: Path, *, max_agents: int = MAX_AGENTS) -> None:
        self._path, self._max_agents = path, max_agents
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._records = StoreRecords(self._path)
        self._sink = PrometheusSink(_NoRegistry(), max_agents=self._max_agents)

    def exposition(self) -> bytes:
        """Read what is new in the store, and return the metrics in Prometheus's text format.

        Raises
        ------
        CoherenceError
            The store cannot be read.
        """
        with self._lock:
            if self._records.is_new_file():
                self._begin()
            for record in self._records.newer():
                self._sink.emit(record)
            return self._sink.exposition()


class _NoRegistry:
    """Registry of a sink that is asked directly."""

    def register(self, collector: object) -> None:
        """Do nothing."""


class MetricsServer(BoundedServer):
    """Answer ``GET /metrics``.

    Parameters
    ----------
    metrics : StoreMetrics
        Asked at each request.
    port : int
        0 = any that is free; ``server_port`` says which.
    host : str
        Address to listen on.

    Raises
    ------
    OSError
        If the port cannot be had.
    """

    def __init__(self, metrics: StoreMetrics, port: int, host: str = LOOPBACK) -> None:
        self.metrics = metrics
        super().__init__((host, port), _Handler)
        self.server_port: int = self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    protocol_version = "HTTP/1.1"
    timeout = KEPT_S
    wbufsize = 1 << 16

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != PATH:
            return self._answer(HTTPStatus.NOT_FOUND, "text/plain", f"expected {PATH}\n".encode())
        try:
            text = self.server.metrics.exposition()
        except Exception as error:
            if not isinstance(error, CoherenceError):
                LOG.exception("coherence: metrics could not be read")
            why = one_line(str(error)) if isinstance(error, CoherenceError) else "they could not be read"
            return self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", f"{why}\n".encode())
        return self._answer(HTTPStatus.OK, CONTENT_TYPE, text)

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: a scrape every few seconds is no news."""
