"""Gemini CLI: its sessions, from what its hooks and its transcripts say."""
