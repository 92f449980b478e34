"""Marks for parallel training: paths of Cells, operators' strategies, and micro-batches."""
