"""The loops of the hashes, compiled by numba."""
