"""Guarding: a change of configuration is noticed when it harms, and kept when it does not."""
