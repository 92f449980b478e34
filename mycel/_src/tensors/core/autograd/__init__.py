"""Gradients of eager operations: recordings, their derivatives, hooks, and reused forward calls."""
