"""Claude Code: its hooks, its settings, and what they mean for an agent."""
