"""What users pass to a monitor or a fleet, made into what these use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from coherence.config import Budget, disabled
from coherence.plain import MAX_NAME, check_text, clean, shown
from coherence.store.store import Store


def check_name(field: str, value: object) -> str:
    """Return a name that can be written, or raise TypeError or ValueError that names the field."""
    return clean(check_text(field, value, empty=False), MAX_NAME)


def as_store(store: str | Path | Store | None) -> Store | None:
    """Return the store that a user means."""
    if store is None or isinstance(store, Store):
        return store
    if not isinstance(store, str | Path):
        raise TypeError(f"store must be a path or a Store, not {shown(store)}")
    return None if disabled() else Store(store)


def as_budget(budget: Budget | Mapping[str, Any] | None) -> Budget | None:
    """Return the budget that a user means."""
    if budget is None or isinstance(budget, Budget):
        return budget
    if not isinstance(budget, Mapping):
        raise TypeError(f"budget must be a Budget or a mapping, not {shown(budget)}")
    try:
        return msgspec.convert(dict(budget), Budget)
    except msgspec.ValidationError as error:
        raise ValueError(f"budget: {error}") from error
