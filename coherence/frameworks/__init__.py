"""Agent frameworks: a file each, which is the only one that imports its framework."""
