"""Resident process that hooks talk to."""
