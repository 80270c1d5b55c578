"""Records straight from the brokers, as they come."""
