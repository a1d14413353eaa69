"""Work that ends its process, for the tests."""

from __future__ import annotations

import os
from typing import NoReturn

from coherence.providers.transcript import Transcript
from coherence.sensor.embedding_cache import EmbeddingCache


def end_process(transcript: Transcript, *, embedder: EmbeddingCache, ahead: int) -> NoReturn:
    """End as a process does that the system kills."""
    os._exit(9)
