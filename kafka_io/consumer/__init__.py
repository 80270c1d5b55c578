"""Consumers: the simple consumer, consumer groups, the connector of 0.7 and 0.8, group offsets."""
