"""A regression guard around any agent callable."""
