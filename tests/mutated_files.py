"""Files of transcripts damaged at random: readers refuse them, or read what is left."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from coherence.core.config import MonitorConfig
from coherence.core.errors import TranscriptError
from coherence.monitor.steps import record_steps
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript
from coherence.report.ahead import StateAlone

HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 2**70, "", "x", "\ud800", "9" * 5000, [], {}, [[]], "[" * 500, '{"role": 1}',
    {"values": 3}, [{"type": "tool_call", "arguments": [None]}], {"stringValue": 5}, {"intValue": "--1"},
    {"intValue": "²"},
)  # fmt: skip


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container with each of its keys."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from places(node[key])


def mutated(chance: random.Random, samples: Sequence[Path]) -> str:
    """A sample with values replaced, removed, copied or moved in its tree, or bytes in its text."""
    path = chance.choice(samples)
    text = path.read_text()
    if path.suffix == ".jsonl":
        text = chance.choice(text.splitlines())
    if chance.random() < 0.2:
        at = chance.randrange(len(text))
        return (
            text[:at]
            + chance.choice(["", '"', "}", "]", "\\", "\ud800", "\x00", "9" * 30])
            + text[at + chance.randrange(9) :]
        )
    tree = copy.deepcopy(json.loads(text))
    for _ in range(chance.randrange(1, 6)):
        found = list(places(tree))
        if not found:
            break
        holder, key = chance.choice(found)
        match chance.randrange(4):
            case 0:
                holder[key] = chance.choice(HOSTILE)
            case 1:
                del holder[key]
            case 2:
                other, name = chance.choice(found)
                holder[key] = copy.deepcopy(other[name])
            case _:
                # texts in texts: messages are JSON in an attribute
                value = holder[key]
                holder[key] = value[: len(value) // 2] if isinstance(value, str) else json.dumps(value)
    return json.dumps(tree)


def read_or_refuse(path: Path, text: str) -> None:
    """Read a text as a transcript; it is refused by its own error, or tells a monitor its steps."""
    path.write_text(text, errors="surrogatepass")
    runs: list[Transcript] = []
    with suppress(TranscriptError):
        runs = read_transcripts(path)
    for run in runs:
        assert run.steps
        # what was read can be told to a monitor
        alone = StateAlone(MonitorConfig())
        assert len(list(record_steps(alone, run))) == len(run.steps)
