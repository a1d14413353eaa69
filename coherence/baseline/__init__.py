"""An agent against its own past: vitals, baselines, pressure, modes, budgets, calibrated thresholds."""
