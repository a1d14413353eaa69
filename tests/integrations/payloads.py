"""Payloads of hooks as no client should send them, for the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st


def altered(payloads: Sequence[Mapping[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Return one of some payloads with up to four fields, its own or those of others, that have values of any type."""
    names = sorted({name for payload in payloads for name in payload} - {"hook_event_name"})
    value: st.SearchStrategy[Any] = (
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()) | st.just({"a": []})
    )
    other = st.dictionaries(st.sampled_from(names), value, max_size=4)
    return st.builds(lambda payload, fields: {**payload, **fields}, st.sampled_from(payloads), other)
