"""The rows of a table compared with the records of the brokers."""
