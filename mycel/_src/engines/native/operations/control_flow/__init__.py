"""Branches, loops, gradients of loops, and calls of recursive functions, as steps of steps."""
