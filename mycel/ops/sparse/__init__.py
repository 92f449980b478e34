"""Sparse tensors and operations on them."""
