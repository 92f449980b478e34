"""Tensors, parameters and Cells, and eager operations on them."""
