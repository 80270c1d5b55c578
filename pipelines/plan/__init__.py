"""Which offsets are loaded next, and how they are cut into slices."""
