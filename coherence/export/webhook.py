"""Webhook: sends any record as JSON by HTTP POST, from a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import queue
import secrets
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import msgspec

from coherence.core.callback import Callback
from coherence.core.calls import PluginCall
from coherence.core.errors import MissingExtraError
from coherence.core.redact import redact_value
from coherence.core.strangers import WAIT_S
from coherence.core.validation import check_count, check_number, shown, to_json

LOG = logging.getLogger("coherence.export")
INSTALL = '  pip install "coherence-sensor[webhook]"'

FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 30.0
"""Pauses are drawn at random from 0 to a limit, which doubles from the first up to the second."""

MAX_RETRY_AFTER_S = 300.0
"""A server that asks for a longer pause gets this one."""

MAX_BYTES = 1_000_000
"""A larger record is not sent; it counts as failed."""

LOG_EVERY = 100
"""Of failures and drops the first is logged, and each one after so many more."""

EXIT_S = 3.0
"""Time that the end of the interpreter grants all webhooks of the process for what still waits."""

_TRY_AGAIN = frozenset({408, 425, 429})


class WebhookCounts(msgspec.Struct, frozen=True):
    """Records given to a webhook by this process, by what became of them."""

    sent: int
    """Answered with a status from 200 to 299."""
    failed: int
    """Given up: too large, refused, or all attempts failed."""
    dropped: int
    """Not tried, because too many waited or the webhook was closed."""
    waiting: int
    """Waiting or being sent."""


class _Answer(NamedTuple):
    why: str
    """The reason of a failure, or empty."""
    again: bool = False
    after_s: float = 0.0


class _Loop(asyncio.SelectorEventLoop):
    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        """Look a name up on this thread: the executor that does it else is gone when the interpreter ends."""
        return socket.getaddrinfo(host, port, **options)


class Webhook:
    """Sink that posts each record as JSON, in order. Needs the extra ``webhook``.

    :meth:`emit` only queues, and never raises. Lost connections, timeouts and the statuses 408, 425, 429 and 5xx are
    tried again, after a pause or what ``Retry-After`` asks for. Redirects are not followed, proxies of the environment
    are not used, certificates are checked. A record may arrive twice, if an answer is lost: all its attempts have one
    ``Idempotency-Key``. Secrets are replaced before anything is sent. A forked child starts with an empty queue; the
    end of the interpreter waits up to :data:`EXIT_S` seconds for what is queued.

    Parameters
    ----------
    url : str
        ``http://`` or ``https://``, without user and password. Its path is often a secret, so it is never logged.
    timeout_s : float
        Longest duration of an attempt as a whole, in seconds, 0.01 to 3,600; the look-up of the host's name comes on
        top.
    retries : int
        Attempts after the first, 0 to 20.
    most_waiting : int
        Records that wait at most, 1 to 1,000,000; what comes then is dropped and counted.
    headers : mapping of str to str, optional
        Sent with each record, for instance ``Authorization``. They are never shown or logged.
    body : callable, optional
        Takes a record and returns what is sent of it; :meth:`emit` waits up to 2 s for it. Default: all of it. A
        receiver like Slack's takes ``lambda notice: {"text": f"{notice.agent}: {notice.kind} {notice.why}"}``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is none of these.
    MissingExtraError
        If httpx or tenacity is not installed.

    Examples
    --------
    >>> webhook = Webhook("https://example.org/hook", retries=2)
    >>> webhook
    Webhook(https://example.org)
    >>> webhook.counts()
    WebhookCounts(sent=0, failed=0, dropped=0, waiting=0)
    >>> webhook.close()
    True
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 5.0,
        retries: int = 3,
        most_waiting: int = 100,
        headers: Mapping[str, str] | None = None,
        body: Callable[[Any], object] | None = None,
    ) -> None:
        try:
            import httpx
            import tenacity
        except ImportError as error:
            raise MissingExtraError("httpx or tenacity", INSTALL) from error
        self.timeout_s = check_number("timeout_s", timeout_s, least=0.01, most=3600)
        self.retries = check_count("retries", retries, most=20)
        self.most_waiting = check_count("most_waiting", most_waiting, least=1, most=1_000_000)
        if body is not None and not callable(body):
            raise TypeError(f"body must be callable, not {type(body).__name__}")
        self._httpx: Any = httpx
        self._tenacity: Any = tenacity
        self._url = _checked_url(httpx, url)
        self._headers = {"Content-Type": "application/json", "User-Agent": "coherence", **_checked_headers(headers)}
        self._certificates = ssl.create_default_context()
        self._body = body
        self._bodies: Callback[bytes] = Callback("body", self._unread)
        self._closed = False
        self._begin()
        _webhooks.add(self)

    def __repr__(self) -> str:
        return f"Webhook({self._url.scheme}://{self._url.host})"

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._queue: queue.Queue[bytes] = queue.Queue(self.most_waiting)
        self._cut_short = threading.Event()
        self._working = False
        self._counts = {"sent": 0, "failed": 0, "dropped": 0}

    def emit(self, record: object) -> None:
        """Queue a record; returns at once, and raises nothing."""
        try:
            data = (
                to_json("record", record) if self._body is None else self._bodies.ask(self._made(record), b"", WAIT_S)
            )
        except Exception as error:
            self._count("failed", f"a record could not be read: {type(error).__name__}")
            return
        if not data:
            return
        if len(data) > MAX_BYTES:
            self._count("failed", f"a record is larger than {MAX_BYTES:,} bytes")
            return
        try:
            # The lock under which the thread finds nothing left and ends: no record is queued in between.
            with self._lock:
                if self._closed:
                    raise queue.Full
                if not self._working:
                    threading.Thread(target=self._work, name="coherence-webhook", daemon=True).start()
                    # only once it has started: where it could not, the next record tries again
                    self._working = True
                self._queue.put_nowait(data)
        except (queue.Full, RuntimeError):  # a RuntimeError where no thread can be started
            self._count("dropped", "records are dropped: too many wait, or it is closed")

    def _made(self, record: object) -> Callable[[], bytes]:
        assert self._body is not None
        body = self._body
        return lambda: to_json("record", body(record))

    def _unread(self, call: PluginCall) -> None:
        assert call.failure is not None
        self._count("failed", f"a record could not be read: {call.failure.kind}")

    def counts(self) -> WebhookCounts:
        """Return what became of the records so far."""
        return WebhookCounts(**self._counts, waiting=self._queue.unfinished_tasks)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait up to ``timeout_s`` seconds until nothing waits any more; return whether that is so."""
        with self._queue.all_tasks_done:
            return self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, max(timeout_s, 0.0))

    def close(self, timeout_s: float = 5.0) -> bool:
        """Take no more records, and send what waits; what is left after ``timeout_s`` seconds is dropped.

        Returns whether nothing was left. An attempt under way then ends by itself, without another.
        """
        self._closed = True
        done = self.flush(timeout_s)
        self._cut_short.set()
        return done

    def _count(self, what: str, why: str) -> None:
        with self._lock:
            self._counts[what] += 1
            count = self._counts[what]
        # repeated in full it would flood the log of a host whose server is down
        if count % LOG_EVERY == 1:
            with suppress(Exception):  # a stranger's handler or filter
                LOG.warning("%r: %s (%d so far)", self, why, count)

    def _work(self) -> None:
        """Send what waits, and end."""
        while True:
            with self._lock:
                try:
                    data = self._queue.get_nowait()
                except queue.Empty:
                    self._working = False
                    return
            if self._cut_short.is_set():
                self._count("dropped", "records are dropped: it was closed before they were sent")
            elif why := self._deliver(data):
                self._count("failed", f"a record could not be sent: {why}")
            else:
                with self._lock:
                    self._counts["sent"] += 1
            # last: who waits in flush() then reads the counts
            self._queue.task_done()

    def _deliver(self, data: bytes) -> str:
        """Return why a record could not be sent, or an empty text."""
        tenacity = self._tenacity
        backoff = tenacity.wait_random_exponential(FIRST_PAUSE_S, MAX_PAUSE_S)
        attempts = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.retries + 1),
            wait=lambda state: max(backoff(state), state.outcome.result().after_s),
            retry=tenacity.retry_if_result(lambda answer: answer.again),
            sleep=self._cut_short.wait,  # which a close cuts short
            retry_error_callback=lambda state: state.outcome.result(),
        )
        try:
            # here and not in emit(), which costs the host as little as possible
            body = msgspec.json.encode(redact_value(msgspec.json.decode(data)))
            answer: _Answer = attempts(self._attempt, body, secrets.token_hex(12))
        except Exception as error:  # the thread must go on to the next record
            return type(error).__name__
        return answer.why

    def _attempt(self, body: bytes, key: str) -> _Answer:
        if self._cut_short.is_set():
            return _Answer("it was closed before it was sent")
        try:
            with asyncio.Runner(loop_factory=_Loop) as runner:
                return runner.run(self._post(body, key))
        except TimeoutError:
            return _Answer("no answer in time", again=True)
        except self._httpx.TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                return _Answer("the server's certificate is not trusted")
            return _Answer(type(error).__name__, again=True)

    async def _post(self, body: bytes, key: str) -> _Answer:
        """Post once; only the status and the pause asked for are read of the answer."""
        client = self._httpx.AsyncClient(verify=self._certificates, trust_env=False, timeout=None)
        # One limit for all together: a timeout of httpx is one for each read, which a server may stretch for ever.
        async with asyncio.timeout(self.timeout_s), client:
            headers = {**self._headers, "Idempotency-Key": key}
            async with client.stream("POST", self._url, content=body, headers=headers) as response:
                if response.is_success:
                    return _Answer("")
                again = response.status_code in _TRY_AGAIN or response.is_server_error
                after_s = retry_after_s(response.headers.get("Retry-After", ""), time.time()) if again else 0.0
                return _Answer(f"HTTP status {response.status_code}", again, after_s)


def retry_after_s(value: str, now_s: float) -> float:
    """Return the pause that a ``Retry-After`` header asks for, in [0, MAX_RETRY_AFTER_S] seconds; 0 if it is none.

    Examples
    --------
    >>> retry_after_s("120", 0.0), retry_after_s("Thu, 01 Jan 1970 00:01:30 GMT", 60.0), retry_after_s("soon", 0.0)
    (120.0, 30.0, 0.0)
    """
    try:
        seconds = float(value) if value.isdecimal() else parsedate_to_datetime(value).timestamp() - now_s
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def _checked_url(httpx: Any, url: str) -> Any:
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError("url must be http://host/path or https://host/path") from error
    if found.scheme not in ("http", "https") or not found.host:
        raise ValueError("url must be http://host/path or https://host/path")
    if found.userinfo:
        raise ValueError("url must not contain a user or a password")
    return found


def _checked_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return headers that can be sent; messages name a header and never its value."""
    if not isinstance(headers, Mapping | None):
        raise TypeError(f"headers must be a mapping, not {type(headers).__name__}")
    for name, value in (headers or {}).items():
        if not all(isinstance(part, str) and part.isascii() and part.isprintable() for part in (name, value)):
            raise ValueError(f"headers: {shown(name)} and its value must be printable ASCII")
    return dict(headers or {})


_webhooks: weakref.WeakSet[Webhook] = weakref.WeakSet()


def _after_fork() -> None:
    for webhook in list(_webhooks):
        webhook._begin()  # the parent's thread is not here, and may have held the lock


def _at_exit() -> None:
    deadline = time.monotonic() + EXIT_S
    for webhook in list(_webhooks):
        webhook.close(deadline - time.monotonic())


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
