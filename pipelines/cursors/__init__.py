"""Cursors exchanged with other tools: export to groups and files, import of the offsets of another loader."""
