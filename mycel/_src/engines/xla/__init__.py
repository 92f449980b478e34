"""The XLA engine: a program is a graph interpreted once by jax and compiled by XLA."""
