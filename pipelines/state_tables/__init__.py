"""State tables: the newest row of each key of a topic."""
