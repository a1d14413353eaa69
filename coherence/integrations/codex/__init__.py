"""Codex CLI: its settings, its sessions, and what it takes to have it run hooks."""
