"""Kernels: loops over bytes that numba compiles. They know integers and arrays, and nothing of Arrow or errors.

A kernel reads a byte array, fills other arrays and returns a status of `status_codes`, mostly with the position where
it stopped. It never raises: the modules in the parent folder turn a status into an error with its offset. A kernel also
never allocates: the caller makes room for all that the bytes can hold, so no index needs a check.

Kernels also work with the compiler off (NUMBA_DISABLE_JIT=1), for debugging and coverage. There a numpy uint8 overflows
when it is shifted, so bytes are converted to int64 first. Byte arrays that are read are always read-only, so that each
kernel is compiled only once.
"""
