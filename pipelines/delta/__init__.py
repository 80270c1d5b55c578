"""Topics as Delta tables: how their log is read, and how entries are written to it."""
