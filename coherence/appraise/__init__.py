"""Against oneself: vitals, baselines, pressure, modes, budgets."""
