"""Reads the schemas of values and keys from a schema registry with Confluent's REST API."""
