"""A module that cannot be imported."""

raise RuntimeError("acme needs a licence")
