"""Kafka as a library: every generation's wire protocol, records as Arrow columns, clients and an embedded broker."""
