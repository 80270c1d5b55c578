"""Offsets handed over: what the lake's cursors are, and tables that begin where another loader ended."""
