"""Rules that judge one call, apart from all else, so that who reads decisions need not load what makes them."""

from __future__ import annotations

OF_ONE_CALL = ("goal_hijack", "harmful_call", "forbidden_call", "broken_constraint")
"""Rules that refuse a call for what it is itself."""
