"""The loops over bytes: arrays in, arrays filled, a status returned. Only numba is known here, and integers.

Each is right with the compiler off too (NUMBA_DISABLE_JIT=1): bytes are widened before they are shifted. Nothing is
raised; the faces beside this folder turn a status into an error with its place. Arrays of bytes that are read come
read-only, so that each kernel is compiled once.
"""
