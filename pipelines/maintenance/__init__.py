"""Work on loaded tables: show their history, take them back to an earlier version, and clean them up."""
