"""Plug-ins that misbehave, and sensors that measure with them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from coherence import CoherenceSensor, Reading
from coherence.providers import HashingEmbedder, StaticState

LIMIT = 0.4
"""``timeout_s`` in these tests."""

PATIENCE = LIMIT + 1.5
"""Seconds of a measurement on a busy machine; a hang would take for ever."""


class Fatal(BaseException):
    """Not an Exception."""


class Named:
    """A metric whose compute is given."""

    inverted = True

    def __init__(self, compute: Callable[[], Any], name: str = "bad") -> None:
        self.name = name
        self._compute = compute

    def compute(self, data: object) -> Any:
        return self._compute()


class Scalar(Named):
    """A scalar whose compute is given."""

    def compute(self) -> Any:  # type: ignore[override]
        return self._compute()


def state() -> StaticState:
    return StaticState(goals=["fix the login"], context=["reading login.py", "the test fails"], memories=["login"])


def probe(provider: object = None, **options: Any) -> CoherenceSensor:
    return CoherenceSensor(provider or state(), **{"embedder": HashingEmbedder(), "timeout_s": LIMIT, **options})  # type: ignore[arg-type]


@contextmanager
def bounded() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < PATIENCE


def measure_async(sensor: CoherenceSensor) -> Reading:
    return asyncio.run(sensor.measure())


def both_ways(make: Callable[[], CoherenceSensor]) -> list[Reading]:
    """Measure on a thread and on an event loop."""
    readings = []
    for start in (CoherenceSensor.measure_sync, measure_async):
        with bounded():
            readings.append(start(make()))
    return readings


def raising(error: BaseException) -> Callable[..., Any]:
    def act(*_: object) -> Any:
        raise error

    return act


def waiting(event: threading.Event) -> Callable[..., Any]:
    def act(*_: object) -> Any:
        event.wait()
        return 0.0

    return act


async def async_hang() -> float:
    await asyncio.Event().wait()
    return 0.0
