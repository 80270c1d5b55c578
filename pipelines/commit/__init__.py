"""Changes of a table: files and offsets become visible together, in one entry, or not at all."""
