"""Runs of agents in tests: an assertion on a run, and the plug-in of pytest."""
