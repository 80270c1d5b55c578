"""Brokers, topics and groups in ZooKeeper: paths and values as pure text, kazoo to carry them."""
