"""Many agents in one process: shared budgets, and trust along which pressure travels."""
