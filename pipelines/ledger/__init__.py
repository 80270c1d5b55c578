"""What commits of a table say about offsets, files and event time. Everything else builds on these values."""
