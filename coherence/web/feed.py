"""The live feed: one thread notices what is new in the store, and every open page is told."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from coherence.core.errors import CoherenceError
from coherence.core.readings import one_line
from coherence.integrations.http_requests import RefusedError
from coherence.store.faces import changed_sessions
from coherence.web.source import StoreSource, Trace

LOG = logging.getLogger("coherence")

INTERVAL_S = 0.1
"""Seconds between two looks at the store."""

MAX_PAGES = 32
"""Pages that are told at a time."""

MAX_NAMED = 500
"""Sessions that one message names; where there are more, it names none."""

HEARTBEAT_S = 15.0
"""Seconds of silence after which a comment shows that the connection is alive."""

HEARTBEAT = b": alive\n\n"
RETRY = b"retry: 1000\n\n"
"""Has a browser connect again a second after the connection broke."""


class News(NamedTuple):
    """News of the store."""

    newest: int
    """Position of the newest event; it falls when the store was replaced by another one."""
    sessions: tuple[tuple[str, str], ...] = ()
    """(agent, session) of the new events; empty = anything may be new: many sessions, a label, a lesson, a purge."""


class Trouble(NamedTuple):
    """Reason why the store cannot be read now."""

    error: str


def message(event: str, data: object) -> bytes:
    """Return a server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data))


class Page:
    """One open page: what it has not been told yet, however much that is, in a bounded space."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self._news: News | None = None
        self._sessions: dict[tuple[str, str], None] = {}
        self._trouble: Trouble | None = None
        self._ended = False

    def tell(self, what: News | Trouble | None) -> None:
        """Add to what is to be told; ``None`` = the feed ends. Called in the event loop."""
        if what is None:
            self._ended = True
        elif isinstance(what, Trouble):
            self._trouble = what
        else:
            unsaid = not what.sessions or (self._news is not None and not self._sessions)
            self._sessions.update(dict.fromkeys(what.sessions))
            if unsaid or len(self._sessions) > MAX_NAMED:
                self._sessions.clear()
            self._news, self._trouble = what, None
        self._woken.set()

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield messages as there is something to tell, until the feed ends."""
        yield RETRY
        while not self._ended:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._woken.wait()
            except TimeoutError:
                yield HEARTBEAT
                continue
            self._woken.clear()
            news, trouble, sessions = self._news, self._trouble, tuple(self._sessions)
            self._news, self._trouble = None, None
            self._sessions.clear()
            if news is not None:
                yield message("newest", {"newest": news.newest, "sessions": sessions})
            if trouble is not None:
                yield message("trouble", {"error": trouble.error})


class LiveFeed:
    """Tell open pages what is new, by one look at the store for all of them; without a page nothing is looked at.

    Parameters
    ----------
    source : StoreSource
        The store.
    interval_s : float
        Seconds between two looks.
    """

    def __init__(self, source: StoreSource, interval_s: float = INTERVAL_S) -> None:
        self._source, self._interval_s = source, interval_s
        self._pages: set[Page] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._needed = threading.Event()
        self._closed = threading.Event()
        self._newest = 0
        self._trace: Trace | None = None
        self._trouble = ""

    def join(self) -> Page:
        """Return a new page that is told from now on; its first message says where the store stands.

        Called in the event loop.

        Raises
        ------
        RefusedError
            There are :data:`MAX_PAGES` already, or the server ends.
        """
        if self._closed.is_set():
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "the server ends")
        if len(self._pages) >= MAX_PAGES:
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_PAGES} pages are live already; close one of them")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._watch, name="coherence-serve-live", daemon=True).start()
        page = Page()
        if not self._pages:  # what happened while nobody looked is not told in parts
            self._trace, self._trouble = None, ""
        elif self._trouble:
            page.tell(Trouble(self._trouble))
        elif self._trace is not None:  # else the first look, which all pages are told of, is still to come
            page.tell(News(self._newest))
        self._pages.add(page)
        self._needed.set()
        return page

    def leave(self, page: Page) -> None:
        """Tell a page no more. Called in the event loop."""
        self._pages.discard(page)
        if not self._pages:
            self._needed.clear()

    def close(self) -> None:
        """End the messages of all pages. Called in the event loop."""
        self._closed.set()
        self._needed.set()
        for page in self._pages:
            page.tell(None)

    def _watch(self) -> None:
        while not self._closed.wait(self._interval_s):
            self._needed.wait()
            if not self._closed.is_set():
                self._look()

    def _look(self) -> None:
        """Look at the store once, and have the pages told what is new."""
        assert self._loop is not None
        try:
            found: News | Trouble | None = self._changed()
        except CoherenceError as error:
            found = Trouble(one_line(str(error).replace(str(self._source.path), self._source.name)))
        except Exception:
            LOG.exception("coherence: the store could not be looked at")
            found = Trouble("the store could not be looked at; the log of the server says more")
        if isinstance(found, Trouble):
            self._trace = None
            if found.error == self._trouble:
                return
        self._trouble = found.error if isinstance(found, Trouble) else ""
        if found is not None:
            try:
                self._loop.call_soon_threadsafe(self._tell, found)
            except RuntimeError:  # the loop has ended meanwhile
                self._closed.set()

    def _changed(self) -> News | None:
        """Return what is new since the last look, ``None`` if nothing is."""
        before, trace = self._trace, self._source.trace()
        current = self._source.current()
        newest = current.views.newest()
        since, self._newest, self._trace = self._newest, newest, trace
        if before is None or before.file != trace.file or newest < since:
            return News(newest)
        if newest == since:
            return None if trace == before else News(newest)
        names = changed_sessions(current.store, since, newest, MAX_NAMED + 1)
        return News(newest, names if len(names) <= MAX_NAMED else ())

    def _tell(self, what: News | Trouble) -> None:
        for page in self._pages:
            page.tell(what)
