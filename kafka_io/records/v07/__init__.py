"""Message sets of 0.7 to Arrow columns."""
