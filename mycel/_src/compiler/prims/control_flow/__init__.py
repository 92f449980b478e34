"""Primitives that hold graphs: conditions, loops and their gradients, recursion, recomputation."""
