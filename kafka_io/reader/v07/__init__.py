"""Bounded reads of partitions of 0.7."""
