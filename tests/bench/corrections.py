"""Recall of corrections: by paraphrases of the request, and not by different requests.

Run as ``python tests/bench/corrections.py``. The thresholds were tuned on the half "train" only.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from showing import row, say

from coherence.policy.corrections import Corrections
from coherence.providers import MiniLMEmbedder

DATA = Path(__file__).parents[1] / "data" / "paraphrases.json"
Find: TypeAlias = Callable[[dict[str, list[str]], str], set[str]]
DRAWS = 20
NOTES = 3
"""Corrections that are kept on each topic; the other paraphrases of it ask for them."""

STOP = frozenset("the and for you can our are with that this please from".split())


def first_words(text: str) -> str:
    """Name a topic as an earlier regulator does: by the first two keywords in alphabetical order."""
    keywords = sorted({w for w in re.findall(r"\w{3,}", text.lower()) if w not in STOP})
    return "+".join(keywords[:2])


def by_first_words(kept: dict[str, list[str]], request: str) -> set[str]:
    told = [
        (topic, text) for topic, texts in kept.items() for text in texts if first_words(text) == first_words(request)
    ]
    return {topic for topic, _ in told} if len(told) >= NOTES else set()


def by_corrections(vectors: dict[str, Any]) -> Find:
    def find(kept: dict[str, list[str]], request: str) -> set[str]:
        corrections = Corrections()
        for seq, (topic, text) in enumerate((topic, text) for topic, texts in kept.items() for text in texts):
            corrections.add(f"q{seq * 7919:x}z", request=text, seq=seq, session=topic, step=seq, vectors=vectors)
        found = corrections.relevant(request, vectors.get(request), NOTES)
        return {session for session, _ in found.provenance} if found is not None else set()

    return find


def grade(find: Find, requests: dict[str, list[str]], traps: list[str]) -> tuple[float, float, float]:
    """Return the shares of requests that find their own topic and another one, and of traps that find any."""
    own = others = caught = asked = 0
    for seed in range(DRAWS):
        drawn = random.Random(seed)
        kept = {topic: drawn.sample(texts, NOTES) for topic, texts in requests.items()}
        for topic, texts in requests.items():
            for text in set(texts) - set(kept[topic]):
                found = find(kept, text)
                own += topic in found
                others += bool(found - {topic})
                asked += 1
        caught += sum(bool(find(kept, trap)) for trap in traps)
    return own / asked, others / asked, caught / DRAWS


def cost(vectors: np.ndarray) -> None:
    """Time adding and looking up when 10,000 topics have been seen."""
    noise = np.random.default_rng(0).standard_normal((10_000, vectors.shape[1])).astype(np.float32)
    kept = Corrections()
    began = time.perf_counter()
    for seq, vector in enumerate(noise):
        text = f"request w{seq} x{seq * 7} y{seq * 13}"
        kept.add(
            f"say {text}", request=text, seq=seq, session="s", step=seq, vectors={text: vector, f"say {text}": vector}
        )
    row("an added correction, 10,000 seen", (time.perf_counter() - began) / len(noise) * 1e3, 0.1, " ms")
    began = time.perf_counter()
    for vector in noise[-1000:]:
        kept.relevant("request w1 x7 y13", vector, 10_000)
    row("a look-up, 200 kept", (time.perf_counter() - began), 0.1, " ms")


def main() -> None:
    data = json.loads(DATA.read_text())
    texts = sorted({t for half in data["requests"].values() for ts in half.values() for t in ts})
    texts = sorted({*texts, *(t for half in data["traps"].values() for pair in half for t in pair)})
    rows = np.asarray(MiniLMEmbedder().embed_batch(texts))
    vectors = dict(zip(texts, rows, strict=True))
    ways = {
        "first two words": by_first_words,
        "words only": by_corrections({}),
        "meaning": by_corrections(vectors),
    }
    for half, (name, find) in itertools.product(("train", "held_out"), ways.items()):
        own, others, caught = grade(find, data["requests"][half], [trap for _, trap in data["traps"][half]])
        say(f"{half}, {name}", "", "")
        row("  paraphrases that find the three corrections on their topic", own * 100, 75, " %", least=True)
        row("  that find those on another topic", others * 100, 0, " %")
        row(f"  traps that find any, of {len(data['traps'][half])}", caught, 1, "")
    cost(rows)


if __name__ == "__main__":
    main()
