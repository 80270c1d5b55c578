"""SASL without sockets: each mechanism computes the bytes to send from the bytes received."""
