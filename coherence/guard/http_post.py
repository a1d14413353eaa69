"""One attempt to post JSON to a URL, within a time, and what its answer means."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from coherence.core.validation import shown

MAX_RETRY_S = 300.0
"""A server that asks for a longer pause gets this one."""

_AGAIN = frozenset({408, 425, 429})
_NOT_URL = re.compile(r"[\x00-\x20\x7f]")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = frozenset({"connection", "content-length", "host", "idempotency-key", "transfer-encoding"})


class HttpAnswer(NamedTuple):
    """What came of an attempt."""

    why: str
    """Why it failed, or empty."""
    again: bool
    """Whether another attempt may succeed."""
    after_s: float = 0.0
    """What the server asks to wait before, seconds."""


class Poster:
    """Posts to one URL. Redirects are not followed, and proxies of the environment are not used.

    Parameters
    ----------
    url : str
        ``http://`` or ``https://``, without user and password.
    headers : mapping of str to str
        Sent with each attempt. Neither they nor the URL's path are ever shown.
    timeout_s : float
        How long an attempt may take in all, from the connection to the status, in seconds; the look-up of the host's
        name comes on top.

    Examples
    --------
    >>> Poster("https://example.org/hook", {"Authorization": "Bearer x"}, 5.0)
    Poster(https://example.org)
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        self._url = _checked_url(url)
        self._headers = {"Content-Type": "application/json", "User-Agent": "coherence", **_checked_headers(headers)}
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"Poster({self.host})"

    @property
    def host(self) -> str:
        """Scheme and host, for messages."""
        return f"{self._url.scheme}://{self._url.hostname}"

    def post(self, body: bytes, key: str) -> HttpAnswer:
        """Post a body; ``key`` is sent as ``Idempotency-Key``."""
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=self._timeout_s)
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        late = threading.Event()
        timer = threading.Timer(self._timeout_s, _cut, (connection, late))  # a timeout of a socket is one for each read
        timer.daemon = True
        try:
            with suppress(RuntimeError):  # the interpreter ends: no thread can be started
                timer.start()
            connection.request("POST", path, body, {**self._headers, "Idempotency-Key": key})
            response = connection.getresponse()
            return _meaning(response.status, response.getheader("Retry-After"))
        except ssl.SSLCertVerificationError as error:
            return HttpAnswer(f"the server's certificate is not trusted: {error.verify_message}", False)
        except (OSError, http.client.HTTPException) as error:
            in_time = not late.is_set() and not isinstance(error, TimeoutError)
            return HttpAnswer(type(error).__name__ if in_time else "no answer in time", True)
        except Exception as error:  # a thread that died would take all later events with it
            return HttpAnswer(type(error).__name__, False)
        finally:
            timer.cancel()
            connection.close()


def _cut(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    with suppress(OSError, AttributeError):  # it may not be connected yet, or not any more
        connection.sock.shutdown(socket.SHUT_RDWR)


def _meaning(status: int, retry_after: str | None) -> HttpAnswer:
    if 200 <= status < 300:
        return HttpAnswer("", False)
    again = status in _AGAIN or status >= 500
    return HttpAnswer(f"HTTP status {status}", again, retry_s(retry_after, time.time()) if again else 0.0)


def retry_s(retry_after: str | None, now_s: float) -> float:
    """Return the seconds that a ``Retry-After`` header (RFC 9110, 10.2.3) asks for, at most :data:`MAX_RETRY_S`.

    Parameters
    ----------
    retry_after : str or None
        Seconds or a date of HTTP; anything else asks for nothing.
    now_s : float
        Unix time, seconds.

    Examples
    --------
    >>> retry_s("7", 0.0), retry_s("Thu, 01 Jan 1970 00:01:00 GMT", 20.0), retry_s("soon", 0.0), retry_s("9" * 30, 0.0)
    (7.0, 40.0, 0.0, 300.0)
    """
    text = (retry_after or "").strip()[:100]
    try:
        seconds = float(text) if text.isascii() and text.isdigit() else parsedate_to_datetime(text).timestamp() - now_s
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), MAX_RETRY_S)


def _checked_url(url: str) -> SplitResult:
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    if not url.isascii() or _NOT_URL.search(url):
        raise ValueError("url must be ASCII without white space; encode other characters with %")
    try:
        parts = urlsplit(url)
        complete = bool(parts.hostname) and parts.port != 0  # a port that is no number raises
    except ValueError:
        complete = False
    if not complete or parts.scheme not in ("http", "https"):
        raise ValueError("url must be http://host/path or https://host/path")
    if parts.username is not None or parts.password is not None:
        raise ValueError("url must not contain a user or a password")
    return parts


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers that can be sent; messages name a header and never its value."""
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers must be a mapping, not {type(headers).__name__}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER.fullmatch(name) or name.lower() in _OURS:
            raise ValueError(f"headers: the name {shown(name)} is not valid, or not to be set")
        if not isinstance(value, str):
            raise TypeError(f"headers: {name} must be a str, not {type(value).__name__}")
        if not value.isascii() or not value.isprintable():
            raise ValueError(f"headers: {name} must be printable ASCII")
    return dict(headers)
