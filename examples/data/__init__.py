"""Recorded agent runs for the demo; see README.md and LICENSES.txt beside this file."""
