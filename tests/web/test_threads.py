"""Threads that read: a few at once, in turn, and nobody waits for them at the end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from coherence.web.threads import ReadThreads


def test_read_threads_return_what_an_action_returns_or_raises() -> None:
    threads = ReadThreads()

    def fails() -> None:
        raise LookupError("nothing there")

    async def main() -> None:
        assert await threads.run(lambda: threading.current_thread().daemon) is True
        with pytest.raises(LookupError, match="nothing there"):
            await threads.run(fails)

    asyncio.run(main())


def test_read_threads_do_so_many_actions_at_once_and_no_more() -> None:
    threads = ReadThreads(3)
    at_once = threading.Barrier(3)

    async def main() -> list[int]:
        # each of six waits until three are there, so that two would never end and four would be seen
        return await asyncio.gather(*(threads.run(at_once.wait) for _ in range(6)))

    places = asyncio.run(asyncio.wait_for(main(), 20))
    assert sorted(places) == [0, 0, 1, 1, 2, 2]
    assert threads._started == 3


def test_read_threads_do_not_begin_what_nobody_waits_for_any_more() -> None:
    threads = ReadThreads(1)
    begun, leave = threading.Event(), threading.Event()
    done: list[str] = []

    def first() -> None:
        begun.set()
        leave.wait(20)

    async def main() -> None:
        one = asyncio.ensure_future(threads.run(first))
        await asyncio.sleep(0)
        two = asyncio.ensure_future(threads.run(lambda: done.append("two")))
        await asyncio.sleep(0)
        assert begun.wait(20)
        two.cancel()
        leave.set()
        await one
        await threads.run(lambda: done.append("three"))

    asyncio.run(main())
    assert done == ["three"]
