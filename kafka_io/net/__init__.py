"""The only sockets: bytes out, bytes in, deadlines."""
