"""Telling people what a guard does: in the log, or by a webhook.

A notifier takes any event: a mapping or a struct, usually with ``agent``, ``kind`` and ``text`` or ``why``. What JSON
cannot say is tagged, and secrets are replaced, before anything leaves the process.
"""

from __future__ import annotations

import atexit
import http.client
import logging
import os
import random
import re
import threading
import time
import weakref
from collections import deque
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from coherence.guard.tagged import tagged
from coherence.plain import check_count, clean
from coherence.redact import redact_value

LOG = logging.getLogger("coherence.guard")

WARNINGS = frozenset({"ending", "not_applied", "restore_failed", "decayed"})
"""Kinds of events that are logged as warnings; all others are for information."""

FIRST_PAUSE_S = 0.5
MOST_PAUSE_S = 30.0
"""Pauses between two attempts begin at the first and double up to the second, before jitter."""

EXIT_S = 3.0
"""How long the end of the interpreter waits for what all webhooks of the process still have to send."""

LONGEST_LINE = 2_000
"""Characters of a text in the log."""

_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_AGAIN = frozenset({408, 425, 429})


class LogNotifier:
    """Writes one line an event to the logger ``coherence.guard``; handlers and levels are the application's.

    Examples
    --------
    >>> LogNotifier().notify({"agent": "support", "kind": "confirmed", "why": "no worse in 60 calls"})
    """

    def notify(self, event: object) -> None:
        """Log an event: a warning if its kind is one of :data:`WARNINGS`."""
        record = redact_value(tagged(event))
        fields = dict(record) if isinstance(record, dict) else {"text": record}
        kind = fields.pop("kind", "event")
        known = [fields.pop(name, None) for name in ("agent", "text", "why")]
        told = [_line(part) for part in (known[0], kind, *known[1:]) if part is not None]
        if rest := {name: value for name, value in fields.items() if value is not None}:
            told.append(_line(msgspec.json.encode(rest).decode()))
        warns = isinstance(kind, str) and kind in WARNINGS
        LOG.log(logging.WARNING if warns else logging.INFO, "%s", ": ".join(told))


def _line(part: object) -> str:
    """Return a part of a log line: no line break, and nothing that changes how a terminal shows the rest."""
    text = part if isinstance(part, str) else msgspec.json.encode(part).decode()
    return _CONTROL.sub(" ", clean(text, LONGEST_LINE))


class WebhookCounts(msgspec.Struct, frozen=True):
    """What became of the events given to a webhook by this process."""

    sent: int
    """Answered with a status from 200 to 299."""
    failed: int
    """Given up: refused, or all attempts failed."""
    dropped: int
    """Not tried, because too many waited or the webhook was closed."""
    waiting: int
    """Waiting or being sent."""


class WebhookNotifier:
    """Sends each event as JSON by HTTP POST, in order, from a thread of its own.

    :meth:`notify` only queues. The thread lives as long as events wait. Connection failures, timeouts and the statuses
    408, 425, 429 and 5xx are tried again; redirects are not followed. An event may arrive twice, if an answer is lost.
    Failures are counted and logged, the first of a row, never raised. A forked child starts with an empty queue: what
    waits is sent by the parent. At the end of the interpreter what waits is sent for up to :data:`EXIT_S` seconds.

    Parameters
    ----------
    url : str
        ``http://`` or ``https://``, without user and password. Its path is often a secret, so it is never logged.
    timeout_s : float
        How long connecting, and each wait for the answer, may take; in seconds, above 0.
    retries : int
        Attempts after the first, 0 to 20.
    most_waiting : int
        Events that wait at most, 1 or more; what comes then is dropped and counted. An event takes up to 500 kB.

    Raises
    ------
    TypeError, ValueError
        If a parameter is none of these.

    Examples
    --------
    >>> webhook = WebhookNotifier("https://example.org/hook", retries=2)
    >>> webhook.counts()
    WebhookCounts(sent=0, failed=0, dropped=0, waiting=0)
    >>> webhook.close()
    True
    """

    def __init__(self, url: str, *, timeout_s: float = 5.0, retries: int = 3, most_waiting: int = 100) -> None:
        self._url = _checked_url(url)
        if not isinstance(timeout_s, int | float) or isinstance(timeout_s, bool):
            raise TypeError(f"timeout_s must be a number of seconds, not {type(timeout_s).__name__}")
        if not 0 < timeout_s <= threading.TIMEOUT_MAX:
            raise ValueError(f"timeout_s must be above 0 and finite, not {timeout_s!r}")
        self.timeout_s = timeout_s
        self.retries = check_count("retries", retries, most=20)
        self.most_waiting = check_count("most_waiting", most_waiting, least=1, most=1_000_000)
        self._closed = False
        self._begin()
        _webhooks.add(self)

    def __repr__(self) -> str:
        return f"WebhookNotifier({self._url.scheme}://{self._url.hostname})"

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._cut_short = threading.Event()
        self._waiting: deque[Any] = deque()
        self._working = False
        self._sent = self._failed = self._dropped = 0
        self._failing = False

    def notify(self, event: object) -> None:
        """Queue an event; returns at once, and raises nothing."""
        record = tagged(event)
        with self._changed:
            full = self._closed or len(self._waiting) >= self.most_waiting
            if not full:
                self._waiting.append(record)
                full = not (self._working or self._start())
                if full:
                    self._waiting.pop()
            self._dropped += full
            first = full and self._dropped == 1
        if first:
            LOG.warning("%r: an event is dropped (too many wait, or it is closed); they are counted from now on", self)

    def counts(self) -> WebhookCounts:
        """Return what became of the events so far."""
        with self._changed:
            return WebhookCounts(self._sent, self._failed, self._dropped, len(self._waiting))

    def close(self, timeout_s: float = 5.0) -> bool:
        """Take no more events, and send what waits; what is left after ``timeout_s`` seconds is dropped.

        Returns whether nothing was left. An attempt under way then ends by itself, without another.
        """
        with self._changed:
            self._closed = True
            done = self._changed.wait_for(lambda: not self._working, max(timeout_s, 0.0))
            if not done:
                self._cut_short.set()
                while len(self._waiting) > 1:  # the first is with the thread, which counts it
                    self._waiting.pop()
                    self._dropped += 1
        return done

    def _start(self) -> bool:
        thread = threading.Thread(target=self._work, name="coherence-webhook", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends, or there are too many threads
            return False
        self._working = True
        return True

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._working = False
                    self._changed.notify_all()
                    return
                record = self._waiting[0]
            why = self._deliver(record)
            with self._changed:
                self._waiting.popleft()
                self._sent += not why
                self._failed += bool(why)
                first, self._failing = bool(why) and not self._failing, bool(why)
            if first:
                LOG.warning("%r: an event could not be sent: %s", self, why)

    def _deliver(self, record: Any) -> str:
        """Return why a record could not be sent, or an empty text."""
        try:
            body = msgspec.json.encode(redact_value(record))
        except Exception as error:  # the thread must go on, whatever it was given
            return type(error).__name__
        why, again = self._post(body)
        for retry in range(self.retries):
            if not again or self._cut_short.wait(pause_s(retry, f"{os.getpid()} {self._sent + self._failed}")):
                break
            why, again = self._post(body)
        return why

    def _post(self, body: bytes) -> tuple[str, bool]:
        """Return why an attempt failed, or an empty text; and whether to try again."""
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=self.timeout_s)
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json", "User-Agent": "coherence"})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__, True
        except Exception as error:  # a thread that died would take all later events with it
            return type(error).__name__, False
        finally:
            connection.close()
        return "" if 200 <= status < 300 else f"HTTP status {status}", status in _AGAIN or status >= 500


def pause_s(retry: int, salt: str) -> float:
    """Return the pause before a retry in seconds: exponential, with half of it jitter.

    ``p / 2 + u * p / 2`` with ``p = min(MOST_PAUSE_S, FIRST_PAUSE_S * 2 ** retry)``, u in [0, 1) by the salt.

    Parameters
    ----------
    retry : int
        0 for the first one.
    salt : str
        Spreads those that would retry at the same moment; the same salt gives the same pause.

    Examples
    --------
    >>> 0.25 <= pause_s(0, "a") < 0.5, 15 <= pause_s(20, "a") < 30, pause_s(1, "a") == pause_s(1, "a")
    (True, True, True)
    """
    half = min(MOST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(retry, 32)) / 2
    return half + half * random.Random(f"{salt} {retry}").random()  # noqa: S311  # spreads load, hides nothing


def _checked_url(url: str) -> SplitResult:
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    if not url.isascii() or _CONTROL.search(url):
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


_webhooks: weakref.WeakSet[WebhookNotifier] = weakref.WeakSet()


def _after_fork() -> None:
    for webhook in list(_webhooks):
        webhook._begin()  # the parent's thread may have held the lock


def _at_exit() -> None:
    deadline = time.monotonic() + EXIT_S
    for webhook in list(_webhooks):
        webhook.close(deadline - time.monotonic())


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
