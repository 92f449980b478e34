"""Eager autograd: recordings (tapes), their derivatives, hooks, and reused forward calls."""
