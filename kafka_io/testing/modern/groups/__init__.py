"""Consumer groups: their members, generations and assignments, and the offsets that they commit."""
