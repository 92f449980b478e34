"""Threads that share work: the pool, and the dense library's teams on it."""
