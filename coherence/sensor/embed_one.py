"""Embedding single texts outside a tick, under a deadline of their own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from coherence.core.vectors import Half
from coherence.providers.hashing import HashingEmbedder
from coherence.providers.minilm import MiniLMEmbedder
from coherence.sensor.calls import Breaker, Call
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.sensor.plugin_calls import Group, Stages, run_stages
from coherence.sensor.waiter import drive_sync

OWN = (MiniLMEmbedder, HashingEmbedder)
"""Embedders that do not hang: they are asked on the caller's thread. A stranger's is asked on another one."""


def embed_now(
    cache: EmbeddingCache, texts: Sequence[str], timeout_s: float, breaker: Breaker | None = None
) -> dict[str, Half]:
    """Return the vectors of texts, embedding one after the other those that are not known.

    What fails, or takes longer than ``timeout_s`` seconds, has none. Nothing is raised. With a ``breaker`` that the
    caller keeps, an embedder that took too long is left out for some texts, and for as long as that call still runs:
    one that hangs holds one thread, and not one a text.
    """
    found: dict[str, Half | str] = {}
    breaker = Breaker() if breaker is None else breaker
    for text in cache.find(texts, found):
        until = time.monotonic() + timeout_s
        if type(cache.embedder) in OWN:
            made = cache.make_one(text, until)
            if made is not None:
                found[text] = made
        else:
            call = Call("embedder", partial(cache.make, [text], until, []), breaker)
            drive_sync(run_stages(_alone(call, until)))
            cache.find([text], found)
    return {text: vector for text, vector in found.items() if not isinstance(vector, str)}


def _alone(call: Call, until: float) -> Stages[None]:
    yield Group([call], until)
