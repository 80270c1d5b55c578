"""The interface of a table: everything that loads and repairs ask of it, whatever its format is."""
