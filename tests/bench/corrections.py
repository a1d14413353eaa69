"""How well corrections are grouped: paraphrases that share a topic, different requests that must not.

Run as ``python tests/bench/corrections.py``. The thresholds were tuned on the half "train" only.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from showing import row, say

from coherence.policy.corrections import Corrections
from coherence.providers import MiniLMEmbedder

DATA = Path(__file__).parents[1] / "data" / "paraphrases.json"
ORDERS = 10
Label = Callable[[list[str]], dict[str, str]]

STOP = frozenset("the and for you can our are with that this please from".split())


def first_words(texts: list[str]) -> dict[str, str]:
    """Group as an earlier regulator does: by the first two keywords in alphabetical order."""
    keywords = {text: sorted({w for w in re.findall(r"\w{3,}", text.lower()) if w not in STOP}) for text in texts}
    return {text: "+".join(words[:2]) for text, words in keywords.items()}


def by_corrections(vectors: dict[str, Any], *, late: bool = False) -> Label:
    def label(texts: list[str]) -> dict[str, str]:
        kept = Corrections()
        for seq, text in enumerate(texts):
            known = {} if late else vectors
            kept.add(f"lesson {seq}", request=text, seq=seq, session="s", step=seq, vectors=known)
            if late and seq % 5 == 4:
                kept.settle(vectors)
        if late:
            kept.settle(vectors)
        return {note.request: note.topic for note in kept.notes.values()}

    return label


def orders(requests: dict[str, list[str]], others: list[str]) -> Iterator[list[str]]:
    """Yield all texts in different orders: shuffled, and topic by topic."""
    for seed in range(ORDERS):
        order = random.Random(seed)
        topics = [order.sample(texts, len(texts)) for texts in order.sample(list(requests.values()), len(requests))]
        texts = [*itertools.chain(*topics), *others]
        yield texts if seed % 2 else order.sample(texts, len(texts))


def grade(label: Label, requests: dict[str, list[str]], traps: list[list[str]]) -> tuple[float, float, float]:
    """Return the share of same-topic pairs together, the pairs of topics and the traps together (mean a run)."""
    together = merged = caught = 0
    pairs = 0
    for texts in orders(requests, [other for _, other in traps]):
        labels = label(texts)
        topic = {text: name for name, texts in requests.items() for text in texts}
        for a, b in itertools.combinations(topic, 2):
            same = labels[a] == labels[b]
            pairs += topic[a] == topic[b]
            together += same and topic[a] == topic[b]
            merged += same and topic[a] != topic[b]
        caught += sum(labels[a] == labels[b] for a, b in traps)
    return together / pairs, merged / ORDERS, caught / ORDERS


def alone(label: Label, traps: list[list[str]]) -> int:
    return sum(len(set(label(pair).values())) == 1 for pair in traps)


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
    row("an added correction, 10,000 topics seen", (time.perf_counter() - began) / len(noise) * 1e3, 0.1, " ms")
    began = time.perf_counter()
    for vector in noise[-1000:]:
        kept.relevant("request w1 x7 y13", vector, 10_000)
    row("a look-up, 200 topics kept", (time.perf_counter() - began), 0.1, " ms")


def main() -> None:
    data = json.loads(DATA.read_text())
    texts = sorted({t for half in data["requests"].values() for ts in half.values() for t in ts})
    texts = sorted({*texts, *(t for half in data["traps"].values() for pair in half for t in pair)})
    rows = np.asarray(MiniLMEmbedder().embed_batch(texts))
    vectors = dict(zip(texts, rows, strict=True))
    ways = {
        "first two words": first_words,
        "words only": by_corrections({}),
        "meaning": by_corrections(vectors),
        "meaning, vectors come late": by_corrections(vectors, late=True),
    }
    for half, (name, label) in itertools.product(("train", "held_out"), ways.items()):
        requests, traps = data["requests"][half], data["traps"][half]
        together, merged, caught = grade(label, requests, traps)
        say(f"{half}, {name}", "", "")
        row("  same-topic pairs that share a group", together * 100, 60, " %", least=True)
        row("  pairs of different topics that do", merged, 0, "")
        row(f"  traps that do, of {len(traps)}, among all texts", caught, 0, "")
        row(f"  traps that do, of {len(traps)}, each alone", alone(label, traps), 0, "")
    cost(rows)


if __name__ == "__main__":
    main()
