"""A server with a thread for each connection, and a bound on their number."""

from __future__ import annotations

import logging
import socketserver
import threading
from collections.abc import Callable
from typing import Any

LOGGER = logging.getLogger(__name__)

MAX_CONNECTIONS = 64
"""Connections at a time; one more is closed at once."""


class BoundedServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Serve up to :data:`MAX_CONNECTIONS` connections at a time; a client that goes away is no error.

    Parameters
    ----------
    address : tuple of str and int
        Host and port to listen on.
    handler : callable
        Makes the handler of a connection.
    """

    daemon_threads = True  # a client keeps its connection open
    block_on_close = False
    allow_reuse_address = True  # connections of a server that has ended; no two may listen
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Callable[..., socketserver.BaseRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOGGER.debug("a client went away", exc_info=True)
