"""The interface of data: what a page may ask of a store, and what it may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from coherence.web.queries import (
    CompareQuery,
    EventsQuery,
    LessonsQuery,
    Nothing,
    OverviewQuery,
    Query,
    SessionQuery,
    StepQuery,
    TimelineQuery,
)

if TYPE_CHECKING:
    from coherence.views.views import Views


class Read(NamedTuple):
    """One question about a store."""

    query: type[Query]
    answer: Callable[[Views, Any], Any]
    """Takes the views and a query, and returns what becomes the JSON."""


def _compare(views: Views, query: CompareQuery) -> Any:
    return views.compare((query.a, query.b), (query.c, query.d))


READS: Mapping[str, Read] = {
    "overview": Read(OverviewQuery, lambda views, query: views.overview(**msgspec.structs.asdict(query))),
    "session": Read(SessionQuery, lambda views, query: views.session(query.agent, query.session)),
    "timeline": Read(TimelineQuery, lambda views, query: views.timeline(**msgspec.structs.asdict(query))),
    "events": Read(EventsQuery, lambda views, query: views.events(**msgspec.structs.asdict(query))),
    "step": Read(StepQuery, lambda views, query: views.step(query.agent, query.session, query.seq)),
    "compare": Read(CompareQuery, _compare),
    "fleet": Read(Nothing, lambda views, query: views.fleet()),
    "lessons": Read(LessonsQuery, lambda views, query: views.lessons(query.text, query.limit)),
    "guard": Read(Nothing, lambda views, query: views.guard()),
    "experiments": Read(Nothing, lambda views, query: views.experiments()),
}
"""Last part of the path of each question -> the question."""
