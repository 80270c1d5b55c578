"""ZooKeeper's registries of brokers and topics: paths and values as pure text, kazoo to carry them."""
