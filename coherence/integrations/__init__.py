"""Hosts into which this package is plugged: one folder each, and the daemon that serves them."""
