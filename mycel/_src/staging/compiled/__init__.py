"""Compiled functions: `jit` and `vmap`, and accounts and comparisons of compiled functions."""
