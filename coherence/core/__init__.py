"""Shared vocabulary: events, readings, decisions, the sockets of plug-ins, settings, registry, errors, clock."""
