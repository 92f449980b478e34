"""The thread pool, and the dense library's OpenMP teams on it."""
