"""The log of one partition: segments of record batches named by offset, found by an index in memory."""
