"""The application: which address answers what."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from coherence.core.errors import CoherenceError, MissingExtraError
from coherence.core.readings import one_line
from coherence.integrations.http_requests import RefusedError
from coherence.store.errors import StoreError
from coherence.web.access import Access, HostNames
from coherence.web.api import READS, Read
from coherence.web.assets import SHELL, read_assets
from coherence.web.changes import CHANGES, Change
from coherence.web.feed import LiveFeed
from coherence.web.gate import Application, Gate
from coherence.web.queries import Login, Query, parse_body, parse_query
from coherence.web.source import StoreSource
from coherence.web.threads import ReadThreads

INSTALL = '  pip install "coherence-sensor[web]"'

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtraError("starlette", INSTALL) from error

LOG = logging.getLogger("coherence")

JSON = "application/json"
MAX_BODY = 65_536
"""Bytes of a request's body."""

BODY_S = 10.0
"""Seconds in which a body must arrive."""

GZIP_FROM = 1_024
"""Bytes of an answer from which on it is compressed, for whoever takes that."""

PAGES = ("/", "/session/{name:path}", "/compare", "/fleet", "/lessons", "/guard", "/experiments")
"""Addresses of the page; its script tells them apart."""

Q = TypeVar("Q", bound=Query)


class Site:
    """The application of one server.

    Parameters
    ----------
    source : StoreSource
        The store.
    access : Access
        Token and cookie.
    names : HostNames
        Names of the server.
    writes : bool
        ``True``: pages may label, unblock, and edit lessons.
    version : str
        Version of this package, for the page to show.

    Raises
    ------
    MissingExtraError
        If starlette is not installed.
    """

    def __init__(
        self, source: StoreSource, access: Access, names: HostNames, *, writes: bool = False, version: str = ""
    ) -> None:
        self.feed = LiveFeed(source)
        self._source, self._access, self._writes, self._version = source, access, writes, version
        self._assets = read_assets()
        self._threads = ReadThreads()
        self._changing = asyncio.Lock()
        self.application: Application = Gate(self._starlette(), access, names)

    def _starlette(self) -> Starlette:
        routes = [
            *(Route(path, self._shell) for path in PAGES),
            Route("/static/{name}", self._asset),
            Route("/login", self._login, methods=["POST"]),
            Route("/api/about", self._about),
            Route("/api/live", self._live),
            *(Route(f"/api/{name}", self._reader(read)) for name, read in READS.items()),
            *(Route(f"/api/{name}", self._changer(change), methods=["POST"]) for name, change in CHANGES.items()),
        ]
        app = Starlette(routes=routes, exception_handlers={HTTPException: _not_there, Exception: _failed})
        app.router.redirect_slashes = False
        return app

    async def _shell(self, request: Request) -> Response:
        return self._file(SHELL, request)

    async def _asset(self, request: Request) -> Response:
        return self._file(request.path_params["name"], request)

    def _file(self, name: str, request: Request) -> Response:
        asset = self._assets.get(name)
        if asset is None:
            return _error(HTTPStatus.NOT_FOUND, "no such file")
        headers = {"etag": asset.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == asset.tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(asset.content, media_type=asset.kind, headers=headers)

    async def _login(self, request: Request) -> Response:
        try:
            login = await _body(request, Login)
        except RefusedError as error:
            return _error(error.status, str(error))
        if not self._access.takes(login.token):
            return _error(HTTPStatus.UNAUTHORIZED, "not the token of this server; open the address that it printed")
        secure = request.headers.get("origin", "").startswith("https:")
        return Response(
            status_code=HTTPStatus.NO_CONTENT, headers={"set-cookie": self._access.set_cookie(secure=secure)}
        )

    async def _about(self, request: Request) -> Response:
        about = {"version": self._version, "store": self._source.name, "write": self._writes}
        return Response(msgspec.json.encode(about), media_type=JSON)

    async def _live(self, request: Request) -> Response:
        try:
            page = self.feed.join()
        except RefusedError as error:
            return _error(error.status, str(error))

        async def messages() -> AsyncIterator[bytes]:
            try:
                async for each in page.messages():
                    yield each
            finally:
                self.feed.leave(page)

        return StreamingResponse(messages(), media_type="text/event-stream")

    def _reader(self, read: Read) -> Callable[[Request], Any]:
        """Return the endpoint of a question."""

        async def answer(request: Request) -> Response:
            zips = "gzip" in request.headers.get("accept-encoding", "")

            def found() -> tuple[bytes, bool]:
                content = msgspec.json.encode(read.answer(self._source.current().views, query))
                if zips and len(content) >= GZIP_FROM:
                    return gzip.compress(content, compresslevel=1, mtime=0), True
                return content, False

            try:
                query = parse_query(request.scope["query_string"], read.query)
                content, zipped = await self._threads.run(found)
            except Exception as error:
                return self._refusal(error)
            headers = {"vary": "accept-encoding", **({"content-encoding": "gzip"} if zipped else {})}
            return Response(content, media_type=JSON, headers=headers)

        return answer

    def _changer(self, change: Change) -> Callable[[Request], Any]:
        """Return the endpoint of a change."""

        async def answer(request: Request) -> Response:
            if not self._writes:
                return _error(HTTPStatus.FORBIDDEN, "the store is shown read-only; start `coherence serve --write`")

            def done() -> bytes:
                return msgspec.json.encode(change.action(self._source.current().store, body))

            try:
                body = await _body(request, change.body)
                async with self._changing:
                    return Response(await self._threads.run(done), media_type=JSON)
            except Exception as error:
                return self._refusal(error)

        return answer

    def _refusal(self, error: Exception) -> Response:
        """Return the answer to a request that could not be answered."""
        if isinstance(error, RefusedError):
            return _error(error.status, str(error))
        if isinstance(error, LookupError) and not isinstance(error, KeyError | IndexError):
            return _error(HTTPStatus.NOT_FOUND, str(error))
        if isinstance(error, StoreError):
            said = str(error).replace(str(self._source.path), self._source.name)
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, said)
        if isinstance(error, CoherenceError | ValueError):
            return _error(HTTPStatus.BAD_REQUEST, str(error))
        LOG.error("coherence: a request could not be answered", exc_info=error)
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "it could not be answered; the log of the server says more")


async def _body(request: Request, kind: type[Q]) -> Q:
    """Return a request's body.

    Raises
    ------
    RefusedError
        It is no JSON, too large, too slow, or not what is expected.
    """
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != JSON:
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected {JSON}, not {one_line(sent) or 'nothing'}")
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MAX_BODY:
                    raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY:,} bytes")
    except TimeoutError as error:
        raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive") from error
    except ClientDisconnect as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body ended early") from error
    return parse_body(bytes(content), kind)


def _error(status: HTTPStatus, why: str) -> Response:
    return Response(msgspec.json.encode({"error": why}), status_code=status, media_type=JSON)


def _not_there(request: Request, error: Exception) -> Response:
    """Answer a request for an address or a method that is none."""
    status = HTTPStatus(error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND)
    return _error(status, "no such address" if status is HTTPStatus.NOT_FOUND else status.phrase.lower())


def _failed(request: Request, error: Exception) -> Response:
    return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "it could not be answered; the log of the server says more")
