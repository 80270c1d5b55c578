"""What a table keeps of the records: rules for columns, for the key, for headers, and for bytes that do not decode."""
