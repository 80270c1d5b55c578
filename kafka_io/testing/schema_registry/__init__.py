"""An embedded schema registry with Confluent's REST API, for tests and demos."""
