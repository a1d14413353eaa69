"""Which tool calls destroy something: `classify` reads one call against a table that users can change."""
