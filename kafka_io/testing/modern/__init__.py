"""The embedded broker of 0.8 and later: topics, consumer groups and transactions, in two generations."""
