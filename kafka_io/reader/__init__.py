"""Bounded reads of partitions, one implementation per generation of the protocol."""
