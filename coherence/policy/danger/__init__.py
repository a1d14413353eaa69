"""Tool calls that destroy something: `classify` reads one call against a table that users can change."""
