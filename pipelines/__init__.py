"""Dagster declarations and the command line."""
