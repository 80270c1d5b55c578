"""The log of one partition: segments named by offset, flush, recovery, retention."""
