"""The APIs of Kafka 0.8 to 4.x: one file each, one table for all its versions."""
