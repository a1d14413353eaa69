"""Build coherence/detect/gram_weights.bin: how common each bucket of character n-grams is in ordinary text.

The vocabulary of the shipped tokenizer (Apache License 2.0) is sorted by frequency, so the rank of a word gives its
share by Zipf's law; an n-gram has the share of all words it comes in.
"""

from __future__ import annotations

import json

import numpy as np

from coherence.detect.ngrams import WEIGHTS, fold, hashed_grams
from coherence.providers.minilm import MODELS, TOKENIZER

FIRST_WORD = 1996
"""The id of "the"; before it come marks and single characters."""

RANK_OFFSET = 2.7
"""Of the Zipf-Mandelbrot law for English (B. Mandelbrot, 1953)."""

BUCKETS = 1 << 15
FLOOR = 2e-7
"""Share of an n-gram that no word of the vocabulary has."""

FUNCTION_WORDS = """
a i s t m d ll re ve
der die das den dem des ein eine einen einer eines und oder aber nicht ist sind war wird werden wurde haben hat ich du
er sie es wir ihr mit von vom zu zum zur auf für bei nach aus als wie auch noch nur so wenn dass sich im am um durch
le la les des du un une et ou mais ne pas est sont été être avoir il elle nous vous ils je dans pour par sur avec sans
que qui ce cette ces son sa ses plus au aux
el los las del al una y o pero no es son fue ser ha por para con sin se su sus lo como más que en
il lo gli di da in con per tra che non è sono della delle dei nel alla anche come più
и в не на что с по как это из у к он она они мы вы я но а или для от за то же так его её их был была были
o os as um uma e ou mas não do da dos das em no na com por para que se seu sua
de het een en of maar niet is zijn was ik je hij zij wij met van voor op te aan bij uit als ook
"""
"""Single letters, which the vocabulary has before its words, and the commonest words of other languages; each gets the
share of rank 3 in English."""


def main() -> None:
    """Write the table."""
    vocabulary = json.loads((MODELS / TOKENIZER).read_text(encoding="utf-8"))["model"]["vocab"]
    words = [word for word in sorted(vocabulary, key=vocabulary.__getitem__)[FIRST_WORD:] if not word.startswith("##")]
    shares = 1 / (np.arange(len(words)) + 1 + RANK_OFFSET)
    mass = np.full(BUCKETS, FLOOR * shares.sum())
    pairs = [*zip(words, shares, strict=True), *((word, shares[2]) for word in FUNCTION_WORDS.split())]
    for word, share in pairs:
        hashes, _ = hashed_grams(f" {fold(word)} ")
        np.add.at(mass, hashes % BUCKETS, share)
    stored = np.clip(np.round(-16 * np.log(mass / shares.sum())), 0, 255)
    WEIGHTS.write_bytes(stored.astype(np.uint8).tobytes())


if __name__ == "__main__":
    main()
