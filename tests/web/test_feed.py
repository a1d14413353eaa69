"""The live feed: pages are told within a moment, by one look for all of them, however slow they are."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from coherence.monitor.monitor import Monitor
from coherence.store.runs import write_label
from coherence.store.store import Store
from coherence.web import feed as feed_module
from coherence.web.feed import MAX_NAMED, News, Page, Trouble
from coherence.web.source import StoreSource
from web.serving import WAIT_S, Served, answered, record, serving

SOON_S = 5.0
"""Seconds for news that come within 0.25 s, on a machine that does much else."""


class Listener:
    """A page's connection: its messages as they come."""

    def __init__(self, served: Served) -> None:
        self.messages: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._client = httpx.Client(headers={"Cookie": served.cookie}, timeout=httpx.Timeout(WAIT_S, read=WAIT_S))
        self._request = self._client.stream("GET", f"{served.base}/api/live")
        self.answer = self._request.__enter__()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        name = ""
        try:
            for line in self.answer.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    self.messages.put((name, json.loads(value)))
                elif line.startswith(":"):
                    self.messages.put(("comment", value))
        except httpx.HTTPError:
            pass
        self.messages.put(("end", None))

    def next(self, name: str, timeout_s: float = SOON_S) -> Any:
        """Return the data of the next message, which must be of this name."""
        found, data = self.messages.get(timeout=timeout_s)
        assert found == name, (found, data)
        return data

    def until(self, name: str, is_it: Any) -> Any:
        """Return the data of the first message of this name that fits."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            found, data = self.messages.get(timeout=WAIT_S)
            if found == name and is_it(data):
                return data
        raise AssertionError("it did not come")

    def close(self) -> None:
        """End the connection."""
        with suppress(OSError):  # it may have ended
            self.answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(WAIT_S)
        self._request.__exit__(None, None, None)
        self._client.close()


@contextmanager
def listening(served: Served) -> Iterator[Listener]:
    listener = Listener(served)
    try:
        yield listener
    finally:
        listener.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    record(tmp_path / "runs.db")
    return tmp_path / "runs.db"


def test_feed_tells_what_a_monitor_records(path: Path) -> None:
    with serving(path) as served, listening(served) as page:
        assert page.answer.headers["content-type"].startswith("text/event-stream")
        first = page.next("newest")
        assert first["sessions"] == [] and first["newest"] > 0
        with Monitor(agent="late", session="a/b", store=path, embedder=False, goal="tidy up") as monitor:
            monitor.message("assistant", "I begin.")
            monitor.decide()
            news = page.until("newest", lambda data: ["late", "a/b"] in data["sessions"])
        assert news["newest"] > first["newest"]
        assert answered(served.client.get("/api/overview?agent=late"))["lines"][0]["steps"] == 1


@pytest.mark.slow
def test_feed_is_silent_while_nothing_happens(path: Path) -> None:
    with serving(path) as served, listening(served) as page:
        page.next("newest")
        answered(served.client.get("/api/overview"))
        with pytest.raises(queue.Empty):
            page.messages.get(timeout=1)


def test_feed_tells_of_labels_which_are_no_events(path: Path) -> None:
    with serving(path) as served, listening(served) as page:
        first = page.next("newest")
        with Store(path) as store, store.transaction() as transaction:
            write_label(transaction, "coder", "1", 1, False)
        assert page.next("newest") == {"newest": first["newest"], "sessions": []}


def test_feed_shows_that_it_is_alive(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "HEARTBEAT_S", 0.2)
    with serving(path) as served, listening(served) as page:
        page.next("newest")
        page.next("comment")
        page.next("comment")


def test_feed_tells_that_the_store_is_gone_and_that_another_one_is_there(path: Path) -> None:
    with serving(path) as served, listening(served) as page:
        page.next("newest")
        for each in path.parent.iterdir():
            each.unlink()
        assert page.until("trouble", lambda data: True)["error"].startswith("runs.db: no such file")
        with pytest.raises(queue.Empty):  # it is told once
            page.messages.get(timeout=0.5)
        with listening(served) as late:
            late.next("trouble")
        record(path, agent="new")
        assert page.until("newest", lambda data: data["newest"] > 0)


@pytest.mark.slow
def test_feed_looks_once_for_all_pages_and_not_at_all_without_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    trace = StoreSource.trace

    def counted(self: StoreSource) -> Any:
        looks.append(threading.get_ident())
        return trace(self)

    monkeypatch.setattr(StoreSource, "trace", counted)
    with serving(path) as served:
        time.sleep(0.5)
        assert not looks
        with listening(served) as one, listening(served) as two, listening(served) as three:
            for page in (one, two, three):
                page.next("newest")
            looks.clear()
            time.sleep(1.0)
            # one each 0.1 s, for three pages
            assert 2 <= len(looks) <= 12 and len(set(looks)) == 1
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:  # until the last page has been missed
            looks.clear()
            time.sleep(0.5)
            if not looks:
                break
        assert not looks


def test_feed_bounds_its_pages_and_takes_another_when_one_has_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MAX_PAGES", 2)
    with serving(path) as served, listening(served) as one:
        one.next("newest")
        with listening(served) as two:
            two.next("newest")
            refused = served.client.get("/api/live")
            assert refused.status_code == 503 and "2 pages are live" in refused.json()["error"]
        deadline = time.monotonic() + WAIT_S
        while (answer := listened(served)) != 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert answer == 200


def listened(served: Served) -> int:
    with httpx.stream("GET", f"{served.base}/api/live", headers={"Cookie": served.cookie}, timeout=WAIT_S) as answer:
        return answer.status_code


def test_server_ends_within_a_second_while_pages_are_live(path: Path) -> None:
    with serving(path) as served, listening(served) as one, listening(served) as two:
        one.next("newest")
        two.next("newest")
        began = time.monotonic()
        served.server.shutdown()
        for page in (one, two):
            page.until("end", lambda data: True)
        assert time.monotonic() - began < 1.0 + SOON_S / 5


def told(page: Page) -> list[bytes]:
    """Return what a page is told now."""

    async def take() -> list[bytes]:
        page.tell(None)
        return [each async for each in page.messages()]

    return asyncio.run(take())[1:]


def test_page_that_is_slow_is_told_once_what_has_gathered() -> None:
    page = Page()
    page.tell(News(1, (("a", "s"),)))
    page.tell(Trouble("locked"))
    page.tell(News(3, (("b", "s"), ("a", "s"))))
    assert told(page) == []  # the end comes first
    page = Page()

    async def take() -> bytes:
        messages = page.messages()
        await anext(messages)
        page.tell(News(1, (("a", "s"),)))
        page.tell(Trouble("locked"))
        page.tell(News(3, (("b", "s"), ("a", "s"))))
        return await anext(messages)

    assert asyncio.run(take()) == b'event: newest\ndata: {"newest":3,"sessions":[["a","s"],["b","s"]]}\n\n'


def test_page_that_is_told_of_anything_is_told_so_whatever_comes_before_and_after() -> None:
    named, unnamed = News(1, (("a", "s"),)), News(2)
    for order in ((named, unnamed), (unnamed, named), (named, unnamed, named)):
        page = Page()

        async def take(page: Page = page, order: tuple[News, ...] = order) -> bytes:
            messages = page.messages()
            await anext(messages)
            for each in order:
                page.tell(each)
            return await anext(messages)

        assert b'"sessions":[]}' in asyncio.run(take())


def test_page_that_is_slow_holds_a_bounded_number_of_names() -> None:
    page = Page()

    async def take() -> bytes:
        messages = page.messages()
        await anext(messages)
        for number in range(3 * MAX_NAMED):
            page.tell(News(number, ((f"agent-{number}", "s"),)))
            assert len(page._sessions) <= MAX_NAMED
        return await anext(messages)

    assert asyncio.run(take()) == b'event: newest\ndata: {"newest":1499,"sessions":[]}\n\n'
