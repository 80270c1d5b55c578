"""The 0.7 dialect: its requests, their answers, and the client's end of a connection."""
