"""Public functions that read texts from outside, each ready to be given one; nothing in them is embedded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import msgspec

from coherence import Monitor
from coherence.core.events import Message
from coherence.core.redact import prepare, redact, redact_value
from coherence.lessons import LessonStore
from coherence.lessons.normal import normalise
from coherence.lessons.shell import read_line
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, Transcript
from coherence.report.html import render_html
from coherence.report.score import score_transcript

Api: TypeAlias = Callable[[str], object]

_CALLS = {
    "a shell": ("Bash", "command"),
    "code": ("python", "code"),
    "SQL": ("run_sql", "query"),
    "a mail": ("send_email", "body"),
    "a file": ("write_file", "content"),
}


def _follow(text: str, record: Callable[[Monitor, str], object]) -> None:
    with Monitor(agent="a", goal="Find the price of the flat for Ana Berg", embedder=False) as monitor:
        record(monitor, text)
        monitor.decide()


def _result(monitor: Monitor, text: str, *, error: bool = False) -> None:
    monitor.tool_result(text, call=monitor.tool_call("Bash", {"command": "ls"}), error=error)


def _checked(monitor: Monitor, tool: str, key: str) -> Api:
    return lambda text: monitor.check(tool, {key: text})


def _read(folder: Path, text: str) -> list[Transcript]:
    path = folder / "run.jsonl"
    steps = [{"role": "assistant", "content": text}]
    path.write_text(json.dumps({"goal": "Find it", "steps": steps}, ensure_ascii=False) + "\n", encoding="utf-8")
    return read_transcripts(path)


def _saying(text: str) -> Transcript:
    return Transcript(id="a", goal="Find it", steps=(Step(role="assistant", content=text),))


def _learn(lessons: LessonStore, text: str) -> None:
    said = f"ValueError: {text}"
    lessons.record(pattern="a", error_text=said, fix_text=said)
    lessons.query(said)


@contextmanager
def apis() -> Iterator[dict[str, Api]]:
    """Give the functions by name, with a folder and a store for those that need one."""
    with (
        TemporaryDirectory() as made,
        LessonStore(Path(made) / "lessons.db", embedder=False) as lessons,
        Monitor(agent="a", goal="Find the price", embedder=False) as monitor,
    ):
        folder = Path(made)
        scored = score_transcript(_saying("Found"), embedder=False)
        yield {
            "redact": redact,
            "redact_value": lambda text: redact_value({"a": [text], text[:90]: text}),
            "prepare": lambda text: prepare(Message("assistant", text), hide_secrets=True),
            "Monitor.message of a user, then decide": lambda text: _follow(text, lambda m, t: m.message("user", t)),
            "Monitor.message of the agent, then decide": lambda text: _follow(
                text, lambda m, t: m.message("assistant", t)
            ),
            "Monitor.tool_result, then decide": lambda text: _follow(text, _result),
            "Monitor.tool_result of an error, then decide": lambda text: _follow(
                text, lambda m, t: _result(m, t, error=True)
            ),
            "Monitor.tool_call, then decide": lambda text: _follow(
                text, lambda m, t: m.tool_call("Bash", {"command": t})
            ),
            **{f"Monitor.check of {name}": _checked(monitor, *call) for name, call in _CALLS.items()},
            "normalise": normalise,
            "read_line": read_line,
            "LessonStore.record and query": lambda text: _learn(lessons, text),
            "read_transcripts": lambda text: _read(folder, text),
            "score_transcript": lambda text: score_transcript(_saying(text), embedder=False),
            "render_html": lambda text: render_html([msgspec.structs.replace(scored, transcript=_saying(text))]),
        }
