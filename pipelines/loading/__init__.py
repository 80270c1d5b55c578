"""Plan, execute, commit, verify: how a topic becomes a table."""
