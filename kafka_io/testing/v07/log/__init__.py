"""The log of one 0.7 partition: its messages in segments, flushes, recovery, and reads by byte position."""
