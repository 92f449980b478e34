"""Compiled functions: `jit` and `vmap`, and reports on and comparisons of compiled functions."""
