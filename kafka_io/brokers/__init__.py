"""Connections to the brokers of one cluster: negotiation, login, retries, metadata, leaders, coordinators."""
