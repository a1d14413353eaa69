"""Redaction: found secrets per form, look-alikes that are changed, and what a text costs.

Run ``python tests/bench/redaction.py``; it takes about 20 seconds. Secrets and look-alikes are made up by
``tests/core/secrets_corpus.py``: of each kind a prefix that its vendor publishes and random bodies. A secret counts as
found if no 8 characters of its body in a row are left. Look-alikes are hashes, ids, names and data.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from showing import row, say

from coherence.core.events import Message, text_of
from coherence.core.redact import Redactor, redact

sys.path.insert(0, str(Path(__file__).parent.parent))
from core.secrets_corpus import FORMS, NAMES, is_left, look_alikes, secrets, split

ROOT = Path(__file__).parent.parent.parent
ROUNDS = 10


def found(form: str) -> float:
    """Return the share of secrets that are found in a form, in percent."""
    chance = random.Random(form)
    left = [is_left(secret, redact(FORMS[form](secret.text, chance))) for secret in secrets(rounds=ROUNDS)]
    return 100 * (1 - sum(left) / len(left))


def found_when_split() -> float:
    """Return the same for secrets whose ends are in two texts."""
    chance = random.Random(0)
    left = []
    for secret in secrets(rounds=ROUNDS):
        redactor = Redactor(hide_secrets=True)
        parts = [Message("assistant", part) for part in split(secret.text, chance)]
        left.append(is_left(secret, "".join(text_of(redactor.prepare(part)) for part in parts)))
    return 100 * (1 - sum(left) / len(left))


def texts() -> dict[str, Callable[[], str]]:
    """Return makers of texts without secrets, by what they are."""
    chance = random.Random(0)
    base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return {
        "prose": lambda: "\n".join(file.read_text() for file in sorted((ROOT / "docs").rglob("*.md"))),
        "source code": lambda: "\n".join(file.read_text() for file in sorted((ROOT / "coherence/detect").glob("*.py"))),
        "a log": lambda: "".join(
            f"2026-01-{at % 28 + 1:02d}T10:00:{at % 60:02d}Z INFO [{at * 7919:08x}] GET /api/items/{at} 200 {at}ms\n"
            for at in range(4_000)
        ),
        "a coloured log": lambda: "".join(f"\x1b[32m{at}\x1b[0m \x1b[1mINFO\x1b[0m did it\n" for at in range(8_000)),
        "lines of base64": lambda: "\n".join("".join(chance.choices(base64, k=76)) for _ in range(2_700)),
    }


def cost_ms(text: str, times: int) -> float:
    """Return milliseconds of CPU, the best of five times."""
    best = float("inf")
    for _ in range(5):
        begun = time.process_time()
        for _ in range(times):
            redact(text)
        best = min(best, (time.process_time() - begun) / times)
    return 1000 * best


def main() -> None:
    say(f"redaction: {len(NAMES)} kinds of secrets, {ROUNDS} of each", "measured", "target")
    for form in FORMS:
        row(f"found {form}", found(form), 97, " %", least=True)
    row("found split over two texts", found_when_split(), 97, " %", least=True)
    changed = [text for seed in range(5) for text in look_alikes(seed) if redact(text) != text]
    row("look-alikes that are changed, of 1,000", len(changed) / 10, 2, " %")
    for name, make in texts().items():
        text = make() * 3
        small, large = cost_ms(text[5_000:6_000], 200), cost_ms(text[:200_000], 2)
        say(f"{name}: 1,000 and 200,000 characters", f"{small:.3f}, {large:.1f} ms", "")


if __name__ == "__main__":
    main()
