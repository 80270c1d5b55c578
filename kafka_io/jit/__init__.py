"""The tools of all kernels: the compiler and its cache, numbers and texts in byte arrays, and memory for columns."""
