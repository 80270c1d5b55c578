"""Rows that are written again: replays, redecodes and conversions."""
