"""Records read from the brokers as they arrive."""
