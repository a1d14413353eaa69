"""Telling people what a guard does: in the log, or by a webhook.

A notifier takes any event: a mapping or a struct, usually with ``agent``, ``kind`` and ``text`` or ``why``. What JSON
cannot say is tagged, and secrets are replaced, before anything leaves the process.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import random
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from coherence.core.redact import redact_value
from coherence.core.validation import check_count, clean
from coherence.guard.error_counts import LOG, is_told
from coherence.guard.http_post import Poster
from coherence.guard.safe_json import tagged

WARNINGS = frozenset({"ending", "not_applied", "restore_failed", "decayed"})
"""Kinds of events that are logged as warnings; all others are for information."""

FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 30.0
"""Pauses between two attempts begin at the first and double up to the second, before jitter."""

EXIT_S = 3.0
"""How long the end of the interpreter waits for what all webhooks of the process still have to send."""

MAX_LINE = 2_000
"""Characters of a text in the log."""

_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


class LogNotifier:
    """Writes one line an event to the logger ``coherence.guard``; handlers and levels are the application's.

    Examples
    --------
    >>> LogNotifier().notify({"agent": "support", "kind": "confirmed", "why": "no worse in 60 calls"})
    """

    def notify(self, event: object) -> None:
        """Log an event: a warning if its kind is one of :data:`WARNINGS`."""
        if not LOG.isEnabledFor(logging.WARNING):
            return
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
    return _CONTROL.sub(" ", clean(text, MAX_LINE))


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
    408, 425, 429 and 5xx are tried again, after a pause or what ``Retry-After`` asks for; redirects are not followed,
    and proxies of the environment are not used. An event may arrive twice, if an answer is lost: all its attempts have
    one ``Idempotency-Key``. Failures are counted and logged, the first of a row, never raised. A forked child starts
    with an empty queue: what waits is sent by the parent. At the end of the interpreter what waits is sent for up to
    :data:`EXIT_S` seconds.

    Of a :class:`~coherence.guard.collaborators.Notice` the body is, as a JSON schema::

        {"type": "object", "required": ["agent", "kind", "why", "patch"], "properties": {
            "agent": {"type": "string"},
            "kind": {"type": "string", "description": "accepted, serving, ending, restored, confirmed, decayed, ..."},
            "why": {"type": "string"},
            "patch": {"type": ["object", "null"]}}}

    Parameters
    ----------
    url : str
        ``http://`` or ``https://``, without user and password. Its path is often a secret, so it is never logged.
    timeout_s : float
        How long an attempt may take in all, in seconds, above 0.
    retries : int
        Attempts after the first, 0 to 20.
    most_waiting : int
        Events that wait at most, 1 or more; what comes then is dropped and counted. An event takes up to 500 kB.
    headers : mapping of str to str, optional
        Sent with each event, for instance ``Authorization``. They are never shown or logged.
    body : callable, optional
        Takes an event and returns what is sent of it as JSON, on the thread that calls :meth:`notify`. Default: all of
        it. A receiver like Slack's takes ``lambda notice: {"text": f"{notice.agent}: {notice.kind} {notice.why}"}``.

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
        if not isinstance(timeout_s, int | float) or isinstance(timeout_s, bool):
            raise TypeError(f"timeout_s must be a number of seconds, not {type(timeout_s).__name__}")
        if not 0 < timeout_s <= threading.TIMEOUT_MAX:
            raise ValueError(f"timeout_s must be above 0 and finite, not {timeout_s!r}")
        self.timeout_s = timeout_s
        self.retries = check_count("retries", retries, most=20)
        self.most_waiting = check_count("most_waiting", most_waiting, least=1, most=1_000_000)
        if body is not None and not callable(body):
            raise TypeError(f"body must be callable, not {type(body).__name__}")
        self._body = body
        self._poster = Poster(url, {} if headers is None else headers, float(timeout_s))
        self._closed = False
        self._begin()
        _webhooks.add(self)

    def __repr__(self) -> str:
        return f"WebhookNotifier({self._poster.host})"

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._cut_short = threading.Event()
        self._waiting: deque[tuple[str, Any]] = deque()
        self._keys = (f"{os.urandom(8).hex()}-{number}" for number in itertools.count(1))
        self._working = False
        self._sent = self._failed = self._dropped = 0
        self._failing = False

    def notify(self, event: object) -> None:
        """Queue an event; returns at once, and raises nothing."""
        try:
            record = tagged(event if self._body is None else self._body(event))
        except Exception as error:  # a stranger's
            with self._changed:
                self._failed += 1
            _warn("%r: body failed: %s", self, type(error).__name__)
            return
        with self._changed:
            full = self._closed or len(self._waiting) >= self.most_waiting
            if not full:
                self._waiting.append((next(self._keys), record))
                full = not (self._working or self._start())
                if full:
                    self._waiting.pop()
            self._dropped += full
            dropped = self._dropped
        if full and is_told(dropped):
            _warn("%r: events are dropped (too many wait, or it is closed), %d so far", self, dropped)

    def counts(self) -> WebhookCounts:
        """Return what became of the events so far."""
        with self._changed:
            return WebhookCounts(self._sent, self._failed, self._dropped, len(self._waiting))

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait up to ``timeout_s`` seconds until nothing waits any more; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._working, max(timeout_s, 0.0))

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
                key, record = self._waiting[0]
            why = self._deliver(key, record)
            with self._changed:
                self._waiting.popleft()
                self._sent += not why
                self._failed += bool(why)
                first, self._failing = bool(why) and not self._failing, bool(why)
            if first:
                _warn("%r: an event could not be sent: %s", self, why)

    def _deliver(self, key: str, record: Any) -> str:
        """Return why a record could not be sent, or an empty text."""
        try:
            body = msgspec.json.encode(redact_value(record))
        except Exception as error:  # the thread must go on, whatever it was given
            return type(error).__name__
        answer = self._poster.post(body, key)
        for retry in range(self.retries):
            pause = max(pause_s(retry, key), answer.after_s)
            if not answer.again or self._cut_short.wait(pause):
                break
            answer = self._poster.post(body, key)
        return answer.why


def _warn(message: str, *parts: object) -> None:
    with suppress(Exception):  # a stranger's handler or filter
        LOG.warning(message, *parts)


def pause_s(retry: int, salt: str) -> float:
    """Return the pause before a retry in seconds: exponential, with half of it jitter.

    ``p / 2 + u * p / 2`` with ``p = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2 ** retry)``, u in [0, 1) by the salt.

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
    half = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(retry, 32)) / 2
    return half + half * random.Random(f"{salt} {retry}").random()  # noqa: S311  # spreads load, hides nothing


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
