"""The patches of an agent that were given up: the same one is not tried again soon."""

from __future__ import annotations

from hashlib import blake2b
from math import ceil
from typing import Any

import msgspec

MAX_REMEMBERED = 50
"""Patches that are remembered, the newest ones."""

FIRST_REST_H, MAX_REST_H = 7 * 24.0, 180 * 24.0
"""A patch that was given up once is not tried again for the first, twice as long each time, up to the second."""

# in whichever order its keys stand, a patch has one hash
_ENCODE = msgspec.json.Encoder(order="deterministic").encode


class GivenUp(msgspec.Struct):
    """One patch that was given up."""

    digest: str
    times: int
    last_s: float
    """Steady time of the last time, seconds."""
    seq: int
    """The entry of the trail that ended it then."""


class PatchMemory(msgspec.Struct):
    """The patches that were rolled back, could not be applied, or were declined by a person.

    Examples
    --------
    >>> memory = PatchMemory()
    >>> memory.add({"retries": 3, "wait_s": 1}, now_s=0.0, seq=17)
    >>> memory.refuses({"wait_s": 1, "retries": 3}, now_s=3600.0)
    'the same patch was given up once at entry 17: not tried again for 167 h'
    >>> memory.refuses({"wait_s": 1, "retries": 3}, now_s=7 * 86_400.0), memory.refuses({"retries": 4}, now_s=0.0)
    ('', '')
    """

    patches: list[GivenUp] = msgspec.field(default_factory=list)
    """The one that was given up last comes last."""

    def add(self, patch: dict[str, Any], now_s: float, seq: int) -> None:
        """Remember that a patch was given up, in the entry ``seq``."""
        digest = digest_of(patch)
        times = 1 + sum(known.times for known in self.patches if known.digest == digest)
        others = [known for known in self.patches if known.digest != digest]
        self.patches = [*others, GivenUp(digest, times, now_s, seq)][-MAX_REMEMBERED:]

    def refuses(self, patch: dict[str, Any], now_s: float) -> str:
        """Return why a patch is not to be tried, or an empty text; ``now_s`` is steady time, seconds."""
        digest = digest_of(patch)
        known = next((known for known in self.patches if known.digest == digest), None)
        if known is None:
            return ""
        rest_h = min(FIRST_REST_H * 2.0 ** min(known.times - 1, 20), MAX_REST_H)
        left_h = rest_h - (now_s - known.last_s) / 3600
        if left_h <= 0:
            return ""
        times = "once" if known.times == 1 else f"{known.times} times, last"
        return f"the same patch was given up {times} at entry {known.seq}: not tried again for {ceil(left_h)} h"


def digest_of(patch: dict[str, Any]) -> str:
    """Return a short hash of a patch: of its JSON with sorted keys."""
    return blake2b(_ENCODE(patch), digest_size=16).hexdigest()
