"""Change events of Debezium: the row after the change as columns."""
