"""The gate before the application: what comes from strangers ends here, and every answer gets its headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, TypeAlias

import msgspec

from coherence.integrations.http_requests import RefusedError
from coherence.web.access import Access, HostNames

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""Sources that a page of this server may load: its own files, and nothing that stands in it."""

HEADERS = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)
"""Headers of every answer."""

UNKEPT = ("cache-control", "no-store")
"""Header of every answer that says nothing else about caches."""

API = "/api/"
STATIC = "/static/"
MAX_COOKIES = 8_192
"""Bytes of cookies that are looked at."""


def encoded(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    """Return headers as ASGI has them."""
    return [(name.encode(), value.encode()) for name, value in headers]


class Gate:
    """Refuse what no page of this server sends, and give each answer the headers of :data:`HEADERS`.

    A request needs a ``Host`` of this server, on any path: a stranger's name that leads to this machine (DNS rebinding)
    is none. One that says where it comes from must come from this server; one that changes something must say so. The
    interface of data needs the cookie.

    Parameters
    ----------
    application : callable
        ASGI application behind the gate.
    access : Access
        Knows the cookie.
    names : HostNames
        Names of this server.
    """

    def __init__(self, application: Application, access: Access, names: HostNames) -> None:
        self._application, self._access, self._names = application, access, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                unkept = () if any(name == b"cache-control" for name, _ in given) else (UNKEPT,)
                message = {**message, "headers": [*given, *encoded((*HEADERS, *unkept))]}
            await send(message)

        try:
            self._check(scope)
        except RefusedError as error:
            await refuse(send_with_headers, error)
            return
        await self._application(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        """Raise if a request is a stranger's."""
        headers = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._names.has_host(hosts[0]):
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server has another name; open the printed address, or name this one with --host-name",
            )
        origins = [value for name, value in headers if name == b"origin"]
        if any(not self._names.has_origin(origin) for origin in origins):
            raise RefusedError(HTTPStatus.FORBIDDEN, "requests of other pages are not taken")
        if scope["method"] not in ("GET", "HEAD") and len(origins) != 1:
            raise RefusedError(HTTPStatus.FORBIDDEN, "a request that changes something needs its Origin")
        self._check_fetch(scope, dict(headers))
        if scope["path"].startswith(API):
            cookies = [value for name, value in headers if name == b"cookie"]
            if sum(map(len, cookies)) > MAX_COOKIES or not self._access.knows(cookies):
                raise RefusedError(
                    HTTPStatus.UNAUTHORIZED, "not logged in; open the address that `coherence serve` printed"
                )

    @staticmethod
    def _check_fetch(scope: Scope, headers: dict[bytes, str]) -> None:
        """Raise if a browser says that a page of another site asks, save for a link to a page, which shows nothing."""
        if headers.get(b"sec-fetch-site", "none") in ("same-origin", "none"):
            return
        is_link = headers.get(b"sec-fetch-mode") == "navigate" and headers.get(b"sec-fetch-dest") == "document"
        is_page = scope["method"] == "GET" and not scope["path"].startswith((API, STATIC))
        if not (is_link and is_page):
            raise RefusedError(HTTPStatus.FORBIDDEN, "requests of other sites are not taken")


async def refuse(send: Send, error: RefusedError) -> None:
    """Say why a request is not taken."""
    body = msgspec.json.encode({"error": str(error)})
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    await send({"type": "http.response.start", "status": int(error.status), "headers": encoded(headers)})
    await send({"type": "http.response.body", "body": body})
