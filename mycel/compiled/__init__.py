"""Compiled functions: `jit`, and what asks about them."""
