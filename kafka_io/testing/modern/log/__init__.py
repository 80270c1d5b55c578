"""The log of one partition: record batches in segments, the state of producers and transactions, offsets by time."""
