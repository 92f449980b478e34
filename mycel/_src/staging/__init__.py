"""Staging of Python functions into graphs: `jit`, derivatives, and parallel programs."""
