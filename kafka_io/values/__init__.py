"""Values and keys of records as typed Arrow columns: Avro, JSON, Protobuf, text."""
