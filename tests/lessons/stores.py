"""Lessons for the tests of the store, and the check of its file."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from coherence.lessons.store import LessonStore
from coherence.providers import HashingEmbedder
from coherence.store.store import Store

VAGUE = "my program stops because an import of some module is broken"
"""A description that has no signature: what it finds, it finds by meaning."""


def open_store(path: Path | Store, **options: Any) -> LessonStore:
    return LessonStore(path, **{"embedder": HashingEmbedder(64), **options})


def missing(name: str) -> str:
    return f"ModuleNotFoundError: No module named '{name}'"


def learn(store: LessonStore, name: str, fix: str | None = None, **more: Any) -> int:
    given = {"pattern": "missing module", "error_text": missing(name), "tool": "Bash", **more}
    return store.record(fix_text=f"uv add {name}" if fix is None else fix, **given)


def found(store: LessonStore, text: str, **options: Any) -> list[int]:
    return [lesson.id for lesson in store.query(text, **options)]


def near(store: LessonStore, k: int = 10_000) -> set[int]:
    """Return the lessons that the index of the store holds, brought up to date as a question does it."""
    searching = store._searching
    assert searching is not None
    searching.follow()
    vector = searching.embed(VAGUE)
    assert vector is not None
    held = {id for (id,) in store.store.fetch("SELECT id FROM lessons")}
    return {id for id, _ in searching.nearest(vector, k)} & held


def check_file(path: Path) -> int:
    """Check that the file is whole and its counts are right; return how many lessons it holds."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        ((count,),) = connection.execute("SELECT count(*) FROM lessons").fetchall()
        assert connection.execute("SELECT count FROM lesson_state").fetchall() == [(count,)]
        assert isinstance(count, int)
        return count
    finally:
        connection.close()
