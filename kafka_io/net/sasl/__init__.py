"""SASL without sockets: each mechanism makes the bytes to send of the bytes that came."""
