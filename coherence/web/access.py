"""The right to ask: the token of the printed address, the cookie that it is changed for, and this server's names."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from hmac import compare_digest

TOKEN_BYTES = 32
"""Bytes of chance in a token and in a cookie: 256 bits."""

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Access:
    """Token and cookie of one server, made anew at each start.

    Parameters
    ----------
    port : int
        Port of the server. It is part of the cookie's name: browsers give a cookie to every port of a host.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._cookie = secrets.token_urlsafe(TOKEN_BYTES)
        self._name = f"coherence_{port}"

    def takes(self, token: str) -> bool:
        """Tell whether a token is the one of this server, in a time that says nothing of it."""
        return compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def set_cookie(self, *, secure: bool) -> str:
        """Return the header that gives a browser the cookie.

        Parameters
        ----------
        secure : bool
            ``True``: the browser is to send it over TLS only.
        """
        more = "; Secure" if secure else ""
        return f"{self._name}={self._cookie}; Path=/api; HttpOnly; SameSite=Strict{more}"

    def knows(self, cookies: Iterable[str]) -> bool:
        """Tell whether one of some ``Cookie`` headers holds the cookie.

        Another server of this machine may have set cookies of the same name, so all of them are looked at.
        """
        found = False
        for header in cookies:
            for pair in header.split(";"):
                name, _, value = pair.strip().partition("=")
                if name == self._name:
                    found |= compare_digest(value.encode("utf-8", "replace"), self._cookie.encode())
        return found


class HostNames:
    """Names under which a browser may reach this server; under any other one, a stranger's page leads to it.

    Parameters
    ----------
    port : int
        Port of the server.
    more : iterable of str
        Further names, each with its port where the browser's differs from the server's.

    Examples
    --------
    >>> names = HostNames(8000, ["dev.example:8443"])
    >>> names.has_host("localhost:8000"), names.has_host("evil.example:8000")
    (True, False)
    >>> names.has_origin("https://dev.example:8443"), names.has_origin("null")
    (True, False)
    """

    def __init__(self, port: int, more: Iterable[str] = ()) -> None:
        hosts = {f"{name}:{port}" for name in LOOPBACK_NAMES}
        for name in more:
            hosts |= {name.lower(), f"{name.lower()}:{port}"}
        self._hosts = frozenset(hosts)

    def has_host(self, host: str) -> bool:
        """Tell whether a ``Host`` header names this server."""
        return host.lower() in self._hosts

    def has_origin(self, origin: str) -> bool:
        """Tell whether an ``Origin`` header names a page of this server."""
        scheme, found, host = origin.partition("://")
        return bool(found) and scheme in ("http", "https") and self.has_host(host)
