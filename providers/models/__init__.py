"""The shipped embedding model: data, its licence, and the script that made it."""
