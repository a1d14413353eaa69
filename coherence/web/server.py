"""The server: a port on the loopback device, connections that are bounded, and an end within a second."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from coherence.core.errors import MissingExtraError
from coherence.web.access import Access, HostNames
from coherence.web.app import INSTALL, Site
from coherence.web.feed import LiveFeed
from coherence.web.gate import HEADERS, UNKEPT, encoded
from coherence.web.source import StoreSource

try:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise MissingExtraError("uvicorn", INSTALL) from error

LOOPBACK = "127.0.0.1"

PORT = 7788
"""Port that is tried first, so that links to the page stay the same."""

MAX_CONNECTIONS = 128
"""Connections at a time; one more is closed at once. A browser keeps up to six."""

REQUEST_S = 10.0
"""Seconds in which a request must arrive, once its connection is there or it has begun."""

TAKEN_S = 20.0
"""Seconds in which a client must take something of what waits for it."""

KEPT_S = 30
"""Seconds that a connection stays open without a request."""

MAX_HEAD = 32_768
"""Bytes of the head of a request."""


class WebServer:
    """Server of one store on the loopback device.

    Parameters
    ----------
    store : Path
        The store's file; none is made.
    port : int, optional
        Port to listen on, 0 = any that is free. Default: :data:`PORT`, or any that is free if that one is taken.
    writes : bool
        ``True``: pages may label, unblock, and edit lessons.
    host_names : iterable of str
        Further names by which browsers reach this server, through a tunnel or a proxy.
    version : str
        Version of this package, for the page to show.

    Raises
    ------
    StoreError
        There is no store at the path, or it cannot be opened.
    OSError
        The port cannot be had.
    """

    def __init__(
        self,
        store: Path,
        *,
        port: int | None = None,
        writes: bool = False,
        host_names: Iterable[str] = (),
        version: str = "",
    ) -> None:
        self._source, self._writes = StoreSource(store), writes
        try:
            self._socket = _listen(port)
        except BaseException:
            self._source.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        access = Access(self.port)
        names = HostNames(self.port, host_names)
        site = Site(self._source, access, names, writes=writes, version=version)
        self.url = f"http://{LOOPBACK}:{self.port}/#token={access.token}"
        """Address with the token, which a browser keeps to itself: what follows # is not sent."""
        config = uvicorn.Config(
            site.application,
            http=_Connection,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEPT_S,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=MAX_HEAD,
        )
        self._server = _Server(config, site.feed)

    def serve_forever(self) -> None:
        """Answer requests until :meth:`shutdown`, or SIGINT or SIGTERM in the main thread, which is raised again."""
        warm = partial(self._source.warm, counts=self._writes)
        threading.Thread(target=warm, name="coherence-serve-warm", daemon=True).start()
        self._server.run(sockets=[self._socket])

    def shutdown(self) -> None:
        """End :meth:`serve_forever`, from any thread."""
        self._server.should_exit = True

    def close(self) -> None:
        """Free the port and close the store."""
        self._socket.close()
        self._source.close()

    def __enter__(self) -> WebServer:
        """Return the server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Free the port and close the store."""
        self.close()


def _listen(port: int | None) -> socket.socket:
    """Return a socket that listens."""
    try:
        return socket.create_server((LOOPBACK, PORT if port is None else port), backlog=MAX_CONNECTIONS)
    except OSError:
        if port is not None:
            raise
        return socket.create_server((LOOPBACK, 0), backlog=MAX_CONNECTIONS)


class _Server(uvicorn.Server):
    """Server that ends its live pages first: it would wait for them."""

    def __init__(self, config: uvicorn.Config, feed: LiveFeed) -> None:
        super().__init__(config)
        self._feed = feed

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._feed.close()
        await super().shutdown(sockets)


class _Connection(H11Protocol):
    """Connection that is closed when its client is slow, or is one too many."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._request_end: asyncio.TimerHandle | None = None
        self._write_end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_end = self.loop.call_later(TAKEN_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_end is not None:
            self._write_end.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, with the headers of every answer."""
        body = b'{"error":"no valid HTTP request"}'
        headers = (("content-type", "application/json"), ("connection", "close"), ("content-length", str(len(body))))
        for event in (
            h11.Response(status_code=400, headers=encoded((*headers, *HEADERS, UNKEPT)), reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _await_request(self) -> None:
        """Give a request that is not complete its time; what it has sent already gives it no more."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end_wait()
        elif self._request_end is None:
            self._request_end = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _end_wait(self) -> None:
        if self._request_end is not None:
            self._request_end.cancel()
            self._request_end = None
