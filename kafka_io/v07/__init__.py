"""The 0.7 dialect: its requests and its conversation."""
