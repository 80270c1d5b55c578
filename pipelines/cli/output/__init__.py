"""How commands print: results, tables, progress, and JSON."""
