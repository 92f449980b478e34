"""Tensors, parameters and Cells, and operations on them as they come."""
