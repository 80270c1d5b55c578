"""The parts of the wire that all generations share. No sockets, nothing but the standard library."""
