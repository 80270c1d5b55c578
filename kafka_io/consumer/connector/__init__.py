"""The consumer connector: streams of messages, shared by a group that is kept in ZooKeeper."""
