"""The embedded broker that speaks the 0.7 protocol."""
