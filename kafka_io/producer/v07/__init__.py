"""Sending to brokers of 0.7."""
