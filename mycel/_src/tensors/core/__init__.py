"""Tensors and parameters, and operations on them: at once, or recorded for a gradient."""
