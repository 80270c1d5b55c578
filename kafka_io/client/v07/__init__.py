"""Clients of 0.7: brokers and partitions from ZooKeeper, byte offsets, answers in order."""
