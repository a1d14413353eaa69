"""The normal form of an earlier version, for the tests of what becomes of its lessons: it told lines apart."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from coherence.lessons import normal
from coherence.lessons.normal import ErrorShape

NEW = normal.normalise


def earlier(text: str) -> ErrorShape:
    shape = NEW(text)
    signature = blake2b(text.encode(), digest_size=8).digest()
    return msgspec.structs.replace(shape, signature=signature, template="old", text=f"old {shape.text}", slots=())
