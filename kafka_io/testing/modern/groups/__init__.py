"""Consumer groups: who is a member, who does what, and the offsets they commit."""
