"""Changes that a page may make where the server was started with ``--write``: each as the command line does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import Meta

from coherence.store.store import Store
from coherence.web.queries import Comment, FiringLabel, Name, Number, Query, SessionLabel, Unblock

if TYPE_CHECKING:
    from types import ModuleType

Words = Annotated[str, Meta(max_length=50_000)]


class LessonEdit(Query, frozen=True):
    """New words of a lesson; ``None`` keeps those that it has."""

    id: Number
    pattern: Words | None = None
    error: Words | None = None
    fix: Words | None = None


class LessonId(Query, frozen=True):
    """A lesson."""

    id: Number


class Rollback(Query, frozen=True):
    """Request for the configuration before the patch in force."""

    agent: Name
    why: Comment = ""


class Change(NamedTuple):
    """One thing that may be changed."""

    body: type[Query]
    action: Callable[[Store, Any], dict[str, Any]]
    """Takes the store and a body, and returns what becomes the JSON."""


def _changes() -> ModuleType:
    from coherence.views import changes  # which loads what a server that only shows does not need

    return changes


def _label(store: Store, body: SessionLabel) -> dict[str, Any]:
    return {"run": _changes().label_session(store, body.agent, body.session, body.label, body.comment)}


def _label_firing(store: Store, body: FiringLabel) -> dict[str, Any]:
    return {"id": _changes().label_firing(store, body.id, body.label).id}


def _unblock(store: Store, body: Unblock) -> dict[str, Any]:
    _changes().unblock(store, body.agent, body.session, body.reason)
    return {}


def _edit_lesson(store: Store, body: LessonEdit) -> dict[str, Any]:
    return {"id": _changes().edit_lesson(store, body.id, pattern=body.pattern, error=body.error, fix=body.fix)}


def _forget_lesson(store: Store, body: LessonId) -> dict[str, Any]:
    _changes().forget_lesson(store, body.id)
    return {}


def _roll_back(store: Store, body: Rollback) -> dict[str, Any]:
    record = _changes().rollback(store, body.agent, *([body.why] if body.why.strip() else []))
    return {"number": record.number}


CHANGES: Mapping[str, Change] = {
    "label": Change(SessionLabel, _label),
    "label-firing": Change(FiringLabel, _label_firing),
    "unblock": Change(Unblock, _unblock),
    "lesson/edit": Change(LessonEdit, _edit_lesson),
    "lesson/forget": Change(LessonId, _forget_lesson),
    "guard/rollback": Change(Rollback, _roll_back),
}
"""Last part of the path of each change -> the change."""
