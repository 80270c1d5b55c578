"""Schemas in a registry: how values name them, what they are called, and whether an id still has the same one."""
