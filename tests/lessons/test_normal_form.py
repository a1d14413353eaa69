"""A normal form that changes is another version: lessons kept in the old one must be noticed."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from random import Random

from coherence.lessons.names import kept_names
from coherence.lessons.normal import FORM, normalise
from lessons.errors import builders as making

FAMILIES = Path(__file__).parent / "errors" / "families_dev.jsonl"

DIGESTS = {3: "9d988b7144aa0814"}
"""Version of the normal form -> digest of what it makes of one error of each wording."""


def test_a_changed_normal_form_has_a_new_version() -> None:
    rng, digest = Random(0), blake2b(digest_size=8)
    for family in making.load_families(FAMILIES):
        key = {name: family.pools[name][0] for name in family.key}
        for error in family.errors:
            text = making.render(error, family, key, rng)
            shape = normalise(text)
            digest.update(shape.signature + kept_names(shape, text))
            digest.update("\0".join((*shape.words, *(slot.value for slot in shape.slots))).encode())
    assert digest.hexdigest() == DIGESTS[FORM], "raise FORM in normal.py, and note the digest here"
