"""Hides how an object's own attributes are computed: a reader of the reference needs their types and meanings."""

from __future__ import annotations

from typing import Any

import griffe


class OwnAttributes(griffe.Extension):
    """Drops the values of attributes that ``__init__`` sets; those of a class and of a module are kept."""

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Drop the value of an attribute that is of an instance alone."""
        if attr.labels == {"instance-attribute"}:
            attr.value = None
