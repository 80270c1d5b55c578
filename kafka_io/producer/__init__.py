"""Producing to every generation of Kafka: one Producer over a synchronous and an asynchronous sender."""
