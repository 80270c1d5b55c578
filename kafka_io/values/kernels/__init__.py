"""Kernels that decode values: loops over bytes that numba compiles, with the rules of `kafka_io/records/kernels`.

Values are not framed by a checked length, so these kernels compare each position with the end of its value, and stop
before a buffer is full.
"""
