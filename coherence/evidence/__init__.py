"""Proving: what is recorded, and that it can be computed again."""
