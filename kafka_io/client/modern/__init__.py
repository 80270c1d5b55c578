"""Clients of 0.8 to 4.x: leaders from Metadata, record offsets, versions negotiated with each broker."""
