"""Keyed hashes of texts and bytes: a value becomes a text that says nothing of it to who lacks the key."""
