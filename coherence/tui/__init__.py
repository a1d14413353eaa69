"""Face for the terminal: agents as they run."""
